"""Plans from the log of a real server: planted plan flips are reported by `snap plans` and as causes by snapshots."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from snapshot_help import OTHER_STATISTICS, SETTINGS, Lab, section

from command_line import dbdyno, succeeded
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.plans.explain import TextPlans, read_json
from dbdyno.snapshot.plans.markup import read_xml, read_yaml
from dbdyno.snapshot.plans.tree import Node, differ_only_in_verbosity, identity
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.check import check
from dbdyno.snapshot.taking.take import open_collector, take
from soaked import first
from waiting import until

LOGGING: dict[str, Any] = {
    "shared_preload_libraries": "pg_stat_statements,auto_explain",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": True,
    "auto_explain.log_buffers": True,
    "logging_collector": True,
    "log_line_prefix": "%m [%p] ",
    "log_filename": "pg.log",
}
BY_CUST = "select sum(amount) from orders where cust = 77"
OF_FACTS = "select count(b) from facts where a < 3"


@dataclass
class Planted:
    """A store with three sub-intervals before and three after an ANALYZE that changes a plan, then a dropped index."""

    lab: Lab
    logs: dict[str, Path]
    numbers: list[int]

    def model(self, *words: object) -> JsonObject:
        """Return the JSON output of `dbdyno snap plans`."""
        done = succeeded("snap", "plans", *words, "--store", self.lab.store.folder, "--format", "json")
        return dict(json.loads(done.stdout))


def flips(model: JsonObject) -> list[TableRow]:
    return [row for table in section(model, "flips")["tables"] for row in table["rows"]]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, major: int) -> Iterator[Planted]:
    forms = {"log": "stderr", "csv": "csvlog", "json": "jsonlog"}
    if major < 15:
        del forms["json"]
    settings = {**SETTINGS, **LOGGING, "log_destination": ",".join(forms.values())}
    with EmbeddedPostgres(settings=settings) as running, Lab(running, tmp_path_factory.mktemp("s") / "snaps") as lab:
        data = Path(running.socket_dir).parent / "data" / "log"
        lab.run(
            "create table orders (id int primary key, cust int, amount int)",
            "insert into orders select n, n / 10, n from generate_series(1, 20000) n",
            "create index orders_cust on orders (cust)",
            "create table facts (a int, b int)",
            "insert into facts select n % 100, n from generate_series(1, 20000) n",
            "create index facts_a on facts (a)",
            "analyze",
            "insert into facts select 500, n from generate_series(1, 40000) n",
        )
        numbers = _snapshots(lab, major)
        lab.run("drop index orders_cust")
        numbers += _snapshots(lab, major, [BY_CUST] * 11, 2)
        time.sleep(0.3)
        yield Planted(lab, {form: data / f"pg.{form}" for form in forms}, numbers)


def _snapshots(lab: Lab, major: int, load: list[str] | None = None, count: int = 7) -> list[int]:
    numbers = []
    with open_collector(lab.dsn, lab.options) as collector:
        for step in range(count):
            if step == 4:
                lab.run(
                    "set pg_stat_statements.track = 'none'", "set auto_explain.log_min_duration = -1", *OTHER_STATISTICS
                )
            lab.run(*(load or [OF_FACTS, BY_CUST] * 8))
            time.sleep(0.02 if major >= 15 else 1.1)
            numbers.append(take(collector, lab.store, engine_name="postgres").number)
    return numbers


def test_planted_flips_are_named_with_their_plans_time_and_place(planted: Planted) -> None:
    model = planted.model("--log", planted.logs["csv"], "--no-keep")
    found = {row["text"]: row for row in flips(model)}
    assert found["select sum(amount) from orders where cust = ?"]["what"] == (
        "Index Scan using orders_cust → Seq Scan on orders"
    )
    facts = found["select count(b) from facts where a < ?"]
    assert facts["what"].endswith("→ Seq Scan on facts")
    assert (facts["before"], facts["after"]) == (32, 24)
    first, last = planted.numbers[3], planted.numbers[4]
    low, high = (planted.lab.store.open(number).at_ns // 1000 for number in (first, last))
    assert low < facts["at"] < high
    line = planted.logs["csv"].read_text().splitlines()[int(facts["place"].partition(":")[2]) - 1]
    assert "duration: " in line
    assert model["verdict"]["word"] == "plans changed"


@pytest.mark.soak
def test_the_three_formats_of_one_log_say_the_same(planted: Planted) -> None:
    names = ("text", "what", "before", "after", "at", "old", "new")
    told = [
        sorted(tuple(row[name] for name in names) for row in flips(planted.model("--log", path, "--no-keep")))
        for path in planted.logs.values()
    ]
    assert len(told[0]) == 2
    assert all(one == told[0] for one in told)


def test_what_a_text_log_and_a_csvlog_of_one_server_both_have_counts_once(planted: Planted) -> None:
    alone = planted.model("--log", planted.logs["csv"], "--no-keep")
    both = planted.model("--log", planted.logs["csv"], "--log", planted.logs["log"], "--no-keep")
    assert section(both, "plans")["tables"] == section(alone, "plans")["tables"]


def test_identifiers_come_from_the_snapshots_where_the_log_has_none(planted: Planted) -> None:
    found = [row["statement"] for row in flips(planted.model("--log", planted.logs["log"], "--no-keep"))]
    assert all(one.lstrip("-").isdigit() for one in found)


def test_no_value_of_a_statement_is_kept_or_shown(planted: Planted) -> None:
    planted.lab.run("select 'top-secret-4711' as x from orders where id = 987654321")
    time.sleep(0.3)
    words = ("--log", planted.logs["csv"], "--store", planted.lab.store.folder)
    shown = dbdyno("snap", "plans", *words, "--format", "html")
    kept = b"".join(path.read_bytes() for path in (planted.lab.store.folder / "plans").rglob("*") if path.is_file())
    for secret in ("top-secret-4711", "987654321"):
        assert secret in planted.logs["csv"].read_text()
        assert secret not in shown.stdout
        assert secret.encode() not in kept


@pytest.fixture(scope="module")
def kept(planted: Planted) -> Planted:
    """Keep the plans of the log beside the snapshots."""
    planted.model("--log", planted.logs["csv"])
    return planted


def test_a_proved_flip_is_the_cause_where_both_stretches_are_kept(kept: Planted) -> None:
    store, numbers = kept.lab.store, kept.numbers
    ends = ((numbers[0], numbers[3]), (numbers[3], numbers[6]))
    heads = [compare(store, *[period(store, f"snap:{a}..{b}") for a, b in ends])]
    with Interval(store, store.open(numbers[0]), store.open(numbers[6])) as interval:
        heads.append(report(interval))
    for model in heads:
        first = section(model, "happened")["tables"][0]["rows"][0]
        assert first["what"].startswith("plan flip, proved by the log: select count(b) from facts")
        assert "→ Seq Scan on facts; p50 " in first["evidence"]
        assert first["evidence"].endswith("analyzed: facts")
    sql = section(heads[1], "sql")
    latency = next(table for table in sql["tables"] if table["title"] == "Latency of executions")
    row = next(row for row in latency["rows"] if row["begins"].startswith("select count(b) from facts"))
    assert row["logged"] == "48 of 48"
    assert 0 < row["p50"] <= row["p95"] <= row["p99"]
    assert [one["what"] for one in section(heads[1], "plans")["tables"][0]["rows"]] == [
        next(row["what"] for row in flips(kept.model()) if "facts" in row["text"])
    ]


def test_a_dropped_index_is_the_first_cause_and_the_flip_that_it_made_is_told_with_it(kept: Planted) -> None:
    store, numbers = kept.lab.store, kept.numbers
    ends = ((numbers[4], numbers[6]), (numbers[6], numbers[8]))
    model = compare(store, *[period(store, f"snap:{a}..{b}") for a, b in ends])
    found = section(model, "happened")["tables"][0]["rows"]
    assert found[0]["what"] == "index orders_cust on orders was dropped"
    assert "also: plan flip, proved by the log: select sum(amount) from orders" in found[0]["evidence"]


def test_a_log_that_is_read_again_is_kept_once_and_less_of_it_replaces_nothing(kept: Planted) -> None:
    kept.model("--log", kept.logs["csv"])
    before = section(kept.model(), "logs")["tables"][0]["rows"]
    less = kept.model("--log", kept.logs["csv"], "--from", "2199-01-01")
    assert section(less, "logs")["notes"] == ["pg.csv: not kept, because it has no execution"]
    assert section(kept.model(), "logs")["tables"][0]["rows"] == before
    assert len(before) == 1
    assert check(kept.lab.store) == []


def test_plans_that_were_changed_on_disk_are_a_fault_of_the_store(kept: Planted) -> None:
    path = next((kept.lab.store.folder / "plans").glob("*/log_plans.parquet"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + b"\0" * 12 + whole[-8:])
    try:
        assert [fault.where for fault in check(kept.lab.store)] == [f"plans/{path.parent.name}/log_plans.parquet"]
    finally:
        path.write_bytes(whole)


QUERIES = (
    BY_CUST,
    "select o.id from orders o join facts f on f.b = o.id where o.amount < 500 and f.a = 3 order by o.cust limit 5",
    "select cust, count(*) from orders group by cust having count(*) > 3",
    "with x as materialized (select cust from orders where note_is(amount)) select * from x where cust in (1, 2, 3)",
    "select 1 from orders union select a from facts order by 1",
    "select a from facts except select cust from orders",
    "select (select max(amount) from orders where cust = f.a) from facts f where not exists"
    " (select 1 from orders where id = f.b) and f.b < 20",
    'update "My Tab" set "a b" = 2 where "a b" = -1.5e3',
    "select * from orders a left join orders b on a.id = b.cust where a.cust between 5 and 6 order by a.id desc",
    "select * from generate_series(1, 3) g, (values (1), (2)) v(x), lateral (select g * x) l",
)


@pytest.mark.parametrize("forced", ["", "enable_hashjoin=off", "enable_seqscan=off enable_hashagg=off", "parallel"])
def test_a_plan_has_one_identity_in_every_form_and_with_verbose(planted: Planted, forced: str) -> None:
    parallel = ("parallel_setup_cost=0", "parallel_tuple_cost=0", "min_parallel_table_scan_size=0")
    reader = TextPlans()
    with planted.lab.connect() as conn:
        conn.execute('create table if not exists "My Tab" as select 1 as "a b"')
        conn.execute("create or replace function note_is(int) returns bool language sql as 'select $1 > 5'")
        for setting in parallel if forced == "parallel" else forced.split():
            conn.execute(f"set {setting.replace('=', ' = ')}")
        for at, query in enumerate(QUERIES):
            found = set()
            conn.execute(f"set jit = {'off' if at else 'on'}")  # to compile the others tells nothing more
            for more in ("", ", verbose", ", analyze, buffers"):
                lines = conn.execute(f"explain (format text{more}) {query}").fetchall()
                found.add(identity(reader.read("Query Text: x\n" + "\n".join(line for (line,) in lines))[1].plan))
                [(made,)] = conn.execute(f"explain (format json{more}) {query}").fetchall()
                found.add(identity(read_json(json.dumps({"Query Text": "x", **made[0]}))[1].plan))
                [(made,)] = conn.execute(f"explain (format xml{more}) {query}").fetchall()
                found.add(identity(read_xml(_as_logged(made))[1].plan))
                [(made,)] = conn.execute(f"explain (format yaml{more}) {query}").fetchall()
                lines = [line[2:] for line in made.split("\n")]
                found.add(identity(read_yaml('Query Text: "x"\n' + "\n".join(lines))[1].plan))
            assert len(found) == 1, query


def _as_logged(explained: str) -> str:
    """Return EXPLAIN's XML in the form of auto_explain: with the statement's text and no <Query> around the plan."""
    return re.sub(r"(<explain[^>]*>)\s*<Query>", r"\1<Query-Text>x</Query-Text>", explained).replace("</Query>", "")


@pytest.fixture(scope="module")
def sales(planted: Planted) -> Iterator[Planted]:
    """Create two tables with the same name; a statement finds one or the other by search_path."""
    planted.lab.run(
        "create schema sales",
        "create schema archive",
        "create table sales.facts_of as select n as a from generate_series(1, 50) n",
        "create table archive.facts_of as select n as a from generate_series(1, 50) n",
    )
    yield planted


OF_FORM = {"text": "max", "json": "min", "xml": "sum", "yaml": "count"}
"""A different aggregate for each log format, because statements that differ only in column names count as one."""


@pytest.mark.parametrize("form", first(*OF_FORM, count=2))
def test_the_forms_of_auto_explain_are_read_and_a_schema_is_part_of_a_plan(sales: Planted, form: str) -> None:
    """From a server's log: one text, two tables of one name."""
    own = f"select {OF_FORM[form]}(a) as of_{form} from facts_of where a <> 5"
    verbose = ("set auto_explain.log_verbose = on", f"set auto_explain.log_format = {form}")
    for schema in ("sales", "archive"):
        sales.lab.run(*verbose, f"set search_path = {schema}", *[own] * 3)
    sales.lab.run(f"select 1 as end_{form}")
    until(lambda: f"end_{form}" in sales.logs["csv"].read_text(), 300)  # its collector is a process of its own
    model = sales.model("--log", sales.logs["csv"], "--no-keep", "--top", 5000)
    rows = [row for table in section(model, "plans")["tables"] for row in table["rows"]]
    found = {row["sketch"] for row in rows if f"of_{form}" in (row.get("text") or row.get("begins") or "")}
    assert found == {"Seq Scan sales.facts_of → Aggregate", "Seq Scan archive.facts_of → Aggregate"}


