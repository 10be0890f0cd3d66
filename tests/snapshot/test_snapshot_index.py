"""The index of a store agrees with each snapshot's manifest, whatever happened to manifests and index."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.sums import index as index_module
from dbdyno.snapshot.reading.sums import manifests
from dbdyno.snapshot.reading.sums.index import snapshots_in_range, snapshots_of_target, targets
from dbdyno.snapshot.store.folder import Snapshot, Store

KEYS = (Column("n", "key", "count", "BIGINT"),)
SEED = 43


def add(store: Store, at_s: int, target: str, note: str = "") -> Snapshot:
    clock = {"boot": "b", "since_boot_ns": at_s * 10**9}
    facts = {"version": "16.1", "databases": ["app"], "session": at_s % 9, "clock": clock}
    view = View("v", "now", KEYS, [(at_s,)])
    cost: dict[str, object] = {"looks": at_s % 60, "own_transactions": {"before": {"app": 3}}}
    return store.add([view], engine="postgres", target=target, at_ns=at_s * 10**9, facts=facts, note=note, cost=cost)


def said(one: Snapshot) -> tuple[object, ...]:
    cost = {name: one.manifest["cost"][name] for name in ("looks", "own_transactions")}
    facts = {name: one.facts[name] for name in ("version", "databases", "session", "clock")}
    return (one.number, one.target, one.at_ns, one.note, one.looks, one.own_session, one.steady_clock, facts, cost)


def check(folder: Path) -> None:
    """Check that the index agrees with all manifests."""
    opened = list(Store(folder))
    fresh = Store(folder)
    assert [said(one) for one in snapshots_of_target(fresh, None)] == [said(one) for one in opened]
    assert targets(Store(folder)) == sorted({one.target for one in opened})
    for name in targets(fresh):
        mine = [one for one in opened if one.target == name]
        assert [one.number for one in snapshots_in_range(fresh, name, 3, 12)] == [
            n.number for n in mine if 3 <= n.number <= 12
        ]
        assert find(fresh, "last", name).number == mine[-1].number
        at = mine[len(mine) // 2]
        assert find(fresh, at.at_utc.isoformat(), name).number == at.number


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten blocks, so that a few snapshots need several blocks and the file is rewritten often."""
    for module in (manifests, index_module):
        monkeypatch.setattr(module, "BLOCK", 4)
    monkeypatch.setattr(index_module, "REWRITE_ROWS", 3)


def test_an_index_follows_its_store_at_random(tmp_path: Path):
    dice = random.Random(SEED)
    folder = tmp_path / "snaps"
    store, clock = Store(folder), 1_800_000_000

    def one() -> Path:
        return folder / f"{dice.choice([snapshot.number for snapshot in Store(folder)]):06d}"

    def damage() -> None:
        (one() / "manifest.json").write_text("{}")

    def touch() -> None:
        os.utime(one() / "manifest.json", ns=(0, dice.randrange(10**18)))

    def flip() -> None:
        path = folder / "sums" / "index.parquet"
        if path.is_file():
            data = bytearray(path.read_bytes())
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            path.write_bytes(data)

    def forget() -> None:
        shutil.rmtree(folder / "sums", ignore_errors=True)

    deeds: list[Callable[[], None]] = [damage, touch, flip, forget, lambda: shutil.rmtree(one()), lambda: None]
    for _ in range(15):
        for _ in range(dice.randrange(4)):
            clock += dice.randrange(1, 90)
            add(store, clock, dice.choice(["db:1", "db:1", "db:2"]), dice.choice(["", "", "before"]))
        if len(list(Store(folder))) > 3:
            dice.choice(deeds)()
        if list(Store(folder)):
            check(folder)


def test_a_snapshot_is_found_by_its_note_before_and_after_the_index_is_written(tmp_path: Path):
    store = Store(tmp_path / "snaps")
    for at in range(2):
        add(store, 1_800_000_000 + at, "db:1", "batch" if at == 1 else "")
    assert find(store, "batch").number == 2
    for at in range(9):
        add(store, 1_800_000_100 + at, "db:1")
    snapshots_of_target(Store(store.folder), None)
    assert (store.folder / "sums" / "index.parquet").is_file()
    assert find(Store(store.folder), "batch").number == 2


def test_an_index_that_is_deleted_while_it_is_used_costs_nothing_but_time(tmp_path: Path):
    store = Store(tmp_path / "snaps")
    for at in range(9):
        add(store, 1_800_000_000 + at, "db:1")
    snapshots_of_target(Store(store.folder), None)
    known = snapshots_of_target(store, None)
    shutil.rmtree(store.folder / "sums")
    assert [one.looks for one in known] == [(1_800_000_000 + at) % 60 for at in range(9)]


def test_far_from_what_is_asked_for_only_folders_are_looked_at(tmp_path: Path) -> None:
    """A damaged manifest there is not noted before it is asked for; a deleted snapshot is seen at once."""
    store = Store(tmp_path)
    for at_s in range(1, 41):
        add(store, at_s, "a" if at_s % 2 else "b")
    snapshots_of_target(Store(tmp_path), None)
    for number in (2, 35):
        (tmp_path / f"{number:06d}" / "manifest.json").write_text("{")
    shutil.rmtree(tmp_path / "000007")
    fresh = Store(tmp_path)
    assert find(fresh, "last-2", "a").number == 33
    assert set(fresh.damaged) == {35}
    assert find(fresh, "last", "b").number == 40
    assert 7 not in snapshots_of_target(fresh, "a", 1).numbers
    assert 2 in snapshots_of_target(fresh, "b", 1).numbers
    assert 2 not in snapshots_of_target(fresh, "b").numbers
    assert set(fresh.damaged) == {2, 35}
    assert [one.number for one in snapshots_in_range(Store(tmp_path), "a", 3, 12)] == [3, 5, 9, 11]
