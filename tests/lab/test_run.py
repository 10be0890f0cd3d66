"""Tests of a plan from the first connection to the report, through the command line."""

from __future__ import annotations

import json

import psycopg
import pytest
from lab_help import TWO_ARMS

from soaked import first


def test_an_experiment_runs_and_answers_with_a_verdict_and_a_report(shared_run):
    runs, done = shared_run
    assert "report: runs/" in done.stdout
    assert "seed 7" in done.stderr
    assert "block 4/4" in done.stderr, "one line per block where there is no terminal"
    run = next(runs.iterdir())
    analysis = json.loads((run / "analysis.json").read_text())
    assert analysis["verdict"]["decision"] in ("same", "unclear", "provisional", "faster", "slower")
    assert [arm["name"] for arm in analysis["arms"]] == ["base", "other"]
    assert analysis["run"]["blocks_whole"] == 3
    assert (run / "report.html").stat().st_size > 10_000


def test_no_password_is_in_anything_that_was_written(lab_with_run, server):
    password = server.tcp_conninfo()["password"]
    for path in (lab_with_run.folder / "runs").rglob("*"):
        if path.is_file():
            assert password.encode() not in path.read_bytes(), path


@pytest.mark.soak
def test_the_seed_replays_the_order_of_the_arms(lab):
    plan = lab.plan(TWO_ARMS)
    orders = []
    for seed in ("7", "7", "8"):
        lab("run", plan, "--seed", seed, "--out", f"out{len(orders)}")
        records = sorted((lab.folder / f"out{len(orders)}").glob("*/blocks/*.json"))
        # The first four of each block: on a busy machine slices grow, and there are fewer of them.
        orders.append([[s["arm"] for s in json.loads(r.read_text())["slices"]][:4] for r in records])
    assert orders[0] == orders[1] != orders[2]


def test_every_transaction_is_a_row_and_rows_are_queried_by_sql(lab_with_run):
    sql = "select arm, kind, count(*) as n, bool_and(elapsed_ns > 0) as ok from calls group by all"
    rows = json.loads(lab_with_run("sql", sql, "--format", "json").stdout)
    assert {row["arm"] for row in rows} == {"base", "other"}
    assert all(row["kind"] == "transaction" and row["n"] > 10 and row["ok"] for row in rows)


@pytest.mark.soak
def test_runs_are_listed_compared_and_rendered_again(lab_with_run, html_page):
    listed = json.loads(lab_with_run("runs", "--format", "json").stdout)
    assert [(r["status"], r["blocks"]) for r in listed] == [("complete", "3/3")]
    assert "base" in lab_with_run("compare", "last").stdout
    model = json.loads(lab_with_run("compare", listed[0]["run"][-4:], "--format", "json").stdout)
    assert model["run"]["id"] == listed[0]["run"]
    lab_with_run("report", "last", "-o", "x.html")
    assert "<html" in (lab_with_run.folder / "x.html").read_text()[:200]


@pytest.mark.soak
def test_two_runs_are_laid_side_by_side_with_a_warning(lab):
    for _ in range(2):
        lab("run", lab.plan(TWO_ARMS))
    names = [r["run"] for r in json.loads(lab("runs", "--format", "json").stdout)]
    done = lab("compare", *names, "--format", "json")
    model = json.loads(done.stdout)
    assert model["warnings"][0]["code"] == "not interleaved"
    assert len(model["metrics"]) == 6


def test_aa_answers_with_the_noise_floor(lab):
    done = lab("run", "--aa", lab.plan(TWO_ARMS, blocks=4))
    assert "blocks needed" in done.stdout
    assert "base again" in done.stdout


def test_an_open_loop_counts_from_the_intended_start(lab):
    plan = lab.plan(TWO_ARMS, more="")
    path = lab.folder / plan
    path.write_text(path.read_text().replace("sessions = 2", "sessions = 2\nrate_per_s = 400"))
    lab("run", plan)
    sql = "select count(*) as n, count(intended_ns) as planned from calls where kind = 'transaction'"
    row = json.loads(lab("sql", sql, "--format", "json").stdout)[0]
    assert row["n"] == row["planned"] > 100
    metrics = json.loads(lab("compare", "last", "--format", "json").stdout)["metrics"]
    assert "throughput" not in {m["metric"] for m in metrics}, "the rate was given, not measured"


@pytest.mark.soak
def test_three_arms_with_other_scripts_and_sessions(lab):
    arms = (
        '[[arm]]\nname = "one"\n[[arm]]\nname = "two"\nsessions = 1\n'
        "[[arm]]\nname = \"three\"\nscripts = [{text = '''\\set n random(1, 9)\nselect :n;'''}]\n"
    )
    lab("run", lab.plan(arms))
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    assert [arm["sessions"] for arm in model["arms"]] == [2, 1, 2]
    assert {m["arm"] for m in model["metrics"]} == {1, 2}


