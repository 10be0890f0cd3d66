"""Differences planted between two copies: each is named first for its statement; other statements have no finding."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import capture, database, model_of

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

PARALLEL = (
    "alter database {} set min_parallel_table_scan_size = 0",
    "alter database {} set parallel_setup_cost = 0",
    "alter database {} set parallel_tuple_cost = 0",
)


@dataclass(frozen=True)
class Planted:
    """A planted difference: SQL for the copies, the affected statements, the decision and the code of the cause."""

    name: str
    new: tuple[str, ...]
    statements: tuple[str, ...]
    decision: str
    code: str
    says: str
    both: tuple[str, ...] = ()
    others: tuple[str, ...] = ("customer", "update")
    prepared: bool = False


CASES = (
    Planted("an index dropped", ("drop index orders_customer",), ("orders of",), "slower", "index", "orders_customer"),
    Planted(
        "work_mem small",
        ("alter database {} set work_mem = '64kB'",),
        ("without",),
        "slower",
        "setting",
        "work_mem is 64kB and was 64MB",
        ("alter database {} set work_mem = '64MB'",),
    ),
    Planted(
        "JIT on",
        ("alter database {} set jit_above_cost = 500", "alter database {} set jit_optimize_above_cost = 500"),
        ("region",),
        "slower",
        "setting",
        "jit_above_cost is 500 and was 100000",
        others=("customer", "words"),
        prepared=True,
    ),
    Planted(
        "parallel off",
        ("alter database {} set max_parallel_workers_per_gather = 0",),
        ("answered",),
        "slower",
        "setting",
        "max_parallel_workers_per_gather is 0 and was 2",
        PARALLEL,
        others=("customer",),
    ),
    Planted(
        "extended statistics missing",
        ("drop statistics orders_place", "analyze orders"),
        ("first",),
        "slower",
        "statistics",
        "orders_place",
    ),
    Planted(
        "a statistics target lowered",
        ("alter table orders alter column kind set statistics 1", "analyze orders"),
        ("skewed",),
        "slower",
        "target",
        "statistics target of orders.kind is 1",
    ),
    Planted(
        "a table bloated",
        (
            "alter table words set (autovacuum_enabled = off)",
            "insert into words select 'filler ' || i || repeat('x', 400), i from generate_series(1, 150000) i",
            "delete from words where word like 'filler%'",
            "vacuum (truncate off, analyze) words",
        ),
        ("searched",),
        "slower",
        "bloat",
        "words is bloated",
    ),
    Planted(
        "a generic plan that misses the values",
        ("alter table orders alter column kind set (n_distinct = 100000)", "analyze orders"),
        ("prepared",),
        "slower",
        "generic plan",
        "it executes its generic plan (cost",
        (
            "create index orders_kind on orders (kind)",
            "alter table orders alter column kind set (n_distinct = 2)",
            "analyze orders",
        ),
        prepared=True,
    ),
    Planted(
        "a function that raises",
        (
            "create or replace function tax(numeric) returns numeric language plpgsql immutable as"
            " 'begin raise exception ''no tax''; end'",
        ),
        ("taxed",),
        "fails",
        "function",
        "function tax has another definition",
    ),
    Planted(
        "a sequence behind",
        ("select setval(pg_get_serial_sequence('orders', 'id'), 17)",),
        ("insert",),
        "fails",
        "sequence",
        "is at 17",
    ),
    Planted(
        "another collation",
        ('alter table words alter column word type text collate "und-x-icu"',),
        ("words",),
        "differs",
        "collation",
        "word is text collate und-x-icu",
    ),
    Planted(
        "a view's other answer",
        ("create or replace view paid as select id, customer, amount from orders where status <> 'new'",),
        ("view",),
        "differs",
        "view",
        "view paid has another definition",
    ),
)


def rehearsed(engine: EmbeddedPostgres, case: Planted, folder: Path) -> JsonObject:
    """Rehearse the case's statements and two others; return the model."""
    is_timed = case.decision == "slower"
    length = ("8s" if case.prepared or case.name in LONG else "4s") if is_timed else "30s"
    chosen = (*case.statements, *case.others)
    captured = capture(engine, "shop", folder / "captured", chosen=chosen, prepared=case.prepared)
    sides = {}
    for name, changes in (("old", case.both), ("new", (*case.both, *case.new))):
        sides[name] = database(engine, name, *(one.format(name) for one in changes), template="shop")
    words = ("--load", captured, "--for", length, "--seed", "5", "--out", folder / "runs")
    done = dbdyno("rehearse", sides["old"], sides["new"], *words)
    return model_of(done, folder / "runs")


LONG = (
    "work_mem small",
    "JIT on",
    "parallel off",
    "extended statistics missing",
    "a statistics target lowered",
    "a table bloated",
)
"""Cases of the soak; all others run with every test run. test_rehearse.py tests work_mem as a changed setting."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=pytest.mark.soak if case.name in LONG else ()) for case in CASES],
)
def test_it_is_named_first_on_its_statement_and_all_others_are_quiet(
    engine: EmbeddedPostgres, tmp_path: Path, case: Planted, request: pytest.FixtureRequest
) -> None:
    if case.decision != "slower":
        request.getfixturevalue("few_blocks")
    model = rehearsed(engine, case, tmp_path)
    moved = [row for row in model["statements"] if row["decision"] in ("slower", "fails", "differs")]
    assert [row["decision"] for row in moved] == [case.decision] * len(case.statements), model["statements"]
    (cause, *_) = [row["cause"] for row in moved]
    assert cause is not None, moved
    assert cause["code"] == case.code, cause
    assert case.says in cause["sentence"]
    assert model["verdict"]["decision"] == case.decision
    assert case.decision == "slower" or "slower" not in model["verdict"]["headline"]


@pytest.mark.usefixtures("few_blocks")
def test_two_equal_copies_have_no_regression(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    model = rehearsed(engine, Planted("nothing", (), ("region", "grouped", "taxed"), "", "", ""), tmp_path)
    assert {row["decision"] for row in model["statements"]} <= {"same", "unclear", "faster"}
    assert model["verdict"]["decision"] in ("same", "better", "worse", "no verdict")
    assert make_conninfo("", **engine.conninfo()).split()[0] not in str(model["statements"])
