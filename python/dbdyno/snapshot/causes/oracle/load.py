"""Rules that find causes in the load on an Oracle instance: hard parses, sorts on disk, logons."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Key
from dbdyno.snapshot.causes.oracle.reading import OracleChange
from dbdyno.snapshot.causes.statements import slower_at_same_work, statement_label, statements_of_new_sessions
from dbdyno.snapshot.wording import rate_change, three_digits

_LEAST_PARSES = 5.0
_PARSED_MS = 50.0
_TEMP = ("direct path write temp", "direct path read temp")


def hard_parses(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if far more statements are hard-parsed: texts with literals, or a shared pool that is too small."""
    old, new = change.statistic("parse count (hard)")
    spent = [us / 1e3 for us in change.statistic("hard parse elapsed time")]
    if new < max(3 * old, _LEAST_PARSES) or (spent[1] and spent[1] < max(_PARSED_MS, 2 * spent[0])):
        return
    time = f"; parsing took {three_digits(spent[0])} → {three_digits(spent[1])} ms a second" if spent[1] else ""
    yield Cause(
        "statements are parsed hard: texts with literals, or a shared pool that is too small",
        f"hard parses {rate_change(old, new)}{time}",
        frozenset(n for n, one in change.statements.items() if not one.before.get("calls"))
        | slower_at_same_work(change),
        weight=2.6,
    )


def spills(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if sorts and hash joins no longer fit into memory and write to the temporary tablespace."""
    old, new = (sum(change.event(name)[side].waits for name in _TEMP) for side in (0, 1))
    disk = change.statistic("sorts (disk)")
    if not (new >= 10 and new >= 3 * old) and not (disk[1] >= 0.2 and disk[1] >= 3 * disk[0]):
        return
    slow = [
        n
        for n, one in change.statements.items()
        if one.is_slower() and one.per_call("writes")[1] >= 2 * one.per_call("writes")[0] + 1
    ]
    first = max(slow, key=lambda n: change.statements[n].growth("ms"), default=None)
    whose = f": {statement_label(change.statements[first])}" if first is not None else ""
    moved = [
        f"{name} {a} → {b}"
        for name in ("pga_aggregate_target", "sort_area_size", "workarea_size_policy")
        for a, b in [change.setting(name)]
        if a != b
    ]
    said = [f"waits for temporary files {rate_change(old, new)}", f"sorts on disk {rate_change(*disk)}", *moved]
    yield Cause(f"sorts and hashes spill to temporary files{whose}", "; ".join(said), frozenset(slow), weight=2.6)


def logons(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause if sessions begin at least three times as often as before."""
    old, new = change.statistic("logons cumulative")
    if new >= 3 * old and new - old >= 3:
        whose: frozenset[Key] = statements_of_new_sessions(change, old, new)
        yield Cause("many more sessions begin", f"logons {rate_change(old, new)}", whose, weight=1.5)


RULES = (hard_parses, spills, logons)
