"""Rules that find causes in the load, the same for every engine: new statements, more calls, slower statements."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Key, Pair
from dbdyno.snapshot.model import statement_beginning
from dbdyno.snapshot.wording import duration_text, rate_change, three_digits, time_change

LONGER_FACTOR = 1.1
"""Smallest slowdown per call that is attributed to new sessions, which begin with cold caches."""
_SHARE = 0.1
"""Smallest share of the change for which a statement is reported individually."""


def statement_label(pair: Pair) -> str:
    """Return the name of a statement for a report: the beginning of its text and its identifier."""
    return f"{statement_beginning(pair.text) or 'a statement'} ({pair.name})"


def _large(change: Change, number: Key) -> bool:
    """Return True if a statement has a large enough share of the change and grew by more than its usual variation."""
    return (change.share([number]) or 0) >= _SHARE and change.matters(number)


def new_statements(change: Change) -> Iterator[Cause]:
    """Yield a cause for each statement that was not called in the first period.

    If an index is missing, the words say what makes the statement expensive. A statement that ran only once is reported
    as a command outside the load, with less weight.
    """
    for number, one in change.statements.items():
        if not one.before.get("calls") and _large(change, number):
            if one.after["calls"] * change.after.seconds < 1.5:
                took = f"took {duration_text(one.per_call('ms')[1])}"
                yield Cause(f"ran once: {statement_label(one)}", took, frozenset([number]), weight=0.5)
                continue
            calls, why = f"calls {rate_change(0, one.after['calls'])}", change.missing_index(number)
            words = f"new statement, which {why[0]}" if why and why[0] else "new statement"
            evidence = calls if why is None else f"{calls}; {why[1]}"
            yield Cause(f"{words}: {statement_label(one)}", evidence, frozenset([number]), weight=2)


def more_calls(change: Change) -> Iterator[Cause]:
    """Yield a cause for each statement that is called at least 1.5 times as often and is not slower per call."""
    for number, one in change.statements.items():
        old, new = one.before.get("calls", 0), one.after.get("calls", 0)
        if old and new >= 1.5 * old and not one.is_slower() and _large(change, number):
            yield Cause(
                f"more calls of {statement_label(one)}",
                f"calls {rate_change(old, new)}",
                frozenset([number]),
                direct=False,
            )


def slower_statements(change: Change) -> Iterator[Cause]:
    """Yield an indirect cause for each statement that takes longer per call, whatever the reason."""
    for number, one in change.statements.items():
        if one.is_slower() and _large(change, number):
            work = one.per_call("work")
            evidence = f"mean {time_change(*one.per_call('ms'))}"
            evidence += f", {change.work} per call {' → '.join(map(three_digits, work))}" if any(work) else ""
            yield Cause(f"slower: {statement_label(one)}", evidence, frozenset([number]), direct=False)


def does_no_more_work(pair: Pair) -> bool:
    """Return True if a call does no more work than before (20 % tolerance).

    If its calls are slower, neither the plan nor the amount of data explains the slowdown.
    """
    old, new = pair.per_call("work")
    return new - old <= 0.2 * max(old, 1.0)


def slower_at_same_work(change: Change) -> frozenset[Key]:
    """Return the statements that take longer per call but do no more work per call than before."""
    return frozenset(n for n, one in change.statements.items() if one.is_slower() and does_no_more_work(one))


def statements_of_new_sessions(change: Change, old: float, new: float) -> frozenset[Key]:
    """Return the statements whose change is explained by a higher rate of new sessions.

    They are called more often, by at most the same factor as sessions, or are slower for the same work, because the
    caches of a new session are cold.

    Args:
        change: The change between the two periods.
        old: Sessions begun per second in the first period.
        new: Sessions begun per second in the second period.
    """
    more = new / max(old, 1e-9)
    called = frozenset(
        n
        for n, one in change.statements.items()
        if 0 < 1.5 * one.before.get("calls", 0) <= one.after.get("calls", 0) <= 1.5 * more * one.before["calls"]
    )
    longer = (n for n, one in change.statements.items() if does_no_more_work(one) and _longer(one))
    return called.union(longer)


def _longer(pair: Pair) -> bool:
    old, new = pair.per_call("ms")
    return new >= LONGER_FACTOR * old > 0


RULES = (new_statements, more_calls, slower_statements)
