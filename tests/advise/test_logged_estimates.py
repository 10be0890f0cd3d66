"""Logged plans whose rows were counted: the node at which the estimate is first wrong, and the advice about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted_faults as planted
import pytest
from psycopg.conninfo import make_conninfo

from command_line import dbdyno, succeeded
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import choose_rules, judge
from dbdyno.advise.kinds import Column, Estimate, Statement, Table
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.snapshot.plans.explain import TextPlans
from waiting import until

LOGGING: dict[str, Any] = {
    "shared_preload_libraries": "pg_stat_statements,auto_explain",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": True,
    "auto_explain.log_timing": False,
    "logging_collector": True,
    "log_filename": "pg.log",
    "log_line_prefix": "%m [%p] ",
    "autovacuum": False,
    "jit": False,
    "max_parallel_workers_per_gather": 0,
}
MADE = (
    "create extension pg_stat_statements",
    "create table pairs as select i as id, i % 400 as a, i % 400 as b, repeat('p', 20) as note"
    " from generate_series(1, 60000) i",
    "create table kinds as select i as id, i % 5 as kind from generate_series(1, 400) i",
    "create table grown as select i as id, 1 as day from generate_series(1, 20000) i",
    "create table right_one as select i as id, i % 100 as a from generate_series(1, 20000) i",
)
GROWTH = ("analyze", "insert into grown select i, 2 from generate_series(1, 20000) i")
"""Statements for a later session: the counts of the session before it are known by then."""
TOGETHER = "select pairs.note from pairs, kinds where a = {n} and b = {n} and kinds.id = pairs.a"
GROWN = "select id from grown where day = 2 and id > {n}"
RIGHT = "select id from right_one where a = {n}"
FIRST = "select note from pairs where a = {n} and b = {n} limit 1"
FOUND = (
    "Limit  (cost=0.00..5.00 rows=1 width=4) (actual rows=1 loops=1)\n"
    "  ->  Seq Scan on big  (cost=0.00..359.00 rows=9000 width=4) (actual rows=1 loops=1)\n"
    "        Filter: (a = 5)"
)


def wrong(plan: str) -> Any:
    return TextPlans().read(f"Query Text: x\n{plan}")[1].wrong


def test_fewer_rows_below_a_limit_are_no_misestimate_and_more_are() -> None:
    assert wrong(FOUND) is None
    more = wrong(FOUND.replace("rows=9000 width=4) (actual rows=1 ", "rows=1 width=4) (actual rows=9000 "))
    assert (more.node, more.planned, more.found) == (1, 1, 9000)
    assert wrong(FOUND.replace("Limit ", "Aggregate ")).node == 1


def test_the_inner_side_of_a_merge_join_is_read_again_and_says_nothing() -> None:
    plan = (
        "Merge Join  (cost=0..1 rows=900000 width=4) (actual rows=900000 loops=1)\n"
        "  Merge Cond: (a = b)\n"
        "  ->  Index Only Scan using x on x  (cost=0..1 rows=3000 width=4) (actual rows=3000 loops=1)\n"
        "  ->  {}  (cost=0..1 rows=3000 width=4) (actual rows=900000 loops=1)"
    )
    assert wrong(plan.format("Index Only Scan using y on y")) is None
    assert wrong(plan.replace("Merge Join", "Hash Join").format("Seq Scan on y")).node == 2


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, JsonObject, JsonObject]]:
    """Yield the snapshots around a load whose plans are logged, the advice on them, and the page of plans."""
    folder = tmp_path_factory.mktemp("estimates")
    with EmbeddedPostgres(settings=LOGGING) as engine:
        dsn = make_conninfo("", **engine.conninfo())
        planted.run(engine, *MADE)
        planted.run(engine, *GROWTH)
        assert dbdyno("snap", "take", "--target", dsn, cwd=folder).returncode == 0
        load = [text.format(n=n) for n in range(10) for text in (TOGETHER, GROWN, RIGHT, FIRST)]
        planted.run(engine, *load, "select 1 as the_end")
        assert dbdyno("snap", "take", "--target", dsn, cwd=folder).returncode == 0
        log = Path(engine.socket_dir).parent / "data" / "log" / "pg.log"
        before = json.loads(dbdyno("advise", "snap:1..2", "--format", "json", cwd=folder).stdout)
        told = {one["rule"]: one for one in before["not_judged"]}
        assert "snap plans --log" in told["logged_estimates"]["next"]
        until(lambda: "the_end" in log.read_text(), 300)  # the collector of the log is a process of its own
        plans = dbdyno("snap", "plans", "--log", log, "--format", "json", cwd=folder)
    done = succeeded("advise", "snap:1..2", "--format", "json", cwd=folder)
    yield folder, json.loads(done.stdout), json.loads(plans.stdout)


def test_nodes_that_find_other_rows_are_named_with_what_stands_behind_them(asked: Any) -> None:
    folder, model, _ = asked
    found = [one for one in model["findings"] if one["rule"] == "logged_estimates"]
    assert len(found) == 2, [one["sentence"] for one in found]
    together, grown = sorted(found, key=lambda one: "pairs" not in one["sentence"])
    assert "Seq Scan on pairs finds 150 rows where the planner expects 1 (10 of 10" in together["sentence"]
    assert together["fix"] == [
        "create statistics (dependencies, mcv) on a, b from pairs",
        "analyze pairs",
    ]
    assert "50 % of the rows changed since" in grown["sentence"] and grown["fix"][0] == "analyze grown"
    assert all(one["level"] == "warning" for one in found)
    figures = {one["what"]: one for one in together["evidence"]}
    assert figures["rows found"]["value"] == 150 and figures["rows found"]["place"].startswith("pg.log:")
    assert not [one for one in model["findings"] if one["rule"] == "wrong_estimates"], "the log says it better"
    shown = dbdyno("advise", "snap:1..2", "--only", "logged_estimates", cwd=folder).stdout
    assert "create statistics (dependencies, mcv) on a, b from pairs" in " ".join(shown.split())


def test_the_page_of_plans_has_the_nodes_and_leaves_out_what_is_right(asked: Any) -> None:
    (section,) = (one for one in asked[2]["sections"] if one["name"] == "estimates")
    rows = {row["node"]: row for row in section["tables"][0]["rows"]}
    assert set(rows) == {"Seq Scan on pairs", "Seq Scan on grown"}
    assert (rows["Seq Scan on grown"]["planned"], rows["Seq Scan on grown"]["seen"]) == (1, "10 of 10")


def estimate(**more: Any) -> Estimate:
    known: dict[str, Any] = {"statement": "1", "text": "select", "plan": "p", "measured": 20, "spent_ms": 100.0}
    node: JsonObject = {"executions": 20, "node": "Seq Scan on t", "kind": "Seq Scan", "table": "t"}
    return Estimate(**{**known, **node, "conditions": ("(a = ?)",), "planned": 1.0, "found": 500.0, **more})


def advice(*rows: Any, rule: str = "logged_estimates") -> list[TableRow]:
    kinds = {kind: [one for one in rows if isinstance(one, kind)] for kind in (Estimate, Table, Column, Statement)}
    return list(judge(Facts("", "snapshots", kinds), choose_rules([rule]))["findings"])


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ({}, "alter table t alter column a set statistics"),
        ({"conditions": ('((a = ?) AND ("b C" = ?))',)}, 'create statistics (dependencies, mcv) on a, "b C" from t'),
        ({"conditions": ("(lower(a) = ?)",)}, "-- of an expression"),
        ({"conditions": ("(a = id)",), "kind": "Index Scan"}, "alter table t alter column a"),
        ({"kind": "Hash Join", "node": "Hash Join", "table": ""}, "-- no setting corrects this"),
        ({"kind": "Function Scan", "table": "f"}, "alter function f rows 500"),
        ({"executions": 4, "measured": 4}, None),
        ({"executions": 15}, None),
        ({"planned": 60.0}, None),
        ({"executions": 0, "node": ""}, None),
    ],
)
def test_the_fix_follows_from_node_and_condition(more: JsonObject, begins: str | None) -> None:
    found = advice(estimate(**more))
    assert [one["fix"][0].startswith(begins or "") for one in found] == ([True] if begins else [])


def test_a_statement_with_little_of_the_time_is_left_out_and_fewer_rows_are_a_hint() -> None:
    busy = Statement("2", "select 2", 10, 1e6, 10, 0, 0, 0)
    assert not advice(estimate(), busy, Statement("1", "select", 10, 1.0, 10, 0, 0, 0))
    (found,) = advice(estimate(planned=900.0, found=2.0))
    assert found["level"] == "hint"
