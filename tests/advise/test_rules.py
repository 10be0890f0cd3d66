"""Rules on rows of evidence: when they fire, when they do not, and what they report as impossible to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from command_line import dbdyno
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.judge import choose_rules, judge, rules
from dbdyno.advise.kinds import (
    Checkpoints,
    Column,
    Database,
    Io,
    Load,
    Server,
    Session,
    Setting,
    Slot,
    Statement,
    Table,
    Wal,
)
from dbdyno.advise.run import facts_of
from dbdyno.base.errors import AdviceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.manifest import Manifest

SERVER = Server("postgres", "17.2", 170002, at_us=10**15, started_us=10**15 - 10**12)


def setting(name: str, value: object, unit: str = "") -> Setting:
    return Setting(name, str(value), unit, "configuration file")


_COUNTS = {"reads": 0, "hits": 0, "read_ms": 0.0, "temp_files": 0, "temp_bytes": 0, "commits": 100_000}
_AGES = {"frozen_age": 10, "multixact_age": 10}
_CHANGES = {"inserted": 0, "updated": 0, "deleted": 0, "modified": 0}
_SCANS = {"seq_scans": 10, "seq_rows": 0, "idx_scans": 0}
database = partial(
    replace, Database("app", **_COUNTS, **_AGES, sessions=10, active_ms=1e6, span_s=1000.0, is_current=True)
)
table = partial(replace, Table("t", rows=100_000, dead=0, pages=2000, **_CHANGES, **_SCANS))


def asked(rule: str, *rows: Any, settings: Sequence[Setting] = (), server: Server = SERVER) -> JsonObject:
    kinds = {type(one) for one in rows}
    by_kind = {kind: [one for one in rows if type(one) is kind] for kind in kinds}
    return judge(Facts("test", "server", {Server: [server], Setting: list(settings), **by_kind}), choose_rules([rule]))


def fires(rule: str, *rows: Any, settings: Sequence[Setting] = (), server: Server = SERVER) -> bool:
    return bool(asked(rule, *rows, settings=settings, server=server)["findings"])


BUFFERS = (setting("shared_buffers", 1000, "8kB"), setting("block_size", 8192))


def test_shared_buffers_needs_time_and_blocks_that_had_been_there() -> None:
    slow = database(reads=50_000, read_ms=3e5)
    assert fires("shared_buffers", slow, settings=BUFFERS)
    assert not fires("shared_buffers", database(reads=50_000, read_ms=5e4), settings=BUFFERS), "5 % of active time"
    assert not fires("shared_buffers", database(reads=1500, read_ms=3e5), settings=BUFFERS), "each block read once"
    found = asked("shared_buffers", slow, settings=BUFFERS)["findings"][0]
    assert found["stake"] == pytest.approx(0.3) and found["level"] == "warning"
    assert (
        asked("shared_buffers", database(reads=10**7, read_ms=3e5), settings=BUFFERS)["findings"][0]["level"] == "hint"
    )


def test_from_16_on_evictions_count_and_not_what_a_ring_read() -> None:
    slow = database(reads=50_000, read_ms=3e5)
    ring = Io("client backend", "relation", "bulkread", 50_000, 1.0, 50_000 * 8192, 50_000)
    assert not fires("shared_buffers", slow, ring, settings=BUFFERS)


def test_without_timing_shared_buffers_is_not_judged_and_the_setting_is_named() -> None:
    told = asked("shared_buffers", database(read_ms=None), settings=BUFFERS)["not_judged"]
    assert told[0]["next"] == "track_io_timing = on"


COSTS = (setting("random_page_cost", 4), setting("seq_page_cost", 1))


@pytest.mark.parametrize(("random_ms", "fired"), [(0.2, True), (0.8, False), (2.0, True)])
def test_random_page_cost_against_the_ratio_of_measured_reads(random_ms: float, fired: bool) -> None:
    rows = (
        Io("client backend", "relation", "normal", 20_000, 20_000 * random_ms, 20_000 * 8192, 0),
        Io("client backend", "relation", "bulkread", 20_000, 20_000 * 0.2, 20_000 * 8192, 0),
    )
    assert fires("random_page_cost", *rows, settings=COSTS) is fired


def test_reads_from_the_page_cache_say_nothing_of_a_device() -> None:
    rows = [Io("client backend", "relation", one, 20_000, 200.0, 20_000 * 8192, 0) for one in ("normal", "bulkread")]
    assert "page cache" in asked("random_page_cost", *rows, settings=COSTS)["not_judged"][0]["why"]


def test_huge_pages_by_the_size_of_page_tables() -> None:
    settings = (setting("shared_buffers", 8 * 1024 * 1024, "8kB"), setting("huge_pages_status", "off"))
    found = asked("huge_pages", Load(4, 1, 3, 0), settings=settings)["findings"]
    assert [each["value"] for each in found[0]["evidence"]][-1] == 4 * 128 * 1024**2
    assert not fires("huge_pages", Load(1, 1, 0, 0), settings=settings)


def test_a_connection_for_each_transaction() -> None:
    assert fires("connection_rate", database(sessions=50_000))
    assert not fires("connection_rate", database(sessions=10_000)), "one for ten transactions"
    assert not fires("connection_rate", database(sessions=900, commits=900))


def test_reads_that_nobody_times() -> None:
    off = (setting("track_io_timing", "off"),)
    assert fires("track_io_timing", database(reads=10**6), settings=off)
    assert not fires("track_io_timing", database(reads=10**6), settings=(setting("track_io_timing", "on"),))
    assert not fires("track_io_timing", database(reads=10), settings=off)


def test_full_page_writes_off() -> None:
    assert fires("full_page_writes", settings=(setting("full_page_writes", "off"),))


WAL = (setting("max_wal_size", 1024, "MB"), setting("checkpoint_completion_target", 0.9))


def test_checkpoints_that_a_backup_asked_for_are_no_matter_of_max_wal_size() -> None:
    near = Wal(20 * 10**6, 1, 2000, 0, 3600.0)
    assert not fires("max_wal_size", Checkpoints(0, 10, 3600.0), near, settings=WAL)
    far = Wal(6 * 10**9, 1, 500_000, 0, 3600.0)
    assert fires("max_wal_size", Checkpoints(0, 10, 3600.0), far, settings=WAL)
    assert not fires("max_wal_size", Checkpoints(12, 10, 3600.0), far, settings=WAL), "more came by time"
    assert not fires("max_wal_size", Checkpoints(0, 10, 3600.0), Wal(6 * 10**9, 1, 900, 0, 3600.0), settings=WAL)


def test_counters_of_different_windows_are_not_put_together() -> None:
    told = asked("max_wal_size", Checkpoints(0, 10, 9e5), Wal(6 * 10**9, 1, 500_000, 0, 3600.0), settings=WAL)
    assert not told["findings"] and "different times" in told["not_judged"][0]["why"]


def test_an_age_of_200_million_alone_is_no_alarm() -> None:
    limit = (setting("autovacuum_freeze_max_age", 200_000_000),)
    assert not fires("wraparound", database(frozen_age=250_000_000), settings=limit)
    assert asked("wraparound", database(frozen_age=1_700_000_000), settings=limit)["findings"][0]["level"] == "critical"
    assert fires("wraparound", database(multixact_age=900_000_000), settings=limit)


def test_dead_rows_below_the_threshold_of_a_large_table_are_left_to_autovacuum() -> None:
    assert not fires("dead_rows", table(rows=60_000, dead=20_000, estimated_rows=60_000.0))
    assert fires("dead_rows", table(rows=20_000, dead=60_000, estimated_rows=20_000.0))
    capped = (setting("autovacuum_vacuum_max_threshold", 100),)
    assert fires("dead_rows", table(rows=60_000, dead=20_000, estimated_rows=60_000.0), settings=capped)
    idle = table(rows=20_000, dead=60_000, estimated_rows=20_000.0, seq_scans=0)
    assert not fires("dead_rows", idle), "nobody scans it"


def test_an_idle_transaction_without_snapshot_and_waiters_is_harmless() -> None:
    idle = {"pid": 1, "user": "u", "application": "", "state": "idle in transaction", "transaction_s": 300.0}
    more = {"state_s": 300.0, "waiters": 0, "waited_s": 0.0}
    assert not fires("idle_in_transaction", Session(**idle, **more, xmin_age=None))  # type: ignore[arg-type]
    assert fires("idle_in_transaction", Session(**idle, **more, xmin_age=5))  # type: ignore[arg-type]


def test_a_slot_that_lost_its_wal_is_told_even_where_it_holds_none() -> None:
    lost = Slot("s", "logical", False, "lost", None, None, 1000)
    assert "lost the WAL" in asked("replication_slots", lost)["findings"][0]["sentence"]
    assert not fires("replication_slots", Slot("s", "logical", True, "reserved", 10**12, None, None))


def test_aggregates_over_a_whole_table_need_no_index() -> None:
    known = {"identifier": "1", "calls": 100, "ms": 1e5, "rows": 100, "hits": 200_000, "reads": 0, "temp_written": 0}
    scanned = table(seq_scans=100)
    lookup = Statement(text="select * from t where a = $1", **known)  # type: ignore[arg-type]
    total = Statement(text="select count(*) from t where a > $1", **known)  # type: ignore[arg-type]
    assert fires("missing_index", scanned, lookup)
    assert not fires("missing_index", scanned, total)
    assert not fires("missing_index", table(name="tt", seq_scans=100), lookup), "another table"


def test_a_rule_whose_evidence_lacks_says_what_would_bring_it() -> None:
    facts = Facts(
        "t",
        "server",
        {Server: [SERVER]},
        {Slot: MissingEvidence("no right", "grant pg_monitor"), Setting: MissingEvidence("none")},
    )
    told = judge(facts, choose_rules(["replication"]))["not_judged"]
    assert [one["why"] for one in told] == ["none"]


def test_rules_are_for_their_engine_and_versions() -> None:
    old = Server("postgres", "15.1", 150001)
    assert "version 16" in asked("random_page_cost", server=old)["not_judged"][0]["why"]
    other = Server("mariadb", "11.4.2", 110402)
    assert "postgres" in asked("fsync", server=other)["not_judged"][0]["why"]


def test_names_of_rules_are_unique_and_each_says_all_that_it_must() -> None:
    names = [one.name for one in rules()]
    assert len(names) == len(set(names)) >= 28
    for one in rules():
        assert one.title and one.condition and one.expects and one.risk and one.refuted, one.name
        assert any(year in one.source for year in ("2024", "2025", "2026")), one.name


def test_a_rule_that_is_misspelt_gets_the_nearest() -> None:
    with pytest.raises(AdviceError, match="did you mean jit"):
        choose_rules(["jitt"])
    done = dbdyno("advise", "rules", "--skip", "nothing-like-it")
    assert done.returncode == 2 and "dbdyno advise rules" in done.stderr


def test_the_rules_are_listed_with_condition_and_source() -> None:
    done = dbdyno("advise", "rules", "--only", "jit", "--format", "csv")
    assert done.returncode == 0 and "100 ms" in done.stdout and "refuted by" in done.stdout


def test_a_run_that_is_not_there_is_an_error() -> None:
    done = dbdyno("advise", "nowhere")
    assert done.returncode == 2 and "nowhere" in done.stderr


def test_on_a_managed_service_void_rules_are_told_and_settings_go_its_own_way() -> None:
    aurora = Server("postgres", "16.4", 160004, service="Amazon Aurora")
    off = (setting("full_page_writes", "off"), setting("fsync", "off"))
    told = asked("full_page_writes", settings=off, server=aurora)
    assert not told["findings"] and "Amazon Aurora" in told["not_judged"][0]["why"]
    fix = asked("fsync", settings=off, server=aurora)["findings"][0]["fix"]
    assert fix == ["-- DB cluster parameter group of Amazon Aurora: fsync = on"]


def manifest(**plan: Any) -> Manifest:
    settings = {"shared_buffers": "256MB", "checkpoint_timeout": "5min", "fsync": "off"}
    given = {
        "server_version": "15.20",
        "version_num": 150020,
        "database_bytes": 8 * 1024**2,
        "settings": [{"name": name, "value": value, "source": "x"} for name, value in settings.items()],
    }
    return Manifest.from_values(
        {"targets": {"t": given}, "plan": {"judge": {"headline": "p99"}, **plan}, "wall_s": 60.0}
    )


def test_a_short_run_on_little_data_in_a_closed_loop() -> None:
    arms = [{"rate_per_s": None}, {"rate_per_s": None}]
    facts = facts_of(manifest(workload={"builtin": "simple-update", "scale": 4}, arms=arms), "r")
    found = {one["rule"]: one for one in judge(facts, rules())["findings"]}
    assert set(found) == {"fsync", "data_in_cache", "closed_loop"}
    assert found["data_in_cache"]["evidence"][0]["value"] == (8 + 4 * 16) * 1024**2


def test_a_run_at_a_rate_on_much_data_that_only_reads() -> None:
    arms = [{"rate_per_s": 100.0}]
    facts = facts_of(manifest(workload={"builtin": "select-only", "scale": 400}, arms=arms), "r")
    assert {one["rule"] for one in judge(facts, rules())["findings"]} == {"fsync"}


def test_a_run_on_something_else_is_refused() -> None:
    with pytest.raises(AdviceError, match="PostgreSQL"):
        facts_of(Manifest.from_values({"plan": {}, "targets": {}}), "r")


LARGE = {"name": "orders", "pages": 4000, "rows": 300_000, "seq_scans": 200, "seq_rows": 60_000_000}
BY_CUSTOMER = "select sum(amount) from orders where customer = $1"


def statement(text: str, **more: Any) -> Statement:
    known = {"identifier": "7", "text": text, "calls": 200, "ms": 5e4, "rows": 200, "hits": 800_000, "reads": 0}
    return Statement(**{**known, "temp_written": 0, **more})


def test_an_aggregate_over_few_rows_misses_its_index_and_one_over_all_does_not() -> None:
    few = Column("orders", "customer", 30_000.0, 0.001)
    found = asked("missing_index", table(**LARGE), statement(BY_CUSTOMER), few)["findings"]
    assert [one["fix"] for one in found] == [["create index concurrently on orders (customer)"]]
    figures = {one["what"]: one["value"] for one in found[0]["evidence"]}
    assert figures["rows of one value of customer"] == 10 and figures["rows of a scan"] == 300_000
    assert not fires("missing_index", table(**LARGE), statement("select sum(amount) from orders"), few)
    assert not fires("missing_index", table(**LARGE), statement("select sum(amount) from orders where id > $1"), few)
    either = "select sum(amount) from orders where customer = $1 or amount > $2"
    assert not fires("missing_index", table(**LARGE), statement(either), few)
    status = Column("orders", "customer", 3.0, 0.6)
    assert not fires("missing_index", table(**LARGE), statement(BY_CUSTOMER), status), "a third of the table each"
    assert not fires("missing_index", table(**LARGE), statement(BY_CUSTOMER)), "no statistics of its columns"


def test_a_small_table_that_is_scanned_all_the_time_misses_its_index_too() -> None:
    """5 MB, scanned 45 times a second, took all of the time, and nothing was said."""
    few = Column("orders", "customer", 30_000.0, 0.001)
    small = {**LARGE, "pages": 619, "rows": 60_000}
    busy = statement(BY_CUSTOMER, hits=619 * 200)
    assert fires("missing_index", table(**small), busy, few)
    other = statement("select 2", identifier="8", ms=2e6)
    assert not fires("missing_index", table(**small), busy, other, few), "2 % of the time"
    assert not fires("missing_index", table(**{**small, "pages": 60}), statement(BY_CUSTOMER, hits=60 * 200), few)


def look_up(text: str, rows: float, calls: int = 1000) -> Statement:
    """Return a statement that returned that many rows per call."""
    return Statement("1", text, calls, 1000.0, int(rows * calls), 10 * calls, 0, 0)


A, B = Column("t", "a", 1000.0, 0.002), Column("t", "b", 1000.0, 0.002)


@pytest.mark.parametrize(
    ("statement", "columns", "fix"),
    [
        (look_up("select * from t where a = $1", 90_000), [A], "analyze (verbose) t"),
        (look_up("select x, y from app.t where t.a = $1 and b = $2 order by x", 95), [A, B], None),
        (look_up("update t set x = $3 where a = $1 and b = $2", 100), [A, B], "create statistics (dependencies, mcv)"),
        (look_up("delete from t where a = $1", 1), [Column("t", "a", 5000.0, 0.002)], None),
        (look_up("delete from t where a = $1", 1), [Column("t", "a", 50.0, 0.05)], "analyze (verbose) t"),
        (look_up("delete from t where a = $1", 0.001), [Column("t", "a", 50.0, 0.05)], None),
        (look_up("select * from t where a = $1", 900), [Column("t", "a", 1000.0, 0.2)], None),
        (look_up("select * from t where a = $1 limit $2", 90_000), [A], None),
        (look_up("select * from t where a > $1", 90_000), [A], None),
        (look_up("select * from t, u where a = $1", 90_000), [A], None),
        (look_up("select count(*) from t where a = $1", 90_000), [A], None),
        (look_up("select * from t where a = $1", 90_000, calls=9), [A], None),
        (look_up("select * from t where c = $1", 90_000), [A], None),
    ],
)
def test_rows_that_statistics_do_not_let_expect(statement: Statement, columns: list[Column], fix: str | None) -> None:
    """Rows per call against those of a value by the statistics; a common value, or none, is no fault of theirs."""
    found = judge(
        Facts("", "server", {Table: [table()], Column: columns, Statement: [statement]}),
        choose_rules(["wrong_estimates"]),
    )
    assert [one["fix"][0].startswith(fix or "") for one in found["findings"]] == ([True] if fix else [])
