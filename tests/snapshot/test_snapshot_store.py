"""The store: numbers, names, unchanged files, and the remains of a killed process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.store.folder import Store

COLUMNS = (Column("id", "key", "count", "BIGINT"), Column("n", "counter", "count", "BIGINT"))


def add(store: Store, n: int, *, target: str = "a:1", note: str = "", at_s: int | None = None):
    view = View("pg_stat_lock", "shared", COLUMNS, [(1, n)])
    made = len(list(store)) + 1
    at_ns = (at_s if at_s is not None else 1_800_000_000 + made * 60) * 1_000_000_000
    return store.add(
        [view], engine="postgres", target=target, at_ns=at_ns, facts={}, note=note, before=store.last(target)
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "snaps")


def test_numbers_are_unique_over_targets(store: Store):
    made = [add(store, 1), add(store, 1, target="b:2"), add(store, 2)]
    assert [one.number for one in made] == [1, 2, 3]
    assert [one.number for one in store.snapshots_of("a:1")] == [1, 3]


def test_a_snapshot_is_named_by_number_note_time_or_last(store: Store):
    for n in range(4):
        add(store, n, note=f"note {n}")
    assert find(store, "2").number == 2
    assert find(store, "note 2").number == 3
    assert find(store, "last").number == 4
    assert find(store, "last-3").number == 1
    at = find(store, "3").at_utc
    assert find(store, at.isoformat()).number == 3
    assert find(store, at.replace(tzinfo=None).isoformat()).number == 3


@pytest.mark.parametrize("name", ["7", "nothing", "last-9", "1999-01-01"])
def test_a_name_that_names_nothing_says_what_would(store: Store, name: str):
    add(store, 1)
    with pytest.raises(SnapshotError, match="does not match a snapshot") as raised:
        find(store, name)
    assert "dbdyno snap list" in str(raised.value)


def test_a_number_that_was_pruned_says_which_are_beside_it(store: Store):
    for n in range(4):
        add(store, n)
    shutil.rmtree(store.folder / "000002")
    with pytest.raises(SnapshotError, match="'2' does not match a snapshot") as raised:
        find(Store(store.folder), "2")
    assert "the nearest are 1 and 3" in str(raised.value)


def test_last_needs_a_target_where_there_are_several(store: Store):
    add(store, 1)
    add(store, 1, target="b:2")
    with pytest.raises(SnapshotError, match="is ambiguous"):
        find(store, "last")
    assert find(store, "last", "b:2").number == 2


def test_an_empty_store_says_how_to_begin(store: Store):
    with pytest.raises(SnapshotError, match="contains no snapshot"):
        find(store, "last")


def test_a_view_that_did_not_change_is_written_once(store: Store):
    first, second, third = add(store, 5), add(store, 5), add(store, 6)
    assert second.file("pg_stat_lock") == first.file("pg_stat_lock")
    assert third.file("pg_stat_lock") != first.file("pg_stat_lock")
    with Interval(store, first, second) as interval:
        assert interval.query(f"select n from {interval.table('pg_stat_lock')}") == [{"n": 0}]


def test_what_a_killed_process_left_does_not_count_and_its_number_is_not_used_again(store: Store):
    add(store, 1)
    (store.folder / "000002").mkdir()
    (store.folder / "000002" / "pg_stat_lock.parquet").write_bytes(b"torn")
    assert [one.number for one in store] == [1]
    assert add(store, 2).number == 3


def test_two_targets_or_the_wrong_order_make_no_interval(store: Store):
    a, b, later = add(store, 1), add(store, 1, target="b:2"), add(store, 2)
    with pytest.raises(SnapshotError, match="1 to a:1, 2 to b:2"):
        Interval(store, a, b)
    with pytest.raises(SnapshotError, match="not later"):
        Interval(store, later, a)


def test_a_file_that_was_changed_is_an_error_with_its_place(store: Store):
    first, last = add(store, 1), add(store, 2)
    path = last.file("pg_stat_lock")
    assert path is not None
    path.write_bytes(b"torn")
    with Interval(store, first, last) as interval, pytest.raises(Exception, match="pg_stat_lock"):
        interval.table("pg_stat_lock")