def test_log_verbose_alone_makes_no_flip() -> None:
    plain = Node("Aggregate", children=(Node("Seq Scan", "facts", conditions=(("Filter", "(a = ?)"),)),))
    verbose = Node("Aggregate", children=(Node("Seq Scan", "facts", schema="sales"),))
    other = Node("Aggregate", children=(Node("Seq Scan", "facts", schema="archive"),))
    assert differ_only_in_verbosity(plain, verbose) and differ_only_in_verbosity(verbose, plain)
    assert not differ_only_in_verbosity(other, verbose)
    assert not differ_only_in_verbosity(plain, plain)
    assert len({identity(one) for one in (plain, verbose, other)}) == 3


def test_without_a_log_or_anything_kept_the_next_step_is_said(tmp_path: Path) -> None:
    done = dbdyno("snap", "plans", "--store", tmp_path / "none")
    assert done.returncode == 2
    assert "dbdyno snap plans --log FILE" in done.stderr


def test_the_log_is_read_from_the_server_for_who_may(planted: Planted) -> None:
    model = planted.model("--from-server", planted.lab.dsn, "--no-keep")
    told = {row["what"] for row in flips(model)}
    assert "Index Scan using orders_cust → Seq Scan on orders" in told
    planted.lab.run("create role watcher login", "grant pg_monitor to watcher")
    dsn = planted.lab.dsn.replace("user=postgres", "user=watcher")
    refused = dbdyno("snap", "plans", "--from-server", dsn, "--store", planted.lab.store.folder)
    assert (refused.returncode, "grant" in refused.stderr) == (2, True)
    functions = ("pg_current_logfile(text)", "pg_stat_file(text)", "pg_read_binary_file(text, bigint, bigint)")
    planted.lab.run(*[f"grant execute on function {one} to watcher" for one in functions])
    succeeded("snap", "plans", "--from-server", dsn, "--store", planted.lab.store.folder, "--no-keep")


