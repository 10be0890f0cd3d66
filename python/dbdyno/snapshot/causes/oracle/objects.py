"""Rules that find causes in plans and segments of Oracle: another plan, a missing index."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.sql_text import literal
from dbdyno.snapshot.causes.change import Cause, Key
from dbdyno.snapshot.causes.oracle.reading import SEGMENTS, OracleChange
from dbdyno.snapshot.causes.statements import statement_label
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.wording import three_digits, time_change

_MAIN = 0.5
_RARE = 0.1


def flips(change: OracleChange) -> dict[Key, tuple[int, int]]:
    """Return the slower statements that run with another plan, each with its old and its new plan hash value.

    The old plan is the one that most executions had before. The new plan has at least half of the executions since, and
    had at most a tenth of them before.
    """
    found: dict[Key, tuple[int, int]] = {}
    for number, (before, after) in change.plans.items():
        one = change.statements.get(number)
        if one is None or not one.is_slower() or not before or not after:
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
    """Yield a cause for each slower statement whose PLAN_HASH_VALUE shows another plan in the second period."""
    for number, (old, new) in flips(change).items():
        one = change.statements[number]
        work = "{} → {}".format(*map(three_digits, one.per_call("work")))
        yield Cause(
            f"plan flip: {statement_label(one)}",
            f"plan {old} → {new}; mean {time_change(*one.per_call('ms'))}, logical reads per call {work}",
            frozenset([number]),
            _first_seen(change, number, new),
            weight=2.9,
        )


def _first_seen(change: OracleChange, number: Key, plan: int) -> str:
    """Return in words the time by which a plan had appeared in the second period; empty if not known."""
    which = f"sql_id = {literal(str(number))} and plan_hash_value = {int(plan)} and executions > 0"
    return _before(change.after, change.view, which)


def _before(interval: Interval, view: str, which: str) -> str:
    """Return in words the time by which the first matching row had appeared in a period.

    Returns an empty string if there is no matching row or the period has only one sub-interval. `which` is an SQL
    condition.
    """
    source, _ = interval.sums.relation(view, folded=False) if len(interval.chain) > 2 else ("", ())
    rows = interval.query(f"select min(part) as part from {source} where {which}") if source else []
    met = next((part["at_us"] for part in interval.sums.parts() if rows and part["number"] == rows[0]["part"]), None)
    return "" if met is None else f"before {instant_text(met)}"


def lost_indexes(change: OracleChange) -> Iterator[Cause]:
    """Yield a cause for each index that was read in the first period and no longer has a segment, if plans changed.

    The views do not name the table of an index: the index must have been read about as often as the statements with
    changed plans were executed.
    """
    flipped = flips(change)
    if not flipped or not change.is_in_both(SEGMENTS):
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
            f"it had {three_digits(read)} logical reads a second; {plans}",
            frozenset(flipped),
            _gone_at(change, row["owner"], row["object_name"]),
            weight=3,
        )


def _gone_at(change: OracleChange, owner: str, name: str) -> str:
    which = f"life = 'gone' and owner = {literal(owner)} and object_name = {literal(name)}"
    return _before(change.after, SEGMENTS, which) or _before(change.before, SEGMENTS, which)


RULES = (lost_indexes, plan_flips)
