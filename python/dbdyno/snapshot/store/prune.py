"""Thins out a store by age, so that reports over the thinned time still say what was known.

What stays beside what `retention.py` chooses: snapshots with a note, those of a baseline, and both
snapshots beside each break. A break is where the difference of two neighbours loses something: a
reset, a crash, a restart, a failover, an eviction, a row that began again or went. Without them the
difference over the hour would be unknown although it is known for 59 of its minutes. What was
sampled between goes to the next snapshot that stays, with the looks that it took.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from dbdyno.evidence.memory import for_files
from dbdyno.snapshot.plans.kept import KeptLog, forget
from dbdyno.snapshot.plans.kept import unused as unused_plans
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import baselines
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.reading.sums.index import light
from dbdyno.snapshot.store import locks, manifest, retention
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.locks import PACKS
from dbdyno.snapshot.store.pack import GROUP, is_sampled, pack, unused
from dbdyno.snapshot.store.parquet import literal

_MILD = ("ok", "clock stepped", "restart")
"""Verdicts over which a difference is whole."""
ROWS_MOST = 500_000
"""So many rows of samples go into a pack."""


@dataclass
class Plan:
    """What pruning a target would do: numbers that go, and why others stay beyond what the rules choose. `plans`: what
    is kept of logs that no snapshot that stays is beside."""

    target: str
    go: list[int] = field(default_factory=list)
    stay: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    noted: list[int] = field(default_factory=list)
    plans: list[KeptLog] = field(default_factory=list)


def plan(store: Store, target: str, rules: Sequence[retention.Rule], now_ns: int, *, rows: bool = True) -> Plan:
    """What would go. `rows`: breaks of single rows (an object dropped, a statement evicted) count too."""
    chain = light(store, target, 0, 1 << 62)
    if len(chain) < 2:
        return Plan(target, [], [one.number for one in chain])
    stay = retention.chosen(chain, rules, now_ns)
    first = retention.oldest(chain, rules, now_ns)
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
    return Plan(target, go, sorted(stay), sorted(beside), sorted(noted), unused_plans(store.folder, target, begun_us))


def carry_out(store: Store, asked: Plan, tell: Callable[[str], None] = lambda _: None) -> int:
    """Does what a plan says; returns how many snapshots went. What stays is packed, with the samples of what goes;
    files that it points to stay. Killed at any instant, no snapshot that stays loses a row."""
    go = set(asked.go)
    with locks.moving(store.folder):
        chain = light(store, asked.target, 0, 1 << 62)
        before: dict[int, list[int]] = {}
        packed: set[int] = set()
        waiting: list[int] = []
        for one in chain:
            if one.number in go:
                waiting.append(one.number)
                continue
            said = store.open(one.number).manifest
            known = said.get("merged", ())  # of a pruning that was killed before it deleted them
            before[one.number], waiting = [number for number in waiting if number not in known], []
            packed |= {one.number} if "pack" in said else set()
        stays = [one.number for one in chain if one.number not in go]
        if stays:
            before[stays[0]] = []  # nothing is reported before the first
        last = [number for number in stays[-1:] if before[number]]  # else it stays: the next one points to it
        for group in _groups([*stays[:-1], *last], before, packed):
            dropped = {number: [_sampled(store, each) for each in before[number]] for number in group}
            for part in _of_size(store, group, dropped):
                with locks.alone(store.folder):
                    pack(store, [store.open(number) for number in part], dropped, tidy=False)  # at the end, once
                    for each in (each for number in part for each in dropped[number]):
                        _drop(store, each)
            tell(f"packed {group[0]} to {group[-1]}")
        with locks.alone(store.folder):
            for one in chain:
                if one.number in go:
                    _drop(store, one)
            folders = [store.folder / f"{one.number:06d}" for one in chain]
            unused(store, [*folders, *sorted((store.folder / PACKS).glob("*-*-*"))])
            forget(asked.plans)
    return len(go)


def _of_size(store: Store, group: Sequence[int], dropped: Mapping[int, Sequence[Snapshot]]) -> Iterator[list[int]]:
    """A group in parts with so many rows of samples each, for a pack is sorted in memory."""
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
    """A snapshot that goes, of which only what was sampled before it is known: thousands are held at once."""
    one = store.open(number)
    views = {name: record for name, record in one.views.items() if is_sampled(name, record)}
    return Snapshot(store.folder, {**one.manifest, "views": views, "facts": {}})


def _groups(stays: Sequence[int], before: dict[int, list[int]], packed: AbstractSet[int]) -> list[list[int]]:
    """What is packed anew: groups in which something went or is not packed yet."""
    groups = [list(stays[at : at + GROUP]) for at in range(0, len(stays), GROUP)]
    return [group for group in groups if any(before[number] or number not in packed for number in group)]


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
    """Neighbours of which one would go, and whose difference loses something, by the sums that are kept."""
    wanted = {
        new.number: old.number for old, new in pairwise(chain) if old.number not in stay or new.number not in stay
    }
    if not wanted:
        return []
    sums = Chain(store, list(chain), Interval)
    try:
        mild = _MILD if rows else (*_MILD, "evicted")
        whole = {part["number"] for part in sums.parts() if not any(_lost(one, mild) for one in part["verdicts"])}
        broken = wanted.keys() - whole  # whatever could not be judged is not thrown away
        if rows:
            broken |= wanted.keys() & _rows_ended(sums)
    finally:
        sums.close()
    return sorted((wanted[number], number) for number in broken)


def _lost(verdict: Sequence[Any], mild: Sequence[str]) -> bool:
    """Whether a sub-interval's verdict says that something was lost. That a view was not read says it not."""
    scope, _, word, why, *_ = verdict
    unread = scope.startswith("view:") and word == "partial" and why.startswith(f"{scope.removeprefix('view:')} ")
    return word not in mild and not unread


def _rows_ended(sums: Chain) -> set[int]:
    """The sub-intervals in which some row of some view ended: it went, a counter of it fell, its life began again."""
    found: set[int] = set()
    words = ", ".join(literal(word) for word in _MILD)
    with for_files() as connection:
        for view in sorted({view for chunk in sums.chunks for view in chunk.model["views"]}):
            source, _ = sums.relation(view, folded=False)
            ended = f"life = 'gone' or (life <> 'new' and verdict not in ({words}))"
            rows = connection.execute(f"select distinct part from {source} where {ended}").fetchall()
            found |= {int(row[0]) for row in rows}
    return found