def test_of_a_large_log_the_end_is_read_and_not_kept(planted: Planted) -> None:
    lines = [f"select {n} as filler, '{'x' * 2000}'" for n in range(300)]
    planted.lab.run(*lines)
    model = planted.model("--from-server", planted.lab.dsn, "--most", 1)
    assert any("are not kept; --most reads more" in note for note in section(model, "logs")["notes"])
    assert len(section(planted.model("--log", planted.logs["csv"]), "logs")["tables"][0]["rows"]) == 1


def test_a_generic_plan_is_explained_and_nothing_is_run(planted: Planted) -> None:
    with planted.lab.connect() as conn:
        conn.execute("update orders set amount = amount where id = 5")
        conn.execute("drop table if exists gone")
        rows = conn.execute("select query, queryid from pg_stat_statements").fetchall()
    known = dict(rows)
    update = next(one for text, one in known.items() if text.startswith("update orders set amount = amount"))
    drop = next(one for text, one in known.items() if text.startswith("drop table if exists gone"))
    words = ("snap", "plans", "--from-server", planted.lab.dsn, "--generic")
    done = succeeded(*words, update, "--format", "json")
    assert section(json.loads(done.stdout), "generic")["tables"][0]["rows"][0]["sketch"] == (
        "Index Scan orders_pkey → Update orders"
    )
    with planted.lab.connect() as conn:
        after = conn.execute("select calls from pg_stat_statements where queryid = %s", [update]).fetchall()
    assert after == [(1,)]
    assert "only SELECT, INSERT, UPDATE, DELETE and WITH" in dbdyno(*words, drop).stderr
    assert dbdyno(*words, 1).returncode == 2
    assert dbdyno("snap", "plans", "--generic", 1).returncode == 2
