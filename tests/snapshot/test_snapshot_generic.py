"""Generic plans that snapshots store on request: those of the server, without running a statement, and their flips."""

from __future__ import annotations

import contextlib
import dataclasses
import json

import pytest
from planted import Planted
from snapshot_help import Lab, section

from command_line import dbdyno, succeeded
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.plans.generic import VIEW, Candidate, candidates, generic_plan_rows, may_be_planned
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.taking.take import open_collector, take

BY_CUST = "select sum(amount) from planned where cust = %s and note <> %s"
FOREVER = 2**40
SETUP = (
    "create table planned (id int primary key, cust int, amount int, note text)",
    "insert into planned select n, n / 10, n, 'note ' || n from generate_series(1, 20000) n",
    "create index planned_cust on planned (cust)",
    "vacuum analyze planned",
)
WRITE = "update planned set amount = amount + 1 where id = %s"


@pytest.fixture
def server(lab: Lab) -> Lab:
    lab.run(*SETUP, "select pg_stat_statements_reset()")  # else 50 slower ones of tests before may take all places
    with contextlib.closing(lab.connect()) as session:
        for number in range(5):
            session.execute(BY_CUST, (number, "a secret"))
            session.execute(WRITE, (number,))
    return lab


def taken(lab: Lab, plans: int = 50) -> Snapshot:
    with open_collector(lab.dsn, Options(name="db", plans=plans)) as collector:
        return take(collector, lab.store, engine_name="postgres")


def kept(snapshot: Snapshot) -> dict[str, JsonObject]:
    """Return the stored generic plans by the start of the statement's text."""
    import duckdb

    with duckdb.connect() as connection:
        rows = connection.execute(
            f"select query, p.* from {snapshot.relation(VIEW)} p join {snapshot.relation('statement_texts')}"
            " using (queryid)"
        )
        names = [one[0] for one in rows.description or ()]
        return {row[0][:31]: dict(zip(names, row, strict=True)) for row in rows.fetchall()}


def test_a_snapshot_keeps_the_plans_of_statements_without_running_them(server: Lab) -> None:
    with contextlib.closing(server.connect()) as session:
        asked = (
            "select sum(calls), (select sum(amount) from planned) from pg_stat_statements where query like '%planned%'"
        )
        before = session.execute(asked + " and query !~ 'sum.calls|dbdyno'").fetchone()
        snapshot = taken(server)
        after = session.execute(asked + " and query !~ 'sum.calls|dbdyno'").fetchone()
        assert before == after, "no statement of the user's was executed"
        assert not session.execute("select 1 from pg_locks where relation = 'planned'::regclass").fetchall()
    found = kept(snapshot)
    plan = found[BY_CUST[:31]]
    assert plan["problem"] is None and plan["sketch"] == "Index Scan planned_cust → Aggregate"
    assert json.loads(plan["tree"])[0] == "Aggregate" and "a secret" not in str(found)
    assert found[WRITE[:31]]["sketch"].endswith("→ Update planned")


def test_no_plan_is_kept_unasked_and_none_of_what_begins_otherwise(server: Lab) -> None:
    assert VIEW not in taken(server, plans=0).views
    assert not may_be_planned("vacuum planned") and not may_be_planned("/* dbdyno */ select 1")
    assert not may_be_planned("select " + "1," * 100_000) and may_be_planned(
        "-- with a remark\nWITH a as (select 1) table a"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select 1; drop table planned", "multiple commands"),
        ("select * from nowhere", "nowhere"),
        ("select 1 / 0", "division by zero"),
        ("select sum(amount) from planned where cust = $1", None),
    ],
)
def test_a_text_that_is_no_single_statement_is_refused_and_the_next_one_planned(
    server: Lab, text: str, said: str | None
) -> None:
    with contextlib.closing(server.connect()) as session:
        some = [Candidate(1, 7, text), Candidate(1, 8, "select id from planned where id = $1")]
        for _ in range(2):  # what failed leaves nothing behind in the session
            first, second = generic_plan_rows(session, some, FOREVER)
            assert (said is None and first[-1] is None) or str(said) in str(first[-1])
            assert second[-1] is None and second[3] == "Index Only Scan planned_pkey"
        assert session.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        assert session.execute("select count(*) from planned").fetchone() == (20000,)
        assert generic_plan_rows(session, some, 0) == [], "no time is left"


def test_the_statements_that_took_most_time_come_first(server: Lab) -> None:
    with contextlib.closing(server.connect()) as session:
        session.execute("select pg_stat_statements_reset()")
        session.execute("select count(id) from planned where id = 7")
        session.execute("select count(*) from planned a join planned b on a.amount = b.amount + 1")
        columns = session.execute("select * from pg_stat_statements limit 0").description or ()
        spent = "total_exec_time" if "total_exec_time" in {one.name for one in columns} else "total_time"
        (database,) = session.execute("select oid::bigint from pg_database where datname = current_database()")
        found = [one.text for one in candidates(session, "public", spent, database, 1)]
        assert len(found) == 1 and "join planned b" in found[0]
        assert candidates(session, "public", spent, [1], 5) == [], "those of other databases are not planned here"


def test_the_servers_own_generic_plan_is_the_same(server: Lab, major: int) -> None:
    if major < 16:
        pytest.skip("EXPLAIN (GENERIC_PLAN) came with PostgreSQL 16")
    text = "select sum(amount) from planned where cust = $1 and note <> $2"
    with contextlib.closing(server.connect()) as session:
        made = session.pgconn.exec_(f"explain (generic_plan, costs off) {text}".encode())
        lines = [bytes(made.get_value(row, 0) or b"").decode() for row in range(made.ntuples)]
        (row,) = generic_plan_rows(session, [Candidate(1, 7, text)], FOREVER)
    assert "Index Scan using planned_cust" in lines[1] and row[3] == "Index Scan planned_cust → Aggregate"


def test_another_generic_plan_is_named_where_no_log_tells(server: Lab) -> None:
    planted = Planted("postgres", server.dsn, server.store, dataclasses.replace(server.options, plans=50))
    off = [f"alter system set enable_{kind}scan = off" for kind in ("index", "bitmap", "indexonly")]

    def load() -> None:
        with contextlib.closing(server.connect()) as session:
            for number in range(20):
                session.execute(BY_CUST, (number, "x"))

    def plant() -> None:
        server.run("set pg_stat_statements.track = 'none'", *off, "select pg_reload_conf()")

    try:
        compared, reported = planted.models(load, plant, None, sampled=False)
    finally:
        server.run("alter system reset all", "select pg_reload_conf()")
    for model in (compared, reported):
        first = model["sections"][0]["tables"][0]["rows"][0]
        assert first["what"].startswith("another generic plan: select sum(amount) from planned"), first
        assert first["evidence"].startswith("Index Scan using planned_cust → Seq Scan on planned")
        assert model["why"][0]["causes"][0]["code"] == "plan"
    rows = section(reported, "plans")["tables"][0]["rows"]
    assert any(row["now"].startswith("Seq Scan planned") for row in rows)


def test_the_command_says_what_it_may_be_asked(server: Lab) -> None:
    succeeded("snap", "take", "--target", server.dsn, "--store", server.store.folder, "--plans", "20")
    assert dbdyno("snap", "take", "--target", server.dsn, "--plans", "-1").returncode == 2
