"""Tests of the growth studies, at small sizes on a server: they run, do equal work, and find their cause."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine import cold_start, usage
from dbdyno.bench.engine.embedded_server import files_below
from dbdyno.bench.postgres import statements
from dbdyno.study.library import find_study, loader
from dbdyno.study.plan.plan import plan_from_dict
from mariadb_server import missing
from skipped import skipped_on

STUDIES_HERE = (
    "insert-size",
    "checksum",
    "buffer-cache",
    "key-lookup",
    "keep-cache",
    "data-growth",
    "gather-statistics",
    "batch-split",
    "temp-device",
)


def ran(lab, *words: str, seed: int = 1) -> JsonObject:
    """Return the analysis of a successful run."""
    done = lab("run", *words, "--seed", str(seed))
    run = max((lab.folder / "runs").iterdir())
    model: JsonObject = json.loads((run / "analysis.json").read_text())
    assert [arm["errors"] for arm in model["arms"]] == [0] * len(model["arms"]), done.stdout
    return {**model, "manifest": json.loads((run / "manifest.json").read_text())}


def used(model: JsonObject, arm: int, name: str) -> float:
    (row,) = (row for row in model["resources"] if row["arm"] == arm)
    return float(row[name])


@pytest.mark.parametrize("name", STUDIES_HERE)
def test_each_study_has_three_lengths_and_a_plan_that_is_kept(name: str):
    study = find_study(name)
    quick, usual, full = (study.plan({}, **how) for how in ({"quick": True}, {}, {"full": True}))
    assert quick.schedule.blocks < usual.schedule.blocks < full.schedule.blocks
    assert len(quick.arms) <= len(usual.arms) <= len(full.arms) <= 64
    assert plan_from_dict(usual.to_dict()) == usual
    assert all(len(arm.name) <= 60 for arm in full.arms)
    for arm in usual.arms if usual.factors else []:
        assert set(arm.levels) == set(usual.factors)


@pytest.mark.soak
def test_rows_of_an_insert_are_the_same_however_they_are_sent(lab, dsn):
    forms = ("--set", "form=values,pipeline,array,copy", "--set", "commit=end")
    sizes = ("--set", "rows=20", "--set", "batch=1,20", "--quick", "--blocks", "2")
    model = ran(lab, "insert-size", *forms, *sizes, "--target", dsn)
    assert len(model["arms"]) == 8
    assert [gate["ok"] for gate in model["gates"] if gate["code"] == "work"] == [True] * 7


@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_rows_of_a_file_are_loaded_into_mariadb_from_the_plan_and_from_no_file(lab):
    sizes = ("--set", "rows=20", "--set", "batch=10", "--set", "commit=end,10", "--quick", "--blocks", "2")
    model = ran(lab, "insert-size", "--set", "form=values,load", *sizes, "--target", "mariadb")
    assert len(model["arms"]) == 4
    assert {gate["ok"] for gate in model["gates"] if gate["code"] == "work"} == {True}


def test_a_commit_stands_where_the_study_says(lab):
    plan = find_study("insert-size").plan({"batch": "10", "commit": "statement,100,end"})
    commits = [arm.scripts[0].text.count("commit;") for arm in plan.arms if arm.scripts]
    assert commits == [0, 10, 1]
    with pytest.raises(PlanError, match="commit '50' is neither"):
        find_study("insert-size").plan({"batch": "1,100", "commit": "50"})


def test_a_statement_size_that_does_not_divide_the_rows_is_refused(lab):
    done = lab("run", "insert-size", "--set", "batch=3", code=2)
    assert "1000 rows cannot be divided into statements of 3 rows" in done.stderr


@pytest.mark.soak
def test_checksums_are_those_of_the_servers(lab):
    model = ran(lab, "checksum", "--quick", "--blocks", "2", "--set", "rows=2000", "--set", "load=scan")
    assert [arm["changes"].get("initdb") for arm in model["arms"]] == [None, "--data-checksums"]
    assert sorted(target["data_checksums"] for target in model["manifest"]["targets"].values()) == ["off", "on"]
    assert any("CPU of a transaction with checksums on" in sentence for sentence in model["verdict"]["sentences"])


@pytest.mark.soak
def test_pages_outside_of_shared_buffers_are_read_by_calls_and_cold_ones_from_the_storage(lab):
    sizes = ("--set", "rows=20000", "--set", "load=scan", "--set", "shared_buffers=1MB")
    model = ran(lab, "buffer-cache", "--quick", "--blocks", "2", "--set", "begin=hot,cold", *sizes)
    assert model["manifest"]["switch"] == "turns"
    assert model["method"]["overhead"] is None, "what watching costs is not measured with a restart for each turn"
    assert used(model, 0, "read_calls") > 150, "a table of some 300 pages, one call for most"
    if not any(target["data_in_memory"] for target in model["manifest"]["targets"].values()):
        assert used(model, 1, "read_bytes") > 100_000
        assert used(model, 0, "read_bytes") < 10_000


def test_a_cold_turn_on_somebody_elses_server_is_refused(lab, dsn):
    plan = lab.plan('[[arm]]\nname = "a"\ncold = true\n[[arm]]\nname = "b"\n')
    done = lab("run", plan, code=2)
    assert "only servers that dbdyno starts can begin a turn cold" in done.stderr


def test_a_transaction_that_does_more_work_on_more_rows_is_named(lab):
    with skipped_on(TargetError):
        statements.preload_setting()
    two = "order by number,open orders"
    model = ran(lab, "data-growth", "--quick", "--blocks", "2", "--set", f"transaction={two}", "--set", "orders=1000")
    blocks = [used(model, arm, "blocks") for arm in range(4)]
    assert blocks[1] < 1.5 * blocks[0], "a lookup by key is one however many rows there are"
    assert blocks[3] > 5 * blocks[2], "a scan touches ten times the blocks of a table ten times as large"
    assert any(
        sentence.startswith("Transactions that do more work") and "open orders, times 10" in sentence
        for sentence in model["verdict"]["sentences"]
    )


@pytest.mark.soak
def test_statistics_are_gathered_of_as_many_tables_as_there_are_sessions(lab, dsn):
    words = ("--quick", "--blocks", "2", "--set", "rows=300", "--set", "sample=10", "--target", dsn)
    model = ran(lab, "gather-statistics", *words)
    assert [arm["sessions"] for arm in model["arms"]] == [1, 2]


@pytest.mark.soak
def test_a_batch_is_split_so_that_no_two_processes_share_a_row(lab, dsn):
    words = ("--quick", "--blocks", "2", "--set", "rows=1600", "--set", "processes=1,4", "--target", dsn)
    model = ran(lab, "batch-split", *words)
    assert [gate["ok"] for gate in model["gates"] if gate["code"] == "work"] == [True]
    (curve,) = model["factors"]["curves"]
    assert [row["level"] for row in curve["levels"]] == ["1", "4"]


def test_a_batch_that_the_processes_do_not_divide_is_refused():
    with pytest.raises(PlanError) as error:
        find_study("batch-split").plan({"rows": "600", "processes": "1,4"})
    assert "at least 800 rows" in str(error.value.next_step)


@pytest.mark.soak
def test_a_sort_without_memory_writes_temporary_files_where_its_server_is(lab, tmp_path: Path):
    words = ("--set", "place=/var/tmp", "--set", "rows=20000", "--set", "work_mem=64kB,64MB")
    model = ran(lab, "temp-device", "--quick", "--blocks", "2", *words)
    assert used(model, 0, "write_calls") > 50 > used(model, 1, "write_calls")
    assert all(arm["server"]["workdir"] == "/var/tmp" for arm in model["manifest"]["plan"]["arms"])


def test_lookups_on_a_model_are_slowest_on_disk_and_take_its_parameters(desk):
    words = ("--target", "model:exadata-x2", "--set", "keys=100000", "--set", "place=disk,flash", "--set", "cores=2")
    desk("run", "key-lookup", "--quick", "--blocks", "2", *words)
    model = json.loads((max((desk.folder / "runs").iterdir()) / "analysis.json").read_text())
    disk, flash = (arm["mean_ns"] for arm in model["arms"])
    assert disk > 2 * flash


def test_only_the_second_scan_of_a_table_with_keep_is_faster(desk):
    desk("run", "keep-cache", "--quick", "--blocks", "2", "--set", "mb=64")
    model = json.loads((max((desk.folder / "runs").iterdir()) / "analysis.json").read_text())
    first, kept, later, later_kept = (arm["mean_ns"] for arm in model["arms"])
    assert kept > 0.9 * first
    assert later_kept < 0.5 * later


def test_what_a_process_used_is_read_whatever_its_name(tmp_path: Path):
    for pid, ticks in ((7, "3 4"), (8, "5 6")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (post) gres (x) S {' '.join(['0'] * 10)} {ticks} 0\n")
    (tmp_path / "7" / "io").write_text("rchar: 1\nsyscr: 11\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 0\n")
    seven, eight = tmp_path / "7", tmp_path / "8"
    found = usage.read_usage([seven, eight, tmp_path / "9"])
    assert set(found) == {seven, eight}, "one that is gone is left out"
    assert found[seven]["system_ns"] / found[seven]["user_ns"] == pytest.approx(4 / 3)
    assert (found[seven]["read_calls"], found[seven]["read_bytes"]) == (11, 4096)
    assert "read_calls" not in found[eight], "what may not be read is not known, and not 0"


def test_only_what_was_used_since_the_first_reading_counts(tmp_path: Path):
    seven, eight = tmp_path / "7", tmp_path / "8"
    bill = usage.UsageReading({seven: 0, eight: 1}, {seven: Counter(user_ns=5)})
    seven.mkdir()
    (seven / "stat").write_text(f"7 (postgres) S {' '.join(['0'] * 10)} 10 0 0\n")
    first, second = bill.add_to_reports([{"arm": 0, "transactions": 1}, {"arm": 1, "transactions": 1}])
    assert first["user_ns"] == 10 * 10_000_000 - 5
    assert second == {"arm": 1, "transactions": 1}


def test_the_pages_of_a_file_leave_the_cache_and_its_bytes_stay(tmp_path: Path):
    (tmp_path / "base" / "1").mkdir(parents=True)
    file = tmp_path / "base" / "1" / "16384"
    file.write_bytes(b"x" * 100_000)
    (tmp_path / "base" / "link").symlink_to("/etc/passwd")
    assert list(files_below(tmp_path / "base")) == [file]
    cold_start.drop_from_cache(file)
    assert file.read_bytes() == b"x" * 100_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("checksum", "--target", "host=nowhere"), "dbdyno starts a server on this host for each arm"),
        (("checksum", "--set", "checksums=maybe"), "expected on or off, found 'maybe'"),
        (("buffer-cache", "--set", "begin=warm"), "'warm' is not a level of this factor"),
        (("data-growth", "--set", "orders=many"), "'many' is not a whole number above 0"),
        (("insert-size", "--set", "form=load"), "'load' is not a level of this factor"),
        (("temp-device", "--set", "place=/nowhere/at/all"), "cannot enter /nowhere/at/all"),
        (("keep-cache", "--target", "postgres"), "has no SQL version"),
    ],
)
def test_what_a_study_cannot_do_is_refused_before_anything_runs(lab, words: tuple[str, ...], said: str):
    assert said in " ".join(lab("run", *words, code=2).stderr.split())
    assert not (lab.folder / "runs").exists()


@pytest.mark.parametrize(
    ("name", "options", "settings"),
    [
        ("gather-statistics", {"sample": "10"}, {"analyze_sample_percentage": "10"}),
        (
            "gather-statistics",
            {"statistics": "indexes", "sample": "8"},
            {"innodb_stats_persistent_sample_pages": "8"},
        ),
        (
            "temp-device",
            {"place": "/a", "sort_buffer_size": "1M"},
            {"sort_buffer_size": "1M", "tmpdir": "/a"},
        ),
    ],
)
def test_a_study_of_mariadb_has_mariadbs_settings(name: str, options: dict[str, str], settings: dict[str, str]):
    plan = find_study(name).plan(options, quick=True, target="mariadb")
    assert plan.arms[0].settings == settings
    assert any("seq_1_to_" in statement for statement in plan.workload.setup)
    assert plan_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("name", "options", "servers"),
    [
        (
            "checksum",
            {"checksum": "none,crc32", "doublewrite": "on,off"},
            [
                {"innodb_checksum_algorithm": sums, "innodb_doublewrite": double}
                for double in ("on", "off")
                for sums in ("none", "crc32")
            ],
        ),
        (
            "buffer-cache",
            {"pool": "8M", "begin": "hot,cold"},
            [
                {"innodb_flush_method": method, "innodb_buffer_pool_size": "8M", "server_id": number}
                for number in ("1", "2")
                for method in ("O_DIRECT", "fsync")
            ],
        ),
    ],
)
def test_a_study_of_mariadbs_pages_has_a_server_for_each_way(name: str, options: dict[str, str], servers: list[Any]):
    plan = find_study(name).plan({**options, "load": "scan"}, quick=True, target="mariadb")
    made = [arm.server for arm in plan.arms if arm.server is not None]
    assert [{key: own.settings[key] for key in wanted} for own, wanted in zip(made, servers, strict=True)] == servers
    assert len({repr(own) for own in made}) == len(servers), "hot turns share no server with cold ones"
    assert [arm.cold for arm in plan.arms].count(True) == (2 if "begin" in options else 0)
    assert plan_from_dict(plan.to_dict()) == plan and plan.dsn == "mariadb"


def test_a_server_of_an_arm_on_somebody_elses_mariadb_is_refused():
    with pytest.raises(PlanError, match="dbdyno starts a server on this host for each arm"):
        find_study("checksum").plan({}, target="mariadb://somebody@db/shop")


@pytest.mark.soak
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_what_mariadbs_pool_does_not_hold_is_read_by_calls_and_cold_from_the_storage(lab):
    words = ("--set", "begin=hot,cold", "--set", "rows=20000", "--set", "load=scan", "--set", "flush=fsync")
    model = ran(lab, "buffer-cache", "--quick", "--blocks", "2", *words, "--set", "pool=5M,64M", "--target", "mariadb")
    assert [arm["changes"]["innodb_buffer_pool_size"] for arm in model["arms"]] == ["5M", "64M"] * 2
    assert len(model["manifest"]["targets"]) == 4
    small, large, cold = (used(model, arm, "read_calls") for arm in (0, 1, 3))
    assert large < 1 <= min(small, cold), "the large pool holds the table once it was read"
    if not any(target["data_in_memory"] for target in model["manifest"]["targets"].values()):
        assert used(model, 3, "read_bytes") > 100_000


@pytest.mark.soak
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_checksums_of_mariadb_are_those_of_the_servers(lab):
    words = ("--set", "rows=2000", "--set", "load=update", "--set", "doublewrite=on,off")
    model = ran(lab, "checksum", "--quick", "--blocks", "2", *words, "--target", "mariadb")
    settings = [
        {row["name"]: row["value"] for row in target["settings"]} for target in model["manifest"]["targets"].values()
    ]
    pairs = {(found["innodb_checksum_algorithm"], found["innodb_doublewrite"]) for found in settings}
    assert pairs == {(sums, double) for sums in ("crc32", "full_crc32") for double in ("ON", "OFF")}
    assert model["manifest"]["switch"] == "slices", "servers side by side need no restart"


def test_statistics_that_mariadb_does_not_know_are_refused():
    with pytest.raises(PlanError, match="is not one of the kinds columns and indexes"):
        find_study("gather-statistics").plan({"statistics": "all"}, target="mariadb")


@pytest.mark.soak
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
@pytest.mark.parametrize("kind", ["columns", "indexes"])
def test_statistics_are_gathered_on_mariadb(lab, kind: str):
    words = ("--quick", "--blocks", "2", "--set", "rows=300", "--set", "sample=10", "--set", "degree=1,2")
    model = ran(lab, "gather-statistics", *words, "--set", f"statistics={kind}", "--target", "mariadb")
    assert [arm["sessions"] for arm in model["arms"]] == [1, 2]


@pytest.mark.soak
@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_temporary_files_of_mariadb_lie_where_the_arm_says(lab):
    words = ("--set", "place=/var/tmp,/tmp", "--set", "rows=3000", "--set", "sort_buffer_size=64K")
    model = ran(lab, "temp-device", "--quick", "--blocks", "2", *words, "--target", "mariadb")
    assert [arm["changes"]["tmpdir"] for arm in model["arms"]] == ["/var/tmp", "/tmp"]


def test_a_loader_that_logs_nothing_is_seen_to(lab):
    """An unlogged table writes almost no WAL; an attached table and COPY write the rows' bytes."""
    ways = ("--set", "way=insert,copy,copy-binary,attach,unlogged", "--set", "rows=1000")
    model = ran(lab, "loader", *ways, "--quick", "--blocks", "2")
    names = [arm["name"] for arm in model["arms"]]
    log = {name: used(model, at, "log_bytes") for at, name in enumerate(names)}
    assert log["unlogged"] < 20_000 < 45_000 < min(log["copy"], log["copy-binary"], log["attach"]), log
    assert {gate["ok"] for gate in model["gates"] if gate["code"] == "work"} == {True}, model["gates"]


