"""Tests of all endings of a run: the evidence is readable, and the server's settings are restored."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from lab_help import TWO_ARMS, reloading

from soaked import first
from waiting import until

AFTER = """[[arm]]
name = "base"
[[arm]]
name = "marked"
before_sql = "insert into marks values ('before')"
after_sql = "insert into marks values ('after')"
"""


KILLS = 20
"""Number of kills, which take half a minute; the soak of faults injects hundreds."""


def test_a_reloaded_setting_is_in_force_in_its_arm_and_put_back(lab, delay):
    before = delay()
    works = "(current_setting('wal_writer_delay') <> '500ms' or random() < 0.5)::int"
    script = f"select 1 / {works} from pg_sleep(0.001);"
    plan = reloading(lab, script=script, blocks=2)
    lab("run", plan, code=1)
    sql = "select arm, count(error) as failed, count(*) as n from calls group by all order by arm"
    rows = json.loads(lab("sql", sql, "--format", "json").stdout)
    assert rows[0]["failed"] == 0 < rows[1]["failed"] < rows[1]["n"], "in effect in one arm only"
    assert delay() == before


@pytest.mark.parametrize("number", first(signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
def test_a_signal_puts_everything_back(lab, delay, number):
    before = delay()
    running = lab.start("run", reloading(lab, blocks=500))
    assert until(lambda: delay() != before)
    running.send_signal(number)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130, errors
    assert "all changes to the engine are undone" in errors
    assert delay() == before
    assert json.loads(lab("runs", "--format", "json").stdout)[0]["status"] == "aborted"


def test_kill_9_puts_everything_back(lab, delay):
    before = delay()
    running = lab.start("run", reloading(lab, blocks=500))
    assert until(lambda: delay() != before)
    running.kill()
    running.communicate()
    assert until(lambda: delay() == before), "the guardian puts it back"


def test_sql_after_an_arm_runs_whatever_happens(lab, dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table marks (word text)")
        count = "select count(*) filter (where word = 'before'), count(*) from marks"
        lab("run", lab.plan(AFTER, blocks=2))
        assert conn.execute(count).fetchone() == (3, 6)
        running = lab.start("run", lab.plan(AFTER, blocks=500))
        assert until(lambda: conn.execute(count).fetchone()[0] > 4)
        running.kill()
        running.communicate()

        def settled() -> bool:
            before, both = conn.execute(count).fetchone()
            return both - before >= before

        assert until(settled)
        conn.execute("drop table marks")


def test_an_engine_that_goes_away_ends_the_run_with_one_error(lab):
    from psycopg.conninfo import make_conninfo

    from dbdyno.bench.postgres.embedded import EmbeddedPostgres

    with EmbeddedPostgres() as engine:
        lab.dsn = make_conninfo("", **engine.tcp_conninfo())
        running = lab.start("run", lab.plan(TWO_ARMS, blocks=500))
        assert until(lambda: list(lab.folder.glob("runs/*/blocks/b000002.json")))
        engine.stop()
        _, errors = running.communicate(timeout=120)
    assert running.returncode == 2
    assert "Traceback" not in errors
    assert "dbdyno: " in errors
    lab("compare", "last")


def test_a_lost_connection_is_opened_again_and_the_block_marked(lab, dsn):
    def lose() -> None:
        assert until(lambda: list(lab.folder.glob("runs/*/blocks/b000001.json")))
        with psycopg.connect(dsn) as conn:
            conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'dbdyno/%'"
            )

    with ThreadPoolExecutor(1) as beside:
        lost = beside.submit(lose)
        lab("run", lab.plan(TWO_ARMS, blocks=6))
        lost.result()
    records = [json.loads(p.read_text()) for p in lab.folder.glob("runs/*/blocks/*.json")]
    assert any("reconnect" in mark for record in records for mark in record["marks"])


def test_resume_runs_what_is_missing_and_no_more(lab):
    running = lab.start("run", lab.plan(TWO_ARMS, blocks=8), "--seed", "5")
    assert until(lambda: list(lab.folder.glob("runs/*/blocks/b000002.json")))
    running.kill()
    running.communicate()
    run = next((lab.folder / "runs").iterdir())
    kept = {p.name: p.stat().st_mtime_ns for p in (run / "blocks").glob("b00000[12].json")}
    listed = json.loads(lab("runs", "--format", "json").stdout)[0]
    assert listed["status"] == "aborted"
    os.environ["PGPASSWORD"] = psycopg.conninfo.conninfo_to_dict(lab.dsn)["password"]
    try:
        lab("run", "--resume", "last")
    finally:
        del os.environ["PGPASSWORD"]
    listed = json.loads(lab("runs", "--format", "json").stdout)[0]
    assert (listed["status"], listed["blocks"]) == ("complete", "8/8")
    assert kept == {n: (run / "blocks" / n).stat().st_mtime_ns for n in kept}, "not run again"
    assert "complete" in lab("run", "--resume", "last", code=2).stderr


@pytest.mark.soak
def test_killed_at_any_instant_the_evidence_is_readable(lab):
    """Kill runs at random instants, half of them from the start on, half after the first block; all complete blocks can
    be read."""
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    plan = lab.plan(TWO_ARMS, blocks=100)
    path = lab.folder / plan
    path.write_text(path.read_text().replace('"60ms"', '"20ms"').replace('"20ms"', '"5ms"', 1))
    whole = 0
    for trial in range(KILLS):
        out = lab.folder / f"out{trial}"
        running = lab.start("run", plan, "--out", str(out))
        if trial % 2:
            assert until(lambda out=out: list(out.glob("*/blocks/*.json")))
        time.sleep(dice.uniform(0.0, 1.5))
        running.kill()
        running.communicate()
        whole += check(out, f"seed {seed}, trial {trial}")
    assert whole >= KILLS // 2, "the kills came too early to test anything"


def check(out, told: str) -> int:
    from dbdyno.base.errors import EvidenceError
    from dbdyno.evidence.run import list_runs
    from dbdyno.study.analysis.measured.measures import measure

    blocks = 0
    for run in list_runs(out):
        assert run.status in ("aborted", "complete"), told
        blocks += len(run.blocks())
        try:
            measures = measure(run)
        except EvidenceError as error:
            assert "no complete block" in str(error), f"{told}: {error}"
        else:
            assert not measures.broken, told
            assert len(measures.arms[0].blocks) == run.measured_blocks(), told
    return blocks
