"""Causes in plans and segments of Oracle: another plan, an index that is gone."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause, Key
from dbdyno.snapshot.causes.oracle.reading import SEGMENTS, OracleChange
from dbdyno.snapshot.causes.statements import named
from dbdyno.snapshot.model import moment_us
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.store.parquet import literal
from dbdyno.snapshot.wording import three, times

_MAIN = 0.5
_RARE = 0.1


def flips(change: OracleChange) -> dict[Key, tuple[int, int]]:
    """The slower statements whose work is done by another plan: the plan that most executions had before, and the one
    that most have since and hardly any had."""
    found: dict[Key, tuple[int, int]] = {}
    for number, (before, after) in change.plans.items():
        one = change.statements.get(number)
        if one is None or not one.slower() or not before or not after:
            continue
        new = max(after, key=lambda plan: after[plan]["calls"])
        shares = [
            side.get(new, {}).get("calls", 0.0) / max(sum(plan["calls"] for plan in side.values()), 1e-9)
            for side in (before, after)
        ]
        if shares[0] <= _RARE and shares[1] >= _MAIN:
            found[number] = max(before, key=lambda plan: before[plan]["calls"]), new
    return found


def plan_flips(change: OracleChange) -> Iterator[Cause]:
    """A slower statement whose executions have another plan in the second stretch, by its PLAN_HASH_VALUE."""
    for number, (old, new) in flips(change).items():
        one = change.statements[number]
        work = "{} → {}".format(*map(three, one.per_call("work")))
        yield Cause(
            f"plan flip: {named(one)}",
            f"plan {old} → {new}; mean {times(*one.per_call('ms'))}, logical reads per call {work}",
            frozenset([number]),
            _first_seen(change, number, new),
            weight=2.9,
        )


def _first_seen(change: OracleChange, number: Key, plan: int) -> str:
    """Between which snapshots the plan came, where they are of the second stretch."""
    which = f"sql_id = {literal(str(number))} and plan_hash_value = {int(plan)} and executions > 0"
    return _before(change.after, change.view, which)


def _before(one: Interval, view: str, which: str) -> str:
    """Before which instant the first of these rows was met in a stretch of several sub-intervals; '' where in none."""
    source, _ = one.sums.relation(view, folded=False) if len(one.chain) > 2 else ("", ())
    rows = one.query(f"select min(part) as part from {source} where {which}") if source else []
    met = next((part["at_us"] for part in one.sums.parts() if rows and part["number"] == rows[0]["part"]), None)
    return "" if met is None else f"before {moment_us(met)}"


def lost_indexes(change: OracleChange) -> Iterator[Cause]:
    """An index that was read in the first stretch and is no segment any more, where statements changed their plans. The
    views do not say whose index it was: it has to have been read as often as those statements were executed."""
    flipped = flips(change)
    if not flipped or not change.both(SEGMENTS):
        return
    calls = sum(change.statements[number].before["calls"] for number in flipped)
    before, after = change.before.ends(SEGMENTS)[0], change.after.ends(SEGMENTS)[1]
    rows = change.before.query(
        f"select distinct con_id, owner, object_name from {before} a where object_type like 'INDEX%'"
        f" and not exists (select 1 from {after} b where b.con_id = a.con_id and b.owner = a.owner"
        f" and b.object_name = a.object_name) order by all"
    )
    for row in rows:
        index = change.tables.get((row["con_id"], row["owner"], row["object_name"], "INDEX"))
        read = index.before.get("logical_reads", 0.0) if index is not None else 0.0
        if read < 0.5 * calls or calls <= 0:
            continue
        plans = ", ".join(f"{number}: plan {old} → {new}" for number, (old, new) in list(flipped.items())[:3])
        yield Cause(
            f"index {row['owner']}.{row['object_name']} is gone: dropped, or made unusable",
            f"it had {three(read)} logical reads a second; {plans}",
            frozenset(flipped),
            _gone_at(change, row["owner"], row["object_name"]),
            weight=3,
        )


def _gone_at(change: OracleChange, owner: str, name: str) -> str:
    which = f"life = 'gone' and owner = {literal(owner)} and object_name = {literal(name)}"
    return _before(change.after, SEGMENTS, which) or _before(change.before, SEGMENTS, which)


RULES = (lost_indexes, plan_flips)
