"""Tests of the headline on a live engine: word, JSON, page and exit code agree with the evidence."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest
from lab_help import TWO_ARMS

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.checks import stalls
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures
from dbdyno.study.analysis.measured.timeline import timeline
from waiting import until

HALF_FAILS = (
    '[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'
    "scripts = [{name = \"half\", text = '''\\set n random(0, 1)\nselect 1 / :n::int from pg_sleep(0.001);'''}]\n"
)
SECOND = 1_000_000_000


def run_of(lab) -> Path:
    return max((lab.folder / "runs").iterdir())


def test_an_arm_that_failed_half_of_its_transactions_has_no_verdict(lab, html_page):
    """Regression: the verdict was "FASTER ... 2.66 times as fast", with exit code 0 and no failed gate."""
    done = lab("run", lab.plan(HALF_FAILS, blocks=2), code=1)
    assert "NO VERDICT" in done.stdout
    assert "22012 division by zero" in done.stdout
    model = json.loads(lab("compare", "last", "--format", "json", code=1).stdout)
    assert model["verdict"]["decision"] == "no verdict"
    assert "of b's transactions failed (SQLSTATE 22012), 0 % of a's" in model["verdict"]["headline"]
    assert {row["decision"] for row in model["metrics"]} == {"no verdict"}
    assert [(e["arm"], e["statement"], e["sqlstate"]) for e in model["errors"]] == [(1, "half", "22012")]
    assert model["arms"][1]["error_codes"] == {"22012": model["arms"][1]["errors"]}
    gate = next(gate for gate in model["gates"] if gate["ok"] is False)
    assert (gate["code"], gate["effect"]) == ("errors", "withholds")
    page = (run_of(lab) / "report.html").read_text()
    assert '<span class="pill bad">No verdict</span></p><h1 class="finding">' in page


def test_an_arm_of_which_everything_fails_ends_the_run_with_or_without_a_warm_up(lab):
    arms = TWO_ARMS.replace('name = "other"', 'name = "other"\nscripts = [{text = "select 1 / 0;"}]')
    plan = lab.folder / lab.plan(arms, blocks=2)
    without = plan.read_text().replace("warmup_blocks = 1", "warmup_blocks = 0")
    # blocks of the base alone, which measure the cost of watching, come first: it was not looked at after them
    watched = without.replace("overhead_blocks = 0", "overhead_blocks = 2")
    for text in (plan.read_text(), without, watched):
        plan.write_text(text)
        done = lab("run", plan.name, code=2)
        assert "transactions failed in the first block" in done.stderr
        assert "arm 'other'" in done.stderr
        assert "division by zero" in done.stderr


def test_two_blocks_are_provisional_or_cannot_tell(lab):
    lab("run", lab.plan(TWO_ARMS, blocks=2))
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    assert model["verdict"]["decision"] in ("provisional", "unclear")
    assert next(g for g in model["gates"] if g["code"] == "blocks")["ok"] is False


def test_unequal_work_withholds_unless_the_plan_accepts_it(lab):
    script = "select generate_series(1, 10) from pg_sleep(0.001);"
    arms = f'[[arm]]\nname = "one"\n[[arm]]\nname = "ten"\nscripts = [{{text = "{script}"}}]\n'
    plan = lab.folder / lab.plan(arms, blocks=2)
    assert "ten and one do different work: 10 and 1 rows" in lab("run", plan.name, code=1).stdout
    plan.write_text(plan.read_text() + '[verdict]\naccept = ["work"]\n')
    lab("run", plan.name)
    plan.write_text(plan.read_text().replace('"work"', '"luck"'))
    assert "verdict.accept must be one of errors, arrivals, work" in lab("run", plan.name, code=2).stderr


@pytest.mark.soak
def test_slices_grow_until_they_hold_five_transactions_of_each_session(lab):
    """Regression: slices of 50 ms held one pg_sleep(1) each; the run took 122 s instead of 26 s without a message."""
    done = lab("run", lab.plan(TWO_ARMS, blocks=2, script="select pg_sleep(0.05);"))
    assert "so that each has enough operations" in done.stderr
    manifest = json.loads((run_of(lab) / "manifest.json").read_text())
    assert manifest["slice_ns"] >= 5 * 50_000_000
    assert manifest["turn_ns"] == 2 * manifest["slice_ns"]
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    assert {g["ok"] for g in model["gates"] if g["code"] == "operations"} <= {True, None, False}
    assert model["arms"][0]["ops"] >= 2 * 2 * 2 * 4


@pytest.mark.soak
def test_without_a_warm_up_a_gate_says_that_slices_are_too_short(lab):
    plan = lab.folder / lab.plan(TWO_ARMS, blocks=2, script="select pg_sleep(0.05);")
    plan.write_text(plan.read_text().replace("warmup_blocks = 1", "warmup_blocks = 0"))
    lab("run", plan.name)
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    found = [g for g in model["gates"] if g["code"] == "operations"]
    assert [g["ok"] for g in found] == [False, False]
    assert "sessions wait for each other at its end" in found[0]["text"]


def test_an_open_loop_at_400_a_second_prints_about_400(lab):
    """Regression: it printed 289,519 for 1,000 per second; sessions that wait for arrivals are seldom busy."""
    plan = lab.folder / lab.plan(TWO_ARMS, blocks=2)
    plan.write_text(plan.read_text().replace("sessions = 2", "sessions = 2\nrate_per_s = 400"))
    lab("run", plan.name)
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    for arm in model["arms"]:
        assert 200 < arm["throughput_per_s"] < 700


@pytest.mark.soak
def test_arms_and_metrics_give_one_number_for_throughput(lab):
    """Regression: the table of arms showed 6.400/s, that of metrics 6.283/s."""
    lab("run", lab.plan(TWO_ARMS, blocks=3))
    model = json.loads(lab("compare", "last", "--format", "json").stdout)
    row = next(row for row in model["metrics"] if row["metric"] == "throughput")
    shown = [arm["throughput_per_s"] for arm in model["arms"]]
    assert np.allclose(shown, [row["base_value"], row["value"]], rtol=1e-9)


def test_a_clock_that_was_set_back_an_hour_is_named_and_compare_lives(lab_with_run):
    """Regression: every later `compare` ended with an internal error."""
    for shift_s, said in ((-3600, "by -3.6e+03 s before block 2"), (7200, "by +3.6e+03 s before block 2")):
        for file in sorted((run_of(lab_with_run) / "blocks").glob("*.json")):
            record = json.loads(file.read_text())
            record["report"].pop("clock_step_ns", None)  # as evidence was before the clock was kept
            if record["index"] >= 2:
                record["started_ns"] += shift_s * SECOND
                record["ended_ns"] += shift_s * SECOND
            file.write_text(json.dumps(record))
        manifest = json.loads((run_of(lab_with_run) / "manifest.json").read_text())
        manifest.pop("wall_s", None)
        (run_of(lab_with_run) / "manifest.json").write_text(json.dumps(manifest))
        model = json.loads(lab_with_run("compare", "last", "--format", "json").stdout)
        gate = next(gate for gate in model["gates"] if gate["code"] == "clock")
        assert gate["ok"] is False
        assert said in gate["text"]
        assert 0 < model["run"]["duration_s"] < 60


def block(index: int, started_s: float, length_s: float, **report: float) -> Block:
    ns = round(started_s * SECOND)
    return Block(
        index, "measure", ns, ns + round(length_s * SECOND), 0, [], report={"wall_ns": length_s * 1e9, **report}
    )


class TestTimeline:
    def test_blocks_follow_each_other_by_number(self):
        found = timeline([block(0, 0, 1), block(1, 1.5, 1)])
        assert (found.begins_s, found.length_s, found.steps) == ({0: 0.0, 1: 1.5}, 2.5, [])

    def test_a_step_between_blocks_is_no_time(self):
        back = timeline([block(0, 5000, 1), block(1, 1401, 1)])
        assert (back.begins_s[1], back.length_s) == (1.0, 2.0)
        assert [(at, round(step)) for at, step in back.steps] == [(1, -3600)]
        ahead = timeline([block(0, 0, 1), block(1, 3601, 1)])
        assert (ahead.length_s, [round(step) for _, step in ahead.steps]) == (2.0, [3600])

    def test_a_step_within_a_block_leaves_the_load_its_length(self):
        found = timeline([Block(0, "measure", 4000 * SECOND, 401 * SECOND, 0, [], report={"wall_ns": 1e9})])
        assert (found.length_s, [round(step) for _, step in found.steps]) == (1.0, [-3600])

    def test_a_pause_before_a_resume_is_no_step(self):
        found = timeline([block(0, 0, 1), block(1, 3601, 1)], resumed=[1])
        assert (found.begins_s[1], found.steps) == (3601.0, [])

    def test_a_step_that_the_runner_saw_is_told(self):
        found = timeline([block(0, 0, 1), block(1, 1, 1, clock_step_ns=3_600e9)])
        assert (found.length_s, found.steps) == (2.0, [(1, 3600.0)])


@pytest.mark.parametrize("who", ["server", "runner"])
@pytest.mark.soak
def test_a_stall_of_a_live_run_is_named_by_a_gate(lab, dsn, who):
    """The server's sessions, or the load generator, pause for two seconds in a block of three."""
    plan = lab.folder / lab.plan(TWO_ARMS, blocks=2)
    plan.write_text(plan.read_text().replace('turn = "60ms"', 'turn = "1500ms"'))
    running = lab.start("run", plan.name, "--out", who)
    assert until(lambda: list((lab.folder / who).glob("*/blocks/b000000.json")))
    time.sleep(1)  # the canaries of the next block are over
    pids = [running.pid]
    if who == "server":
        with psycopg.connect(dsn) as conn:
            rows = conn.execute("select pid from pg_stat_activity where application_name like 'dbdyno/%'").fetchall()
        pids = [row[0] for row in rows]
    assert pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    said, errors = running.communicate(timeout=120)
    assert running.returncode in (0, 1), errors
    assert "no session got an answer for" in " ".join(said.split()), said


def test_a_stall_is_found_with_its_block_and_moment():
    connection = duckdb.connect()
    connection.execute(
        "create table calls as select 'transaction' as kind, 4::uinteger as block, 0::uinteger as slice,"
        " null::bigint as intended_ns, (i * 1000000)::bigint as started_ns, 1000000::bigint as elapsed_ns"
        " from range(100) r(i) union all"
        " select 'transaction', 4, 0, null, 100000000, 3000000000 union all"
        " select 'transaction', 4, 0, null, 3100000000, 1000000"
    )
    blocks = [Block(4, "measure", 0, 3_200_000_000, 0, [], report={"wall_ns": 3_200_000_000})]
    arm = ArmMeasures("a", "a", 1, blocks, [], {"max": np.array([3e9])})
    found = stalls.find(connection, Measures([arm], []), {4: 20.0}, 0.5)
    assert [(s.block, round(s.at_s, 1), round(s.length_s, 1)) for s in found] == [(4, 20.1, 3.0)]
    assert stalls.find(connection, Measures([arm], []), {4: 20.0}, 5.0) == []