@pytest.mark.soak
def test_a_loader_on_a_server_with_minimal_log_syncs_instead_of_logging(lab):
    """Regression: few rows were logged as whole pages, twice as much as by plain COPY; see `wal_skip_threshold`."""
    model = ran(lab, "loader", "--set", "way=copy,minimal", "--set", "rows=5000", "--quick", "--blocks", "2")
    log = [used(model, at, "log_bytes") for at in range(2)]
    assert log[1] < 40_000 < 200_000 < log[0], log


@pytest.mark.skipif(bool(missing()), reason=str(missing()))
def test_the_ways_into_mariadb_do_equal_work(lab):
    model = ran(lab, "loader", "--set", "rows=200", "--quick", "--blocks", "2", "--target", "mariadb")
    assert [arm["name"] for arm in model["arms"]] == ["insert", "batch", "load"]
    assert {gate["ok"] for gate in model["gates"] if gate["code"] == "work"} == {True}


def test_the_ways_of_a_loader_are_known_and_its_bytes_are_copys():
    with pytest.raises(PlanError, match="'direct' is not a loading method"):
        find_study("loader").plan({"way": "copy,direct"})
    with pytest.raises(PlanError, match="not a multiple of 100"):
        find_study("loader").plan({"rows": "150"})
    bytes_of_one = loader.binary([7])
    assert bytes_of_one == (
        b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\3" + b"\0\0\0\4\0\0\0\7" + b"\0\0\0\4\0\0\0\x2a"
        b"\0\0\0\x10sixteen_letters_" + b"\xff\xff"
    )
