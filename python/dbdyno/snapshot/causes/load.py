"""Causes in what is asked of the server: new statements, more calls, spills, connections."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Change, Pair, rate, times
from dbdyno.snapshot.model import beginning

_SHARE = 0.1
"""A statement with less of the change is not named by itself."""


def named(one: Pair) -> str:
    """How a statement is called in words: its beginning, then its identifier."""
    return f"{beginning(one.text) or 'a statement'} ({one.name})"


def new_statements(change: Change) -> Iterator[Cause]:
    """Statements that the first stretch had none of."""
    for number, one in change.statements.items():
        if not one.before.get("calls") and (change.share([number]) or 0) >= _SHARE:
            calls = rate(0, one.after["calls"])
            yield Cause(f"new statement: {named(one)}", f"calls {calls}", frozenset([number]), weight=2)


def more_calls(change: Change) -> Iterator[Cause]:
    """Statements that are called more often and take as long as before."""
    for number, one in change.statements.items():
        old, new = one.before.get("calls", 0), one.after.get("calls", 0)
        if old and new >= 1.5 * old and not one.slower() and (change.share([number]) or 0) >= _SHARE:
            yield Cause(f"more calls of {named(one)}", f"calls {rate(old, new)}", frozenset([number]), direct=False)


def slower_statements(change: Change) -> Iterator[Cause]:
    """Statements that take longer per call: what is seen, whatever the cause."""
    for number, one in change.statements.items():
        if one.slower() and (change.share([number]) or 0) >= _SHARE:
            blocks = "{:.3g} → {:.3g}".format(*one.per_call("blocks"))
            evidence = f"mean {times(*one.per_call('ms'))}, blocks per call {blocks}"
            yield Cause(f"slower: {named(one)}", evidence, frozenset([number]), direct=False)


def spills(change: Change) -> Iterator[Cause]:
    """Statements that write temporary files where they wrote none, or few."""
    found = [
        number
        for number, one in change.statements.items()
        if one.after.get("temp", 0) >= 1 and one.per_call("temp")[1] >= 2 * one.per_call("temp")[0] + 1
    ]
    if found:
        old, new = (
            sum(getattr(change.statements[n], end).get("temp", 0) for n in found) for end in ("before", "after")
        )
        words = f"sorts and hashes spill to temporary files: {named(change.statements[found[0]])}"
        yield Cause(
            words, f"temporary blocks written {rate(old, new)}{_work_mem(change)}", frozenset(found), weight=2.6
        )


def _work_mem(change: Change) -> str:
    old, new = (_setting_at(change, end) for end in (0, 1))
    return f"; work_mem {old} → {new} kB" if old != new else ""


def _setting_at(change: Change, end: int) -> str | None:
    one = (change.before, change.after)[end]
    if not one.has("pg_settings"):
        return None
    rows = one.query(f"select setting from {one.ends('pg_settings')[end]} where name = 'work_mem'")
    return str(rows[0]["setting"]) if rows else None


def connections(change: Change) -> Iterator[Cause]:
    """Sessions that begin much more often."""
    old, new = (side.get("sessions", 0.0) for side in change.totals("pg_stat_database", "sessions"))
    if new >= 3 * old and new - old >= 3:
        cold = frozenset(n for n, one in change.statements.items() if one.slower() and _same_work(one))
        yield Cause("many more sessions begin", f"sessions begun {rate(old, new)}", cold, weight=1.5)


def _same_work(one: Pair) -> bool:
    """Whether a call reads as much as it did: what is slower then is not the plan, nor the data."""
    old, new = one.per_call("blocks")
    return abs(new - old) <= 0.2 * max(old, 1.0)


RULES = (new_statements, spills, connections, more_calls, slower_statements)
