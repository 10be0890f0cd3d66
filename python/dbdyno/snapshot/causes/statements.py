"""Causes in what is asked of the server that every engine shows alike: new statements, more calls, slower ones."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Key, Pair
from dbdyno.snapshot.model import beginning
from dbdyno.snapshot.wording import rate, span, three, times

LONGER = 1.1
"""From so many times as long on, a call may be longer for what new sessions lack."""
_SHARE = 0.1
"""A statement with less of the change is not named by itself."""


def named(one: Pair) -> str:
    """How a statement is called in words: its beginning, then its identifier."""
    return f"{beginning(one.text) or 'a statement'} ({one.name})"


def _large(change: Change, number: Key) -> bool:
    """Whether a statement has enough of a change that is one."""
    return (change.share([number]) or 0) >= _SHARE and change.matters(number)


def new_statements(change: Change) -> Iterator[Cause]:
    """Statements that the first stretch had none of, and what makes them dear where an index is missing. One that ran
    once is a command beside the load, not the load."""
    for number, one in change.statements.items():
        if not one.before.get("calls") and _large(change, number):
            if one.after["calls"] * change.after.seconds < 1.5:
                took = f"took {span(one.per_call('ms')[1])}"
                yield Cause(f"ran once: {named(one)}", took, frozenset([number]), weight=0.5)
                continue
            calls, why = f"calls {rate(0, one.after['calls'])}", change.without_index(number)
            words = f"new statement, which {why[0]}" if why and why[0] else "new statement"
            evidence = calls if why is None else f"{calls}; {why[1]}"
            yield Cause(f"{words}: {named(one)}", evidence, frozenset([number]), weight=2)


def more_calls(change: Change) -> Iterator[Cause]:
    """Statements that are called more often and take as long as before."""
    for number, one in change.statements.items():
        old, new = one.before.get("calls", 0), one.after.get("calls", 0)
        if old and new >= 1.5 * old and not one.slower() and _large(change, number):
            yield Cause(f"more calls of {named(one)}", f"calls {rate(old, new)}", frozenset([number]), direct=False)


def slower_statements(change: Change) -> Iterator[Cause]:
    """Statements that take longer per call: what is seen, whatever the cause."""
    for number, one in change.statements.items():
        if one.slower() and _large(change, number):
            work = one.per_call("work")
            evidence = f"mean {times(*one.per_call('ms'))}"
            evidence += f", {change.work} per call {' → '.join(map(three, work))}" if any(work) else ""
            yield Cause(f"slower: {named(one)}", evidence, frozenset([number]), direct=False)


def no_more_work(one: Pair) -> bool:
    """Whether a call reads no more than it did: what is slower then is not the plan, nor the data."""
    old, new = one.per_call("work")
    return new - old <= 0.2 * max(old, 1.0)


def slower_at_same_work(change: Change) -> frozenset[Key]:
    """Statements that take longer and read no more than before."""
    return frozenset(n for n, one in change.statements.items() if one.slower() and no_more_work(one))


def of_sessions(change: Change, old: float, new: float) -> frozenset[Key]:
    """Statements that more sessions, `old` and `new` a second, explain: called as much more often at most, or slower
    at the same work, because what a session keeps is cold in a new one."""
    more = new / max(old, 1e-9)
    called = frozenset(
        n
        for n, one in change.statements.items()
        if 0 < 1.5 * one.before.get("calls", 0) <= one.after.get("calls", 0) <= 1.5 * more * one.before["calls"]
    )
    longer = (n for n, one in change.statements.items() if no_more_work(one) and _longer(one))
    return called.union(longer)


def _longer(one: Pair) -> bool:
    old, new = one.per_call("ms")
    return new >= LONGER * old > 0


RULES = (new_statements, more_calls, slower_statements)
