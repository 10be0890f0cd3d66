"""Pruning: thin out a store by age, so that reports on the pruned time still say what was known.

Besides the snapshots that `retention.py` chooses, these are kept: snapshots with a note, snapshots of a baseline, and
both snapshots of each break. A break is a pair of neighbours whose difference loses something: a reset, a crash, a
restart, a failover, an eviction, a row that began again or disappeared. Without them, the difference over the hour
would be unknown although it is known for 59 of its minutes. What was sampled in between is merged into the next
remaining snapshot, with the number of looks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dbdyno.base.sql_text import literal
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.plans.plan_store import StoredLog, delete_logs
from dbdyno.snapshot.plans.plan_store import unused_logs as unused_plans
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import baselines
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.reading.sums.index import snapshots_in_range
from dbdyno.snapshot.store import locks, manifest, retention
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.locks import PACKS
from dbdyno.snapshot.store.pack import GROUP, delete_unused, is_sampled, pack

_MILD = ("ok", "clock stepped", "restart")
"""Verdicts with which a difference is still complete."""
ROWS_MOST = 500_000
"""Largest number of sampled rows in a pack."""


@dataclass
class PrunePlan:
    """Plan of a pruning: the snapshots of a target that would be deleted, and those that stay.

    Attributes:
        target: The target.
        go: Numbers to delete.
        stay: Numbers to keep.
        breaks: Numbers kept because of a break.
        noted: Numbers kept because of a note or a baseline.
        plans: Stored logs to delete, which end before all remaining snapshots.
    """

    target: str
    go: list[int] = field(default_factory=list)
    stay: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    noted: list[int] = field(default_factory=list)
    plans: list[StoredLog] = field(default_factory=list)


def plan_pruning(
    store: Store, target: str, rules: Sequence[retention.Rule], now_ns: int, *, rows: bool = True
) -> PrunePlan:
    """Return which snapshots of a target pruning would delete, and which stay.

    With `rows`, breaks of single rows (a dropped object, an evicted statement) count too.
    """
    chain = list(snapshots_in_range(store, target, 0, 1 << 62))
    if len(chain) < 2:
        return PrunePlan(target, [], [one.number for one in chain])
    stay = retention.numbers_to_keep(chain, rules, now_ns)
    first = retention.oldest_covered(chain, rules, now_ns)
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
    begun_us = next(one.at_ns for one in chain if one.number in stay) // 1000
    return PrunePlan(
        target, go, sorted(stay), sorted(beside), sorted(noted), unused_plans(store.folder, target, begun_us)
    )


def execute_plan(store: Store, plan: PrunePlan, tell: Callable[[str], None] = lambda _: None) -> int:
    """Carry out a plan, and return the number of deleted snapshots.

    The remaining snapshots are packed, together with the samples of the deleted ones; files that they refer to are
    kept. If the process is killed at any instant, no remaining snapshot loses a row. `tell` is called with a sentence
    after each pack.

    Raises:
        SnapshotError: A pack cannot be written, or another process holds the lock.
    """
    go = set(plan.go)
    with locks.maintenance_lock(store.folder):
        chain = list(snapshots_in_range(store, plan.target, 0, 1 << 62))
        before: dict[int, list[int]] = {}
        packed: set[int] = set()
        waiting: list[int] = []
        for one in chain:
            if one.number in go:
                waiting.append(one.number)
                continue
            said = store.open(one.number).manifest
            known = said.get("merged", ())  # merged by a pruning that was killed before it deleted them
            before[one.number], waiting = [number for number in waiting if number not in known], []
            packed |= {one.number} if "pack" in said else set()
        stays = [one.number for one in chain if one.number not in go]
        if stays:
            before[stays[0]] = []  # there is no report before the first snapshot
        last = [number for number in stays[-1:] if before[number]]  # otherwise it stays: the next one refers to it
        for group in _groups([*stays[:-1], *last], before, packed):
            dropped = {number: [_sampled(store, each) for each in before[number]] for number in group}
            for part in _of_size(store, group, dropped):
                with locks.exclusive_lock(store.folder):
                    pack(store, [store.open(number) for number in part], dropped, tidy=False)  # tidied at the end
                    for each in (each for number in part for each in dropped[number]):
                        _drop(store, each)
            tell(f"packed {group[0]} to {group[-1]}")
        with locks.exclusive_lock(store.folder):
            for one in chain:
                if one.number in go:
                    _drop(store, one)
            folders = [store.folder / f"{one.number:06d}" for one in chain]
            delete_unused(store, [*folders, *sorted((store.folder / PACKS).glob("*-*-*"))])
            delete_logs(plan.plans)
    return len(go)


def _of_size(store: Store, group: Sequence[int], dropped: Mapping[int, Sequence[Snapshot]]) -> Iterator[list[int]]:
    """Yield a group in parts with at most `ROWS_MOST` sampled rows each, because a pack is sorted in memory."""
    part: list[int] = []
    rows = 0
    for number in group:
        own = sum(
            int(record.get("rows") or 0)
            for one in (*dropped[number], store.open(number))
            for name, record in one.views.items()
            if is_sampled(name, record)
        )
        if part and rows + own > ROWS_MOST:
            yield part
            part, rows = [], 0
        part.append(number)
        rows += own
    yield part


def _sampled(store: Store, number: int) -> Snapshot:
    """Return a snapshot to delete with only its sampled views, to save memory: thousands are loaded at once."""
    one = store.open(number)
    views = {name: record for name, record in one.views.items() if is_sampled(name, record)}
    return Snapshot(store.folder, {**one.manifest, "views": views, "facts": {}})


def _groups(stays: Sequence[int], before: dict[int, list[int]], packed: AbstractSet[int]) -> list[list[int]]:
    """Return the groups to be packed again: those with a deleted or an unpacked snapshot."""
    groups = [list(stays[at : at + GROUP]) for at in range(0, len(stays), GROUP)]
    return [group for group in groups if any(before[number] or number not in packed for number in group)]


def _drop(store: Store, snapshot: Snapshot) -> None:
    path = manifest.path_of(store.folder, snapshot.number)
    path.unlink(missing_ok=True)
    if not any(path.parent.glob("*.parquet")):
        shutil.rmtree(path.parent, ignore_errors=True)


def _noted(store: Store, chain: Sequence[Snapshot]) -> set[int]:
    """Return the numbers of snapshots with a note or within a baseline."""
    spans = [(one["first"], one["last"]) for one in baselines(store) if one["target"] == chain[0].target]
    return {one.number for one in chain if one.note or any(first <= one.number <= last for first, last in spans)}


def _broken(store: Store, chain: Sequence[Snapshot], stay: set[int], *, rows: bool) -> list[tuple[int, int]]:
    """Return the pairs of neighbours whose difference is incomplete and of which one snapshot would be deleted."""
    wanted = {
        new.number: old.number for old, new in pairwise(chain) if old.number not in stay or new.number not in stay
    }
    if not wanted:
        return []
    sums = Chain(store, list(chain), Interval)
    try:
        mild = _MILD if rows else (*_MILD, "evicted")
        whole = {part["number"] for part in sums.parts() if not any(_lost(one, mild) for one in part["verdicts"])}
        broken = wanted.keys() - whole  # what cannot be judged is not deleted
        if rows:
            broken |= wanted.keys() & _rows_ended(sums)
    finally:
        sums.close()
    return sorted((wanted[number], number) for number in broken)


def _lost(verdict: Sequence[Any], mild: Sequence[str]) -> bool:
    """Return True if a sub-interval's verdict says that something was lost; a view that was not read does not count."""
    scope, _, word, why, *_ = verdict
    unread = scope.startswith("view:") and word == "partial" and why.startswith(f"{scope.removeprefix('view:')} ")
    return word not in mild and not unread


def _rows_ended(sums: Chain) -> set[int]:
    """Return the sub-intervals in which some row disappeared, was reset, or had a counter that fell."""
    found: set[int] = set()
    words = ", ".join(literal(word) for word in _MILD)
    with file_connection() as connection:
        for view in sorted({view for chunk in sums.chunks for view in chunk.model["views"]}):
            source, _ = sums.relation(view, folded=False)
            ended = f"life = 'gone' or (life <> 'new' and verdict not in ({words}))"
            rows = connection.execute(f"select distinct part from {source} where {ended}").fetchall()
            found |= {int(row[0]) for row in rows}
    return found
