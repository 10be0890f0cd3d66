"""Maintenance of a store during snapshots: no later report has to do work that a watch could do each hour."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_store import MadeServer

from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.sums.chunk import Chunk
from dbdyno.snapshot.store import upkeep
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.upkeep import HOURS_MOST, cache_sums, tidy_when_due

COUNT = (Column("id", "key", "count", "BIGINT"), Column("n", "counter", "count", "BIGINT"))


def watched(server: MadeServer, hours: int) -> Snapshot:
    """Take a snapshot each half hour, with maintenance after each; return the last one."""
    made = server.step()
    for _ in range(2 * hours):
        server.call(1, 100, 200.0)
        made = server.step()
        tidy_when_due(server.store, made)
    return made


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    return MadeServer(tmp_path / "snaps", every_s=1800)


@pytest.mark.soak
def test_the_sums_of_an_hour_are_kept_when_the_next_begins(server: MadeServer, monkeypatch: pytest.MonkeyPatch):
    last = watched(server, 5)
    kept = sorted(path.parent.parent.name for path in server.store.folder.glob("sums/*/*/*/chunk.json"))
    begun = [f"{one.at_utc:%Y%m%dT%H}" for one in server.store][1:]
    assert kept == sorted(set(begun))[:-1], "all hours but the one that goes on"
    made: list[Chunk] = []
    make = Chunk._make
    monkeypatch.setattr(Chunk, "_make", lambda self: (made.append(self), make(self)))
    with Interval(server.store, server.store.open(1), last) as interval:
        (row,) = interval.query(f"select calls from {interval.table('pg_stat_statements')}")
    assert row["calls"] == 1000
    assert len(made) == 1, "a report makes what goes on, no more"


def test_hours_without_sums_are_caught_up_a_few_at_a_time(server: MadeServer):
    for _ in range(20):
        server.call(1, 100, 200.0)
        last = server.step()
    assert cache_sums(server.store, last) == HOURS_MOST
    assert cache_sums(server.store, last) == 0, "they are kept"


def test_a_store_that_takes_no_sums_is_left_alone(server: MadeServer, monkeypatch: pytest.MonkeyPatch):
    last = watched(server, 1)
    monkeypatch.setattr("dbdyno.snapshot.reading.sums.chain._writable", lambda folder: (folder, folder))
    assert cache_sums(server.store, last) == 0


def test_both_of_two_targets_in_one_store_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Their numbers take turns: the one that is due may always be the other's."""
    monkeypatch.setattr(upkeep, "GROUP", 4)
    store = Store(tmp_path / "snaps")
    for at in range(14):
        name = f"db:{at % 2}"
        view = View("counts", "shared", COUNT, [(1, at)])
        before = store.last(name)
        made = store.add([view], engine="postgres", target=name, at_ns=at * 10**9, facts={}, before=before)
        tidy_when_due(store, made)
    assert {one.target for one in store if "pack" in one.manifest} == {"db:0", "db:1"}
