"""Sub-intervals are added up: a damaged one costs only itself, and cached sums are never stale."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_store import MadeServer

from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.reading.sums.index import snapshots_in_range, snapshots_of_target
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Snapshot


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    return MadeServer(tmp_path / "snaps")


def steady(server: MadeServer, count: int) -> list[Snapshot]:
    """Take `count` snapshots of one load: statement 1 has 100 calls of 2 ms in each sub-interval."""
    taken = []
    for _ in range(count):
        server.call(1, 100, 200.0)
        server.touch(7, idx_scan=100)
        taken.append(server.step())
    return taken


def rows(server: MadeServer, first: Snapshot, last: Snapshot, view: str = "pg_stat_statements") -> list[dict]:
    with Interval(server.store, first, last) as interval:
        return interval.query(f"select * from {view}", view)


def test_sums_over_sub_intervals_are_the_difference_of_the_ends(server: MadeServer):
    taken = steady(server, 5)
    (row,) = rows(server, taken[0], taken[-1])
    assert (row["calls"], row["total_exec_time"], row["verdict"], row["life"]) == (400, 800.0, "ok", "kept")
    (table,) = rows(server, taken[0], taken[-1], "pg_stat_user_tables")
    assert (table["idx_scan"], table["seq_scan"], table["relname"]) == (400, 0, "t7")


def test_a_reset_of_statements_costs_what_was_before_it_in_its_own_sub_interval(server: MadeServer):
    taken = steady(server, 3)
    server.statements.clear()
    server.statements_reset_us = 1_800_000_200_000_000
    taken += steady(server, 3)
    (row,) = rows(server, taken[0], taken[-1])
    assert row["calls"] == 500, "four of five sub-intervals, and what was counted from the reset on"
    assert row["why"].startswith("at least: pg_stat_statements was reset at 2027-01-15 08:03:20")
    (table,) = rows(server, taken[0], taken[-1], "pg_stat_user_tables")
    assert table["idx_scan"] == 500, "the tables were not reset"
    with Interval(server.store, taken[0], taken[-1]) as interval:
        model = report(interval)
    assert model["verdict"]["word"] == "reset"
    assert model["verdict"]["why"].startswith("4.7 of 5 minutes; pg_stat_statements was reset")


def test_somebody_who_resets_the_statements_in_each_sub_interval_leaves_a_top_sql(server: MadeServer):
    taken = steady(server, 1)
    for _ in range(4):
        server.call(2, 50, 100.0)  # before the reset: nobody can know these
        server.statements.clear()
        server.statements_reset_us = (server.at_s + 6) * 1_000_000
        taken += steady(server, 1)
    with Interval(server.store, taken[0], taken[-1]) as interval:
        model = report(interval)
    assert model["verdict"]["why"].startswith("3.6 of 4 minutes; pg_stat_statements was reset")
    (row,) = rows(server, taken[0], taken[-1])
    assert (row["calls"], row["verdict"]) == (400, "evicted") and row["why"].startswith("at least: ")
    assert row["why"].count("at least") == 1
    ((alone,), (two,)) = rows(server, taken[0], taken[1]), rows(server, taken[1], taken[2])
    assert (alone["calls"], two["calls"]) == (100, 100), "of two snapshots alike"


def test_a_report_without_any_loss_says_that_the_data_are_complete(server: MadeServer):
    taken = steady(server, 3)
    with Interval(server.store, taken[0], taken[-1]) as interval:
        assert report(interval)["verdict"]["word"] == "data complete"


def test_a_new_statement_beside_an_eviction_has_at_least_its_calls(server: MadeServer):
    taken = steady(server, 3)
    server.call(2, 7, 14.0)
    server.dealloc += 1
    taken += steady(server, 2)
    found = {row["queryid"]: row for row in rows(server, taken[0], taken[-1])}
    assert (found[2]["calls"], found[2]["verdict"]) == (7, "evicted")
    assert found[2]["why"].startswith("at least")
    assert (found[1]["calls"], found[1]["verdict"]) == (400, "ok")


def test_what_came_and_went_inside_is_not_lost(server: MadeServer):
    taken = steady(server, 2)
    server.call(3, 5, 10.0)
    taken += steady(server, 2)
    del server.statements[3]
    server.dealloc += 1
    taken += steady(server, 2)
    found = {row["queryid"]: row for row in rows(server, taken[0], taken[-1])}
    assert (found[3]["calls"], found[3]["life"]) == (5, "gone")


def test_a_torn_file_between_the_ends_costs_nothing_where_nothing_broke_off(server: MadeServer):
    taken = steady(server, 3)
    file = taken[1].file("pg_stat_user_tables")
    assert file is not None
    file.write_bytes(b"this file is torn")
    (row,) = rows(server, taken[0], taken[-1])
    assert row["calls"] == 200, "statements are whole"
    with Interval(server.store, taken[0], taken[-1]) as interval:
        assert interval.verdict("view:pg_stat_user_tables").word == "ok"


def test_a_torn_file_beside_a_reset_costs_its_sub_intervals(server: MadeServer):
    taken = steady(server, 3)
    server.statements.clear()
    server.statements_reset_us = 1_800_000_200_000_000
    taken += steady(server, 2)
    file = taken[3].file("pg_stat_statements")
    assert file is not None
    file.write_bytes(b"this file is torn")
    with Interval(server.store, taken[0], taken[-1]) as interval:
        verdict = interval.verdict("view:pg_stat_statements")
    assert verdict.word == "partial" and "could not be read in snapshot 4" in verdict.why


def test_kept_sums_can_be_deleted_and_come_back(server: MadeServer):
    taken = steady(server, 4)
    before = rows(server, taken[0], taken[-1])
    kept = server.store.folder / "sums"
    assert list(kept.glob("*/*/*/chunk.json"))
    shutil.rmtree(kept)
    assert rows(server, taken[0], taken[-1]) == before
    assert list(kept.glob("*/*/*/chunk.json"))


@pytest.mark.soak
def test_an_hour_that_grows_takes_over_what_it_had(server: MadeServer):
    taken = steady(server, 4)
    rows(server, taken[0], taken[-1])
    taken += steady(server, 4)
    (row,) = rows(server, taken[0], taken[-1])
    assert row["calls"] == 700
    (again,) = rows(server, taken[2], taken[5])
    assert again["calls"] == 300, "a stretch inside an hour"


def test_a_folder_named_with_other_digits_is_no_snapshot(server: MadeServer):
    taken = steady(server, 2)
    (server.store.folder / "²").mkdir()
    assert [one.number for one in snapshots_of_target(server.store, None)] == [one.number for one in taken]


def test_the_sums_of_a_snapshot_that_was_replaced_are_not_used(server: MadeServer):
    taken = steady(server, 4)
    rows(server, taken[0], taken[-1])
    shutil.rmtree(server.store.folder / f"{taken[1].number:06d}")
    (row,) = rows(server, taken[0], taken[-1])
    assert row["calls"] == 300, "the two neighbours are one sub-interval now"
    assert len(snapshots_in_range(server.store, "db:1", 0, 99)) == 3


def test_a_store_that_cannot_be_written_is_read_all_the_same(server: MadeServer, monkeypatch: pytest.MonkeyPatch):
    taken = steady(server, 4)
    (server.store.folder / "sums").write_text("in the way")
    (row,) = rows(server, taken[0], taken[-1])
    assert row["calls"] == 300


@pytest.mark.soak
def test_hours_and_their_ends_add_up(server: MadeServer):
    server.every_s = 600
    taken = steady(server, 20)
    for first, last in ((0, 19), (3, 17), (5, 6), (2, 11)):
        (row,) = rows(server, taken[first], taken[last])
        assert row["calls"] == 100 * (last - first)


def test_two_periods_are_compared_by_statement(server: MadeServer):
    server.texts[4] = "copy /* dbdyno */ (select calls from pg_stat_statements) to stdout"
    taken = steady(server, 8)
    for _ in range(8):
        server.call(1, 100, 900.0)
        server.call(9, 10, 50.0)
        server.call(4, 10, 50.0)
        server.touch(7, seq_scan=100)
        taken.append(server.step())
    periods = [period(server.store, text) for text in ("snap:1..8", "snap:8..16")]
    model = compare(server.store, *periods)
    assert model["sections"][0]["notes"][0].startswith(
        "+12.5 ms of statement time a second, of it 93% select 1 from t (1)"
    )
    objects = next(one for one in model["sections"] if one["name"] == "objects")
    rows = {(row["object"], row["measure"]): row for table in objects["tables"] for row in table["rows"]}
    slower = rows["1", "time, ms a second"]
    assert (slower["decision"], slower["a"], slower["b"]) == ("more", pytest.approx(200 / 60), pytest.approx(15.0))
    assert slower["low"] <= slower["ratio"] <= slower["high"]
    assert rows["9", "calls a second"]["decision"] == "new"
    assert rows["app.public.t7", "sequential scans a second"]["decision"] == "new"
    assert ("1", "calls a second") not in rows, "what did not change is folded"
    assert "4" not in {name for name, _ in rows}
    assert "by statement: 1 of dbdyno's own are left out" in objects["notes"]


def test_sums_of_floats_do_not_depend_on_which_thread_was_faster(server: MadeServer, tmp_path: Path):
    taken = steady(server, 4)
    with Interval(server.store, taken[0], taken[-1]) as interval:
        for number in range(24):
            interval.connection.execute(
                f"copy (select exp(40 * (hash(range + {number}) % 1000 / 1000)) as x from range(20000))"
                f" to '{tmp_path / str(number)}.parquet'"
            )
    found = set()
    for _ in range(20):
        with Interval(server.store, taken[0], taken[-1]) as interval, interval.halves(2)[0] as half:
            for one in (interval, half):
                found.add(one.query(f"select sum(x) as x from read_parquet('{tmp_path}/*.parquet')")[0]["x"])
    assert len(found) == 1, "the same rows, the same sum, to the last digit"