def test_turns_counted_in_transactions(lab):
    plan = lab.plan(TWO_ARMS)
    path = lab.folder / plan
    path.write_text(
        path.read_text().replace('turn = "60ms"', "turn_transactions = 50").replace('settle = "50ms"', 'settle = "1ms"')
    )
    lab("run", plan)
    sql = "select block, arm, count(*) as n from calls where block > 0 and slice in (1, 3) group by all"
    rows = json.loads(lab("sql", sql, "--format", "json").stdout)
    assert {row["n"] for row in rows} == {50}


def test_errors_of_the_engine_are_rows_with_their_sqlstate(lab):
    script = "\\set n random(0, 1)\nselect 1 / :n::int from pg_sleep(0.001);"
    lab("run", lab.plan(TWO_ARMS, script=script), code=1)
    sql = "select error, count(*) as n from calls where kind = 'transaction' group by all order by 1"
    rows = json.loads(lab("sql", sql, "--format", "json").stdout)
    assert {row["error"] for row in rows} == {None, "22012"}
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    assert any(w["code"] == "errors" for w in model["warnings"])


def test_objects_are_made_and_removed(lab, dsn):
    more = 'setup = ["create table fresh (i int)"]\nteardown = ["drop table fresh"]'
    lab("run", lab.plan(TWO_ARMS, more=more, script="select count(*) from fresh, pg_sleep(0.001);", blocks=2))
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select to_regclass('fresh')").fetchone() == (None,)


def test_a_table_that_was_there_before_is_never_dropped(lab, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table precious as select 42 as i")
        more = 'setup = ["create table precious (i int)"]\nteardown = ["drop table precious"]'
        done = lab("run", lab.plan(TWO_ARMS, more=more), code=2)
        assert "already exists" in done.stderr
        assert conn.execute("select i from precious").fetchone() == (42,)
        conn.execute("drop table precious")


def test_a_table_that_a_later_statement_of_the_set_up_meets_is_never_dropped(lab, dsn):
    """Regression: the first statement had registered the teardown, which dropped the user's own table."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table precious as select 42 as i")
        made = '"create table made (i int)", "create table precious (i int)"'
        more = f'setup = [{made}]\nteardown = ["drop table made", "drop table precious"]'
        done = lab("run", lab.plan(TWO_ARMS, more=more), code=2)
        assert "already exists" in done.stderr
        assert "the teardown was not run" in done.stderr
        assert conn.execute("select i from precious").fetchone() == (42,)
        conn.execute("drop table precious, made")


@pytest.mark.parametrize("name", first("simple-update", "select-only", "tpcb-like"))
def test_built_in_workloads_run_and_leave_nothing(lab, dsn, name):
    plan = lab.plan(TWO_ARMS, blocks=2)
    path = lab.folder / plan
    text = path.read_text()
    start, end = text.index("scripts ="), text.index("[load]")
    path.write_text(text[:start] + f'builtin = "{name}"\n' + text[end:])
    lab("run", plan)
    with psycopg.connect(dsn) as conn:
        row = conn.execute("select count(*) from pg_namespace where nspname = 'dbdyno'").fetchone()
        assert row == (0,)


@pytest.mark.soak
def test_redo_size_measures_redo_from_the_log_position(lab, dsn):
    lab(
        "run",
        "redo-size",
        "--target",
        dsn,
        "--quick",
        "--blocks",
        "4",
        "--set",
        "redo_bytes=8KiB..1MiB",
    )
    sql = (
        "select count(*) as n, min(redo_bytes) as low, max(redo_bytes) as high, "
        "count(unflushed_bytes) as u from calls where kind = 'commit' and redo_bytes is not null"
    )
    row = json.loads(lab("sql", sql, "--format", "json").stdout)[0]
    assert row["n"] == row["u"] > 100
    assert row["low"] >= 8 * 1024
    assert "sawtooth" in lab("compare", "last").stdout


@pytest.mark.soak
def test_arms_may_differ_by_protocol(lab):
    arms = (
        '[[arm]]\nname = "prepared"\n[[arm]]\nname = "simple"\nprotocol = "simple"\n'
        '[[arm]]\nname = "extended"\nprotocol = "extended"\n'
    )
    lab("run", lab.plan(arms, script="\\set n random(1, 9)\nselect :n + 1;"))
    sql = "select arm, count(error) as failed, count(*) as n from calls group by all"
    rows = json.loads(lab("sql", sql, "--format", "json").stdout)
    assert {row["arm"] for row in rows} == {"prepared", "simple", "extended"}
    assert all(row["failed"] == 0 and row["n"] > 10 for row in rows)


def test_unequal_work_is_found(lab):
    arms = (
        '[[arm]]\nname = "ten"\n[[arm]]\nname = "twenty"\n'
        "scripts = [{text = '''select i from generate_series(1, 20) i, pg_sleep(0.001);'''}]\n"
    )
    lab("run", lab.plan(arms, script="select i from generate_series(1, 10) i, pg_sleep(0.001);"), code=1)
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    gate = next(gate for gate in model["gates"] if gate["name"].startswith("equal"))
    assert gate["ok"] is False
    assert "20 rows" in gate["text"] and "10" in gate["text"]
