"""Counters, canaries and wait classes: what they count, in which unit, and that each can fail without the others."""

from __future__ import annotations

import contextlib
import itertools
import time
from pathlib import Path

import pytest

from dbdyno import _core
from dbdyno.bench.canary import canaries, canary_folder
from dbdyno.bench.host.machine import cpu_governor, file_system, host_facts, steal_share
from dbdyno.bench.metrics import Metric, counters, host_counters
from dbdyno.bench.postgres.server import Postgres
from waiting import until


def by_name(metrics: list[Metric], source: str) -> dict[str, Metric]:
    return {one.metric: one for one in metrics if one.source == source}


def test_counters_have_the_columns_of_this_version(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        conn.execute("create temp table few as select generate_series(1, 1000)")
        found = counters(conn)
        version_num = conn.info.server_version
    sources = {one.source for one in found}
    assert {"pg_stat_database", "pg_stat_wal", "pg_stat_bgwriter", "wal"} <= sources
    if version_num >= 170000:
        assert {"pg_stat_io", "pg_stat_checkpointer"} <= sources
        assert "wal_sync_time" not in by_name(found, "pg_stat_wal")
        actors = {one.object for one in found if one.source == "pg_stat_io"}
        assert any(actor.startswith("client backend/") for actor in actors)
    elif version_num < 160000:
        assert by_name(found, "pg_stat_wal")["wal_sync_time"].unit == "ns"
        assert "checkpoints_timed" in by_name(found, "pg_stat_bgwriter")
    database = by_name(found, "pg_stat_database")
    assert database["numbackends"].kind == "gauge"
    assert database["xact_commit"].kind == "counter"
    assert (database["temp_bytes"].unit, database["blk_read_time"].unit) == ("bytes", "ns")
    assert "datid" not in database
    assert {one.object for one in database.values()} == {"postgres"}
    assert all(isinstance(one.value, int) for one in found)
    assert {one.unit for one in found} == {"count", "bytes", "ns"}


def test_what_was_done_between_two_looks_is_their_difference(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        conn.execute("create table counted (n int)")

        def look() -> tuple[int, int]:
            conn.execute("select pg_stat_clear_snapshot()")
            found = counters(conn)
            wal = by_name(found, "wal")["insert_bytes"].value
            return int(by_name(found, "pg_stat_database")["tup_inserted"].value), int(wal)

        time.sleep(1.1)
        rows, redo_bytes = look()
        conn.execute("insert into counted select generate_series(1, 5000)")
        assert until(lambda: look()[0] - rows >= 5000)
        assert look()[1] - redo_bytes > 5000 * 30
        conn.execute("drop table counted")


def test_tables_and_indexes_that_were_read_have_a_size_although_they_are_locked(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn, contextlib.closing(own.connect()) as other:
        conn.execute("create table sized (n int primary key, pad text)")
        conn.execute("insert into sized select n, repeat('x', 500) from generate_series(1, 1000) n")
        conn.execute("vacuum analyze sized")
        conn.execute("set enable_seqscan = off")
        conn.execute("select pad from sized where n = 7").fetchall()
        conn.execute("select pg_stat_force_next_flush()" if conn.info.server_version >= 150000 else "select 1")

        def sizes() -> dict[str, int | float]:
            other.execute("select pg_stat_clear_snapshot()")
            return {one.object: one.value for one in counters(other) if one.metric == "size_bytes"}

        assert until(lambda: "public/sized/sized_pkey" in sizes())
        conn.execute("begin")
        conn.execute("lock table sized in access exclusive mode")
        other.execute("set statement_timeout = '5s'")
        assert sizes()["public/sized"] > 500_000
        assert 0 < sizes()["public/sized/sized_pkey"] < 100_000
        conn.execute("rollback")
        conn.execute("drop table sized")


def test_a_plain_role_gets_counters_too(plain: Postgres) -> None:
    with contextlib.closing(plain.connect()) as conn:
        found = counters(conn)
    assert by_name(found, "pg_stat_database")
    assert by_name(found, "wal")


PROC = {
    "stat": "cpu  10 1 20 100 5 0 1 7 0 0\ncpu0 10 1 20 100 5 0 1 7 0 0\nctxt 99\nprocesses 3\n",
    "diskstats": " 254 0 vda 5 1 80 7 6 2 160 9 0 11 12 0 0 0 0 3 4\n"
    " 7 0 loop0 5 1 80 7 6 2 160 9 0 11 12\n"
    " 8 0 sda 0 0 0 0 0 0 0 0 0 0 0\n",
    "meminfo": "MemTotal: 100 kB\nMemAvailable: 60 kB\nDirty: 4 kB\n",
    "loadavg": "0.50 0.25 0.10 1/100 1234\n",
}


def test_the_machines_counters_are_whole_and_in_plain_units(tmp_path: Path) -> None:
    for name, text in PROC.items():
        (tmp_path / name).write_text(text)
    found = {(one.object, one.metric): one for one in host_counters(tmp_path, lambda: 42)}
    tick_ns = found[("", "cpu_user")].value // 10
    assert found[("", "cpu_steal")].value == 7 * tick_ns
    assert found[("", "ctxt")].value == 99
    assert found[("vda", "read_bytes")].value == 80 * 512
    assert found[("vda", "write_time")].value == 9_000_000
    assert found[("vda", "flushes")].value == 3
    assert {thing for thing, _ in found if thing} == {"vda"}
    assert found[("", "MemAvailable")].value == 60 * 1024
    assert found[("", "load_1min")].value == 0.5
    assert {one.at_ns for one in found.values()} == {42}


def test_files_that_are_absent_or_odd_give_nothing(tmp_path: Path) -> None:
    assert host_counters(tmp_path) == []
    for name in PROC:
        (tmp_path / name).write_text("what is this\n\n")
    assert host_counters(tmp_path) == []
    assert steal_share(tmp_path) is None
    assert cpu_governor(tmp_path) is None
    assert file_system(tmp_path, proc=tmp_path) is None
    assert set(host_facts(tmp_path, tmp_path)) <= {"host_kernel", "host_cpus", "host_cpu"}


def test_the_file_system_of_a_path_is_the_deepest_mount(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text(
        "1 0 254:0 / / rw - ext4 /dev/vda rw\n"
        "2 1 0:30 / /srv\\040x rw shared:1 - tmpfs tmpfs rw\n"
        "3 1 8:1 / /srv rw - xfs /dev/sda1 rw\n"
    )
    kinds = {
        place: getattr(file_system(Path(place), proc=tmp_path, sys=tmp_path), "kind", None)
        for place in ("/", "/srv/data", "/srv x/data", "/srvother")
    }
    assert kinds == {"/": "ext4", "/srv/data": "xfs", "/srv x/data": "tmpfs", "/srvother": "ext4"}
    memory = file_system(Path("/srv x"), proc=tmp_path, sys=tmp_path)
    assert memory is not None
    assert memory.in_memory


def test_canaries_measure_disk_processors_and_the_way_to_the_server(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        folder, on_data_disk = canary_folder(own, conn)
        found = canaries(conn, folder, on_data_disk)
    assert own.engine is not None
    assert (folder, on_data_disk) == (own.engine.folder, True)
    assert 10_000 < found.cpu_ns < 1_000_000_000
    assert found.fsync_ns is not None and found.fsync_ns > 0
    assert 1_000 < found.round_trip_ns < 1_000_000_000
    processors = ["wake", "busy_ratio", "pulls", "searches", "searches_late"]
    assert [one.metric for one in found.metrics(1)] == ["cpu", "fsync", *processors, "round_trip"]
    assert {one.unit for one in found.metrics(1) if one.metric in processors[1:]} == {"ratio"}
    assert not [path for path in folder.iterdir() if "canary" in path.name]


def test_nothing_is_written_into_another_servers_data_folder(others: Postgres, plain: Postgres) -> None:
    for target in (others, plain):
        with contextlib.closing(target.connect()) as conn:
            folder, _ = canary_folder(target, conn)
            data = others.data_directory(conn)
        assert data is None or not folder.is_relative_to(data.parent)


def test_the_clock_of_a_canary_is_a_parameter(own: Postgres, tmp_path: Path) -> None:
    ticks = itertools.count(0, 5)
    with contextlib.closing(own.connect()) as conn:
        found = canaries(conn, tmp_path / "missing", clock=lambda: next(ticks))
    assert (found.cpu_ns, found.fsync_ns, found.round_trip_ns) == (5, None, 5)


def test_every_event_that_the_engine_lists_stands_in_the_catalogue(own: Postgres) -> None:
    with contextlib.closing(own.connect()) as conn:
        if conn.info.server_version < 170000:
            pytest.skip("pg_wait_events came with version 17")
        listed = conn.execute("select type, name from pg_wait_events where type not in ('Extension', 'InjectionPoint')")
        events = {(kind.lower(), name.lower()) for kind, name in listed}
    named = {(kind.lower(), event.lower()) for event, _, kind, _ in _core.wait_events("postgresql")}
    assert events <= named
