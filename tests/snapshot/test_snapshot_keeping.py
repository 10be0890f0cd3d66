"""A store for months: a damaged file costs only its snapshot; packing and pruning lose nothing that a report needs."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from command_line import checked
from command_line import dbdyno as run
from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.plans import plan_store as plans
from dbdyno.snapshot.plans.entries import Clock
from dbdyno.snapshot.plans.executions import GatheredExecutions
from dbdyno.snapshot.plans.reader import read
from dbdyno.snapshot.plans.source import log_of_stream
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.store import locks, manifest, retention
from dbdyno.snapshot.store.check import check, repair
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.pack import pack_full
from dbdyno.snapshot.store.prune import execute_plan, plan_pruning

COLUMNS = (
    Column("id", "key", "count", "BIGINT"),
    Column("n", "counter", "count", "BIGINT"),
    Column("name", "text", "text", "VARCHAR"),
)
ACTIVITY = (Column("at_us", "key", "us", "BIGINT"), Column("session", "key", "count", "BIGINT"))
BEGUN_S = 1_700_000_000 // 3600 * 3600


def add(store: Store, rows: Sequence[tuple[int, int]], *, minute: int, note: str = "") -> Snapshot:
    """Add a snapshot at a minute, with counters, a view that never changes, and one sampled session."""
    at_s = BEGUN_S + 60 * minute
    views = [
        View("counts", "shared", COLUMNS, [(key, n, f"row {key}") for key, n in rows]),
        View("fixed", "shared", COLUMNS, [(1, 7, "same")]),
        View("activity", "now", ACTIVITY, [((at_s - 1) * 1_000_000, minute)]),
    ]
    return store.add(
        views,
        engine="postgres",
        target="a:1",
        at_ns=at_s * 10**9,
        facts={"database": "app"},
        note=note,
        cost={"looks": 60, "own_transactions": {"before": {"app": 1}, "after": {"app": 2}}},
        before=store.last("a:1"),
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "snaps")


def grown(store: Store, count: int, *, every: int = 1) -> list[Snapshot]:
    """Add `count` snapshots, `every` minutes apart; row 1 grows by 5 in each, row 2 by 1."""
    return [add(store, [(1, 5 * m), (2, m)], minute=m * every) for m in range(count)]


def known(store: Store, first: int, last: int) -> tuple[list[object], int, int]:
    """Return the counters, the number of samples and the number of looks in the interval of two snapshots."""
    with Interval(store, store.open(first), store.open(last)) as interval:
        counts = interval.query(f"select id, n, verdict from {interval.table('counts')} order by id")
        source, looks = interval.samples("activity", ACTIVITY)
        return list(counts), len(interval.query(f"select * from {source}")), looks


def old(path: Path) -> None:
    """Make a file or folder look as if nobody had written to it for a day."""
    os.utime(path, (time.time() - 86_400,) * 2)


def test_what_the_columns_are_stands_once_in_the_store(store: Store):
    grown(store, 3)
    assert len(list((store.folder / "shapes").iterdir())) == 1
    assert "columns" not in (store.folder / "000002" / "manifest.json").read_text()
    assert store.open(2).columns("counts") == COLUMNS


def test_a_store_of_the_first_schema_still_reads_and_goes_on(store: Store):
    for one in grown(store, 2):
        whole = {**one.manifest, "schema": 1}
        (store.folder / f"{one.number:06d}" / "manifest.json").write_text(json.dumps(whole))
    (next((store.folder / "shapes").iterdir())).unlink()
    assert add(store, [(1, 10), (2, 2)], minute=2).number == 3
    assert known(Store(store.folder), 1, 3)[0] == [
        {"id": 1, "n": 10, "verdict": "ok"},
        {"id": 2, "n": 2, "verdict": "ok"},
    ]


def test_columns_that_were_lost_are_written_again_by_the_next_snapshot(store: Store):
    grown(store, 2)
    next((store.folder / "shapes").iterdir()).write_text("{")
    assert list(Store(store.folder)) == []
    add(store, [(1, 1)], minute=5)
    assert [one.number for one in Store(store.folder)] == [1, 2, 3]


def test_a_torn_manifest_costs_that_snapshot_only_and_is_told(store: Store):
    grown(store, 3)
    (store.folder / "000002" / "manifest.json").write_text('{"number": 2,')
    listed = run("snap", "list", "--store", store.folder, "--format", "json")
    assert [row["number"] for row in json.loads(listed.stdout)] == [1, 3]
    assert "snapshot 2 is left out" in listed.stderr and "is not complete JSON" in listed.stderr
    assert add(store, [(1, 20), (2, 4)], minute=4).number == 4


def test_a_torn_file_costs_that_view_of_that_snapshot_only(store: Store):
    grown(store, 3)
    path = store.folder / "000002" / "counts.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with Interval(store, store.open(1), store.open(2)) as interval:
        assert (
            interval.missing_reason("counts")[0]
            == "could not be read in snapshot 2: its file 000002/counts.parquet is torn"
        )
        assert interval.has("fixed")
    assert known(store, 1, 3)[0][0] == {"id": 1, "n": 10, "verdict": "ok"}


def test_a_file_that_is_torn_is_not_pointed_to_again(store: Store):
    grown(store, 2)
    (store.folder / "000001" / "fixed.parquet").write_bytes(b"PAR1")
    assert add(store, [(1, 9)], minute=3).views["fixed"]["file"] == "000003/fixed.parquet"


def test_a_snapshot_that_fails_leaves_nothing_and_burns_no_number(store: Store):
    grown(store, 1)
    broken = View("counts", "shared", COLUMNS, [("no number", 1, "x")])
    with pytest.raises(SnapshotError, match="cannot be written"):
        store.add([broken], engine="postgres", target="a:1", at_ns=1, facts={})
    assert store.numbers() == [1]
    assert add(store, [(1, 1)], minute=1).number == 2


def test_a_whole_store_has_no_fault(store: Store):
    grown(store, 3)
    done = run("snap", "check", "--store", store.folder)
    assert (done.returncode, done.stdout) == (0, ""), done
    assert "3 snapshots, nothing wrong" in done.stderr


def test_check_finds_what_is_torn_changed_gone_or_left_over_and_repairs_it(store: Store):
    grown(store, 5)
    (store.folder / "000002" / "manifest.json").write_text("{")
    changed = store.folder / "000003" / "counts.parquet"
    content = bytearray(changed.read_bytes())
    content[len(content) // 3] ^= 1
    changed.write_bytes(content)
    (store.folder / "000004" / "counts.parquet").unlink()
    (store.folder / "000006").mkdir()
    (store.folder / "000006" / "counts.parquet").write_bytes(b"half")
    old(store.folder / "000006")
    found = {fault.where: (fault.what.split(":")[0], fault.costs, fault.repair) for fault in check(store)}
    assert found == {
        "000002/manifest.json": ("is not complete JSON", (2,), "set aside"),
        "000003/counts.parquet": ("was changed after it was written", (3,), "set aside"),
        "000004/counts.parquet": ("cannot be read", (4,), "set aside"),
        "000006": ("a killed process left it", (), "delete"),
    }
    assert run("snap", "check", "--store", store.folder).returncode == 1
    checked(run("snap", "check", "--repair", "--store", store.folder))
    assert check(Store(store.folder)) == []
    assert changed.with_name("counts.parquet.torn").exists(), "nothing that was read is lost"
    assert not (store.folder / "000006").exists()
    fresh = Store(store.folder)
    assert [one.number for one in fresh] == [1, 3, 4, 5]
    assert "was changed after it was written" in fresh.open(3).problem("counts")[0]
    assert known(fresh, 1, 5)[0][0] == {"id": 1, "n": 20, "verdict": "ok"}


def test_a_snapshot_being_taken_is_no_fault(store: Store):
    grown(store, 1)
    (store.folder / "000002").mkdir()
    assert check(store) == []


def test_a_manifest_that_was_edited_is_told_and_left_as_it_is(store: Store):
    grown(store, 2)
    path = store.folder / "000001" / "manifest.json"
    path.write_text(path.read_text().replace('"note":""', '"note":"x"'))
    (fault,) = check(store)
    assert (fault.repair, fault.costs) == (None, (1,)) and "its checksum is wrong" in fault.what
    assert repair(store, [fault]) == [fault]


def test_no_store_is_a_question_of_usage(tmp_path: Path):
    done = run("snap", "check", "--store", tmp_path / "none")
    assert done.returncode == 2 and "there is no store" in done.stderr


@pytest.mark.soak
def test_a_pack_changes_no_figure_and_takes_the_place_of_many_files(store: Store):
    grown(store, 10)
    before = [known(store, a, b) for a, b in ((1, 10), (3, 4), (2, 9))]
    assert pack_full(store, "a:1", group=4) == 2
    assert [known(store, a, b) for a, b in ((1, 10), (3, 4), (2, 9))] == before
    assert not list((store.folder / "000003").glob("*.parquet"))
    text = (store.folder / "000003" / "manifest.json").read_text()
    assert text.count("packs/") == 1, "the pack stands once, not with each view"
    assert (store.folder / "000001" / "fixed.parquet").exists(), "numbers 9 and 10 point to it"
    assert check(store) == []
    later = add(store, [(1, 50), (2, 10)], minute=10)
    assert later.views["fixed"]["file"] == "000001/fixed.parquet"
    assert pack_full(store, "a:1", group=2) == 1
    assert known(store, 1, 11)[0][0]["n"] == 50


def test_columns_that_come_in_between_are_packed_apart(store: Store):
    grown(store, 2)
    more = (*COLUMNS, Column("extra", "counter", "count", "BIGINT"))
    for n in (10, 15, 20):
        store.add(
            [View("counts", "shared", more, [(1, n, "row 1", n)])],
            engine="postgres",
            target="a:1",
            at_ns=(BEGUN_S + 60 * n) * 10**9,
            facts={},
            before=store.last("a:1"),
        )
    assert pack_full(store, "a:1", group=4) == 1
    with Interval(store, store.open(3), store.open(4)) as interval:
        assert interval.query(f"select n, extra from {interval.table('counts')}") == [{"n": 5, "extra": 5}]
    with Interval(store, store.open(1), store.open(5)) as interval:
        assert interval.query(f"select n from {interval.table('counts')} where id = 1") == [{"n": 20}]


def test_packing_waits_for_a_snapshot_that_is_being_written(store: Store, monkeypatch: pytest.MonkeyPatch):
    grown(store, 5)
    monkeypatch.setattr(locks, "TIMEOUT_S", 0.1)
    with locks.shared_lock(store.folder), pytest.raises(SnapshotError, match="is in use by another dbdyno"):
        pack_full(store, "a:1", group=4)
    assert pack_full(store, "a:1", group=4) == 1


@pytest.mark.parametrize(
    "text", ["", "minute", "minute:0d", "hour:2d, minute:3d", "minute:2d, hour:2d", "second:1d", "minute:2x"]
)
def test_rules_that_are_none_say_what_one_is(text: str):
    with pytest.raises(SnapshotError, match="--keep") as raised:
        retention.rules_of(text)
    assert "next:" in str(raised.value)


def pruned(store: Store, rules: str, **options: bool) -> Store:
    execute_plan(store, plan_pruning(store, "a:1", retention.rules_of(rules), time.time_ns(), **options))
    return Store(store.folder)


def test_of_each_hour_one_stays_and_a_report_over_it_says_the_same(store: Store):
    grown(store, 20, every=10)
    before = known(store, 1, 20)
    fresh = pruned(store, "minute:1h, hour:2d")
    numbers = [one.number for one in fresh]
    assert numbers == [1, 7, 13, 15, 16, 17, 18, 19, 20]
    assert known(fresh, 1, 20) == before, "counters, samples and looks"
    assert fresh.open(7).manifest["cost"]["own_transactions"] == {"before": {"app": 5 * 3 + 1}, "after": {"app": 2}}
    assert check(fresh) == []
    again = plan_pruning(fresh, "a:1", retention.rules_of("minute:1h, hour:2d"), time.time_ns())
    assert again.go == [], "a second time changes nothing"


def test_both_sides_of_a_break_stay_so_that_nothing_known_is_lost(store: Store):
    for m in range(12):
        rows = [(1, 5 * (m if m < 4 else m - 4)), *([(2, m)] if m < 9 else [])]
        add(store, rows, minute=m)
    asked = plan_pruning(store, "a:1", retention.rules_of("hour:2d"), time.time_ns())
    assert asked.breaks == [4, 5, 9, 10], "row 1 began again at the 5th, row 2 was gone at the 10th"
    fresh = pruned(store, "hour:2d")
    assert [one.number for one in fresh] == [1, 4, 5, 9, 10, 12]
    assert known(fresh, 1, 4)[0][0]["n"] == 5 * 3 and known(fresh, 5, 12)[0][0]["n"] == 5 * 7


def test_rows_that_ended_may_be_given_up(store: Store):
    for m in range(10):
        add(store, [(m, 1)], minute=m)
    assert len(plan_pruning(store, "a:1", retention.rules_of("hour:2d"), time.time_ns()).go) == 0
    assert len(plan_pruning(store, "a:1", retention.rules_of("hour:2d"), time.time_ns(), rows=False).go) == 8


def test_what_has_a_name_stays(store: Store):
    for m in range(20):
        add(store, [(1, m)], minute=m, note="before batch" if m == 5 else "")
    assert run("snap", "baseline", "quiet", "9..11", "--store", store.folder).returncode == 0
    done = run("snap", "prune", "--keep", "hour:2d", "--store", store.folder, "--format", "json")
    assert json.loads(done.stdout)[0] | {} == {
        "target": "a:1",
        "gone": 14,
        "stay": 6,
        "of them beside a break": 0,
        "with a name": 4,
        "logs' plans": 0,
        "numbers": "2-5, 7-8, 12-19",
    }


def test_a_dry_run_changes_nothing(store: Store):
    grown(store, 5)

    def kept() -> list[Path]:
        """All files but the sums, which are made where they are missing."""
        return sorted(path for path in store.folder.rglob("*") if "sums" not in path.parts)

    before = kept()
    done = run("snap", "prune", "--keep", "hour:2d", "--dry-run", "--store", store.folder)
    assert done.returncode == 0 and "2-4" in done.stdout
    assert kept() == before


def test_files_that_later_snapshots_point_to_outlive_their_own(store: Store):
    grown(store, 5)
    fresh = pruned(store, "hour:2d")
    assert [one.number for one in fresh] == [1, 5]
    last = fresh.open(5)
    assert last.problem("fixed") is None and last.views["fixed"]["in"] == 1


def test_a_clock_far_ahead_deletes_nothing(store: Store):
    grown(store, 3)
    years = BEGUN_S * 10**9 + 3 * 365 * 86_400 * 10**9
    assert plan_pruning(store, "a:1", retention.rules_of("minute:2d"), years).go == [], (
        "ages count from the latest snapshot"
    )


def test_a_pruning_that_was_killed_counts_no_sample_twice(store: Store, monkeypatch: pytest.MonkeyPatch):
    grown(store, 6)
    before = known(store, 1, 6)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for m in range(6, 8):
        add(store, [(1, 5 * m), (2, m)], minute=m + 60)
    monkeypatch.setattr("dbdyno.snapshot.store.prune._drop", killed)
    with pytest.raises(KeyboardInterrupt):
        pruned(store, "hour:2d")
    monkeypatch.undo()
    (one, *_) = [fault for fault in check(Store(store.folder)) if "also in" in fault.what]
    assert one.repair == "delete"
    fresh = pruned(store, "hour:2d")
    counts, samples, looks = known(fresh, 1, 8)
    assert counts[0]["n"] == 35 and (samples, looks) == (7, 7 * 60)
    assert before[1:] == (5, 300)


def kept_log(store: Store, minute: int, target: str = "a:1") -> None:
    """Save the plans of a log with one execution at this minute."""
    at = datetime.fromtimestamp(BEGUN_S + 60 * minute, UTC)
    line = f"{at:%Y-%m-%d %H:%M:%S}.000 UTC [1] LOG:  duration: 1.0 ms  statement: select {target[0]}\n"
    with GatheredExecutions() as gathered:
        (log,) = read([log_of_stream(f"{minute}.log", io.BytesIO(line.encode()))], gathered, Clock())
        plans.save_plans(store.folder, target, gathered, 0, log)


def test_plans_of_logs_go_with_the_last_snapshot_beside_them(store: Store):
    grown(store, 6, every=60)
    for minute in (30, 200, 290):
        kept_log(store, minute)
    kept_log(store, 31, "b:1")
    words = ("snap", "prune", "--keep", "minute:3h", "--store", store.folder, "--format", "json")
    (asked,) = json.loads(run(*words, "--dry-run").stdout)
    assert (asked["would go"], asked["logs' plans"]) == (3, 1)
    assert len(list(plans.stored_logs(store.folder))) == 4, "a dry run deletes nothing"
    run(*words)
    assert [(one.manifest["target"], one.manifest["log"]) for one in plans.stored_logs(store.folder)] == [
        ("b:1", "31.log"),
        ("a:1", "200.log"),
        ("a:1", "290.log"),
    ]
    assert not list(store.folder.glob("plans/.*"))


def test_a_torn_manifest_stops_no_pruning_and_its_files_stay(store: Store):
    grown(store, 6)
    path = manifest.path_of(store.folder, 3)
    path.write_text("{")
    done = checked(run("snap", "prune", "--keep", "hour:2d", "--store", store.folder))
    assert "snapshot 3 is left out" in done.stderr
    assert path.exists() and (path.parent / "counts.parquet").exists()


def test_the_hour_that_a_change_of_summer_time_gives_twice_is_two_hours(store: Store):
    begun = int(datetime.fromisoformat("2026-10-25T02:10+02:00").timestamp())
    for at in range(12):
        add(store, [(1, at)], minute=(begun - BEGUN_S) // 60 + 10 * at)
    assert find(store, "2026-10-25T02:15+02:00").number == 1
    assert find(store, "2026-10-25T02:15+01:00").number == 7
    assert find(store, "2026-10-25T01:15").number == 7, "without a zone it is UTC"
    stay = retention.numbers_to_keep(list(store), retention.rules_of("hour:2d"), time.time_ns())
    assert sorted(stay) == [1, 6, 12], "hours are those of UTC: none has 120 minutes, none is missing"


@pytest.mark.parametrize("hours", [-7, 7])
def test_a_clock_of_this_machine_that_is_wrong_by_hours_prunes_no_more(store: Store, hours: int):
    grown(store, 4, every=60)
    right = plan_pruning(store, "a:1", retention.rules_of("minute:2h, hour:1d"), (BEGUN_S + 180 * 60) * 10**9)
    wrong = plan_pruning(
        store, "a:1", retention.rules_of("minute:2h, hour:1d"), (BEGUN_S + 180 * 60 + hours * 3600) * 10**9
    )
    assert set(wrong.go) <= set(right.go)


def test_a_counter_that_passes_its_64_bits_is_a_new_life_and_never_negative(store: Store):
    first, last = (
        add(store, [(1, 2**63 - 5), (2, 0)], minute=0),
        add(store, [(1, -(2**63) + 3), (2, 2**63 - 1)], minute=1),
    )
    (wrapped, most), _, _ = known(store, first.number, last.number)
    assert wrapped == {"id": 1, "n": None, "verdict": "reset"}
    assert most == {"id": 2, "n": 2**63 - 1, "verdict": "ok"}


def test_the_samples_before_the_latest_snapshot_stay_too(store: Store):
    grown(store, 8)
    before = known(store, 1, 8)
    fresh = pruned(store, "hour:2d")
    assert [one.number for one in fresh] == [1, 8]
    assert known(fresh, 1, 8) == before
    add(fresh, [(1, 45), (2, 9)], minute=9)
    assert known(fresh, 1, 9)[1:] == (8, 8 * 60) and check(fresh) == []


def test_two_prunings_at_once_are_refused_and_a_snapshot_meanwhile_is_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    grown(store, 5)
    monkeypatch.setattr(locks, "TIMEOUT_S", 0.1)
    with locks.maintenance_lock(store.folder):
        with pytest.raises(SnapshotError, match="is in use by another dbdyno"):
            pruned(store, "hour:2d")
        assert add(store, [(1, 100), (2, 9)], minute=5).number == 6
    assert check(store) == []
