"""Thins out a store by age, so that reports over the thinned time still say what was known.

What stays beside what `keep.py` chooses: snapshots with a note, those of a baseline, and both
snapshots beside each break. A break is where the difference of two neighbours loses something: a
reset, a crash, a restart, a failover, an eviction, a row that began again or went. Without them the
difference over the hour would be unknown although it is known for 59 of its minutes. What was
sampled between goes to the next snapshot that stays, with the looks that it took.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from dbdyno.errors import Error
from dbdyno.snapshot import holding, keep, manifest
from dbdyno.snapshot.difference import quoted
from dbdyno.snapshot.holding import PACKS
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.pack import GROUP, is_sampled, pack, unused
from dbdyno.snapshot.periods import baselines
from dbdyno.snapshot.store import Snapshot, Store

SPAN = 120
"""Snapshots that are searched for breaks in one query."""


@dataclass
class Plan:
    """What pruning a target would do: numbers that go, and why others stay beyond what the rules choose."""

    target: str
    go: list[int] = field(default_factory=list)
    stay: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    noted: list[int] = field(default_factory=list)


def plan(store: Store, target: str, rules: Sequence[keep.Rule], now_ns: int, *, rows: bool = True) -> Plan:
    """What would go. `rows`: breaks of single rows (an object dropped, a statement evicted) count too."""
    chain = store.of(target)
    if len(chain) < 2:
        return Plan(target, [], [one.number for one in chain])
    stay = keep.chosen(chain, rules, now_ns)
    first = keep.oldest(chain, rules, now_ns)
    noted = _noted(store, chain) - stay
    young = [one for one in chain if one.number >= first]
    beside = {
        number
        for old, new in _broken(store, young, stay | noted, rows=rows)
        for number in (old, new)
        if number >= first
    }
    stay |= noted | beside
    go = [one.number for one in chain if one.number not in stay]
    return Plan(target, go, sorted(stay), sorted(beside), sorted(noted))


def carry_out(store: Store, asked: Plan, tell: Callable[[str], None] = lambda _: None) -> int:
    """Does what a plan says; returns how many snapshots went. What stays is packed, with the samples of what goes;
    files that it points to stay. Killed at any instant, no snapshot that stays loses a row."""
    go = set(asked.go)
    with holding.moving(store.folder):
        chain = store.of(asked.target)
        before: dict[int, list[Snapshot]] = {}
        waiting: list[Snapshot] = []
        for one in chain:
            if one.number in go:
                waiting.append(one)
            else:
                known = one.manifest.get("merged", ())  # of a pruning that was killed before it deleted them
                before[one.number], waiting = [each for each in waiting if each.number not in known], []
        stays = [one for one in chain if one.number not in go]
        if stays:
            before[stays[0].number] = []  # nothing is reported before the first
        last = [one for one in stays[-1:] if before[one.number]]  # else it stays as it is: the next one points to it
        for group in _groups([*stays[:-1], *last], before):
            with holding.alone(store.folder):
                pack(store, group, before)
                for dropped in (each for one in group for each in before[one.number]):
                    _drop(store, dropped)
            tell(f"packed {group[0].number} to {group[-1].number}")
        with holding.alone(store.folder):
            for one in chain:
                if one.number in go:
                    _drop(store, one)
            folders = [store.folder / f"{one.number:06d}" for one in chain]
            unused(store, [*folders, *sorted((store.folder / PACKS).glob("*-*-*"))])
    return len(go)


def _groups(stays: Sequence[Snapshot], before: dict[int, list[Snapshot]]) -> list[list[Snapshot]]:
    """What is packed anew: groups in which something went or is not packed yet."""
    groups = [list(stays[at : at + GROUP]) for at in range(0, len(stays), GROUP)]
    return [group for group in groups if any(before[one.number] or "pack" not in one.manifest for one in group)]


def _drop(store: Store, one: Snapshot) -> None:
    path = manifest.path_of(store.folder, one.number)
    path.unlink(missing_ok=True)
    if not any(path.parent.glob("*.parquet")):
        shutil.rmtree(path.parent, ignore_errors=True)


def _noted(store: Store, chain: Sequence[Snapshot]) -> set[int]:
    """Those that somebody gave a name: by a note, or as part of a baseline."""
    spans = [(one["first"], one["last"]) for one in baselines(store) if one["target"] == chain[0].target]
    return {one.number for one in chain if one.note or any(first <= one.number <= last for first, last in spans)}


def _broken(store: Store, chain: Sequence[Snapshot], stay: set[int], *, rows: bool) -> list[tuple[int, int]]:
    """Neighbours of which one would go, and whose difference loses something."""
    pairs = [(old, new) for old, new in pairwise(chain) if old.number not in stay or new.number not in stay]
    found = {(old.number, new.number) for old, new in pairs if _scope_broke(store, old, new, rows=rows)}
    if rows:
        following = {old.number: new.number for old, new in pairwise(chain)}
        wanted = {(old.number, new.number) for old, new in pairs}
        for at in range(0, len(chain) - 1, SPAN):
            ended = _rows_ended(chain[at : at + SPAN + 1])
            found |= {(old, following[old]) for old in ended if (old, following.get(old)) in wanted}
    return sorted(found)


def _scope_broke(store: Store, old: Snapshot, new: Snapshot, *, rows: bool) -> bool:
    mild = ("ok", "clock stepped", "restart") if rows else ("ok", "clock stepped", "restart", "evicted")
    try:
        with Interval(store, old, new, [old, new]) as interval:
            return any(verdict.word not in mild for verdict in interval.verdicts.values())
    except Error:
        return True  # whatever cannot be judged is not thrown away


def _rows_ended(chain: Sequence[Snapshot]) -> set[int]:
    """The numbers after which some row of some view ended: it is not in the next, a counter of it fell, or the start
    of its life moved."""
    import duckdb

    found: set[int] = set()
    with duckdb.connect() as connection:
        for view, record in chain[0].views.items():
            read = [one for one in chain if one.file(view) and one.problem(view) is None]
            if len(read) < 2 or is_sampled(view, record) or record["scope"] == "now":
                continue
            query = _ended_sql(read, view)
            if query:
                found |= {int(row[0]) for row in connection.execute(query).fetchall()}
    return found


def _ended_sql(read: Sequence[Snapshot], view: str) -> str | None:
    columns = {c.name: c for c in read[0].columns(view)}
    for one in read[1:]:
        here = {c.name for c in one.columns(view)}
        columns = {name: c for name, c in columns.items() if name in here}
    keys = [quoted(c.name) for c in columns.values() if c.kind == "key"]
    fell = [f"nxt.{quoted(n)} < {quoted(n)}" for n, c in columns.items() if c.kind == "counter"]
    moved = [f"nxt.{quoted(n)} is distinct from {quoted(n)}" for n, c in columns.items() if c.kind == "since"]
    if not keys or not fell:
        return None
    watched = [quoted(n) for n, c in columns.items() if c.kind in ("counter", "since")]
    union = " union all by name ".join(
        f"select {place} as place, {one.number} as number_, {', '.join([*keys, *watched])} from {one.relation(view)}"
        for place, one in enumerate(read)
    )
    packed = ", ".join(f"{name} := {name}" for name in ["place", *watched])
    return f"""
with r as ({union}),
s as (select *, lead(struct_pack({packed})) over (partition by {", ".join(keys)} order by place) as nxt from r)
select distinct number_ from s
where place < {len(read) - 1} and (nxt is null or nxt.place <> place + 1 or {" or ".join([*fell, *moved])})
"""
