"""Analytic answers compared with closed forms, elementary effects of functions with known effects, laws on a run."""

from __future__ import annotations

import contextlib
import json
import math
import random
from pathlib import Path

import duckdb
import pytest
from live_made import Truth, live_run, model

from calibrated import CALIBRATED
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Block
from dbdyno.pages.run_modelled import laws
from dbdyno.study.analysis.measured import operational
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.analysis.measured.operational import _commits, _disk, laws_of_run
from dbdyno.study.prediction.analytic import Demands, chain, closed_loop, mva, time_of_own_flush
from dbdyno.study.prediction.sensitivity import effects, walks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(CALIBRATED)
    return path


def machine_repair(cpu: float, think: float, sessions: int) -> float:
    """Return the exact throughput of an exponential server with thinking customers, by the birth-death chain."""
    weights = [math.perm(sessions, k) * (cpu / think) ** k for k in range(sessions + 1)]
    return (1 - weights[0] / sum(weights)) / cpu


@pytest.mark.parametrize(("cpu", "think", "sessions"), [(5, 100, 1), (5, 100, 10), (5, 100, 30), (80, 20, 4)])
def test_mean_value_analysis_of_one_core_is_machine_repair(cpu: float, think: float, sessions: int):
    assert mva(cpu, 1, think, sessions)[0] == pytest.approx(machine_repair(cpu, think, sessions), rel=1e-9)


def test_many_cores_are_a_delay_while_they_are_idle_and_a_bound_when_they_are_not():
    assert mva(100.0, 8, 400.0, 1)[0] == pytest.approx(1 / 500)
    assert mva(100.0, 8, 400.0, 500)[0] == pytest.approx(8 / 100, rel=0.01)


def played(sessions: int, pause: float, flush: float, seed: int) -> tuple[float, float]:
    """Simulate a closed loop of commits that share flushes; return commits per time unit, and the mean batch size."""
    random_ = random.Random(seed)
    ready = [random_.expovariate(1 / pause) for _ in range(sessions)]
    now, flushes, commits = 0.0, 0, 0
    while flushes < 60_000:
        now = max(now, min(ready))
        batch = [at for at, time in enumerate(ready) if time <= now]
        now += flush
        for at in batch:
            ready[at] = now + random_.expovariate(1 / pause)
        flushes, commits = flushes + 1, commits + len(batch)
    return commits / now, commits / flushes


@pytest.mark.parametrize(("sessions", "pause", "flush"), [(1, 200, 500), (5, 1000, 500), (20, 1000, 500)])
def test_the_chain_of_group_commit_is_what_dice_give(sessions: int, pause: float, flush: float):
    rate, batch = chain(sessions, pause, flush)
    by_dice, batches = played(sessions, pause, flush, seed=7)
    assert rate == pytest.approx(by_dice, rel=0.01)
    assert batch == pytest.approx(batches, rel=0.01)


def test_one_session_asks_for_the_sum_of_its_demands():
    demands = Demands(cpu=100.0, delay=200.0, flush=500.0, cores=2, locks=False, spread=0.0)
    assert closed_loop(demands, 1)[0] == pytest.approx(1 / 800)
    without = Demands(cpu=100.0, delay=200.0, flush=0.0, cores=2, locks=False, spread=0.0)
    assert closed_loop(without, 1)[0] == pytest.approx(1 / 300)


def test_more_sessions_never_lower_the_analytic_throughput():
    """It fell from 6,989 to 4,050 per second at 16 sessions, since the iteration swung between two rates."""
    demands = Demands(cpu=286.2, delay=155.3, flush=76.16, cores=2, locks=False, spread=0.0)
    rates = [closed_loop(demands, sessions)[0] for sessions in (1, 2, 4, 8, 16, 32)]
    assert rates == sorted(rates)
    assert rates[-1] < 2 / 286.2


def test_a_flush_for_each_commit_is_m_g_1_and_impossible_beyond_its_rate():
    demands = Demands(cpu=1.0, delay=0.0, flush=100.0, cores=1, locks=False, spread=1.0)
    # M/M/1 at a utilisation of .8: five service times.
    assert time_of_own_flush(demands, 0.008) == pytest.approx(500.0)
    assert time_of_own_flush(demands, 0.01) == math.inf


def test_both_answers_are_on_one_page_and_agree_where_they_should(file: Path):
    shown = json.loads(model("analyse", str(file), "--sessions", "1,4,16", "--format", "json").output)
    rows = {row["sessions"]: row for row in shown["rows"]}
    assert abs(rows[1]["difference"]) < 0.01
    assert all(abs(row["difference"]) < 0.2 for row in rows.values())
    assert all(row["simulated"] <= row["bound"] * 1.01 for row in rows.values())
    assert all(row["why"] for row in rows.values())
    for law in shown["laws"]:
        tolerance = 0.03 if law["law"] != "Little" else 0.02
        assert law["left"] == pytest.approx(law["right"], rel=tolerance), law
    assert "Operational laws" in model("analyse", str(file), "--sessions", "1").output


def test_effects_of_a_straight_line_are_its_slopes_and_no_parameter_depends_on_another():
    found = effects(
        walked := walks(3, trajectories=6, seed=5), [[(3 * x[0] - 0.5 * x[1],) for x in own.places] for own in walked]
    )
    means = [of[0][0] for of in found]
    assert means == pytest.approx([3.0, 0.5, 0.0], abs=1e-9)
    assert all(of[0][1] == pytest.approx(0.0, abs=1e-9) for of in found)


def test_a_product_shows_that_its_factors_depend_on_each_other():
    found = effects(
        walked := walks(2, trajectories=30, seed=5), [[(x[0] * x[1], x[0]) for x in own.places] for own in walked]
    )
    assert found[0][0][1] > 0.1
    assert found[0][1][1] == pytest.approx(0.0, abs=1e-9)


def test_the_ten_that_move_the_answer(file: Path):
    arguments = ("sensitivity", str(file), "--sessions", "1", "--trajectories", "3", "--format", "json")
    shown = json.loads(model(*arguments).output)
    paths = [row["path"] for row in shown["rows"]]
    # The device is by far the longest part, and nothing is known of its factor.
    assert paths[0] == "postgres.device_factor"
    assert len(paths) <= 10
    by = {row["path"]: row for row in shown["rows"]}
    assert not by["postgres.client_us"]["assumed"]
    assert by["postgres.device_factor"]["assumed"]
    assert model("sensitivity", str(file), "--trajectories", "2", "--format", "html").exit_code == 0


def test_operational_laws_of_a_run(tmp_path: Path):
    run = live_run(tmp_path, Truth(), blocks=3, transactions=40)
    connection, _ = connect(run)
    with contextlib.closing(connection):
        found = laws_of_run(connection, run, measure(run))
    little = {law["arm"]: law for law in found if law["law"] == "Little"}
    # The made run is one session's in every arm: it pauses 60 us of some 1,030 that a transaction of arm `one` takes.
    assert little[0]["holds"]
    assert 0.9 < little[0]["left"] < 0.98
    assert "between two transactions" in little[0]["sentence"]
    model = {"laws": found, "arms": [{"index": at, "name": name} for at, name in enumerate(("one", "eight", "off"))]}
    (section,) = laws(model)
    assert [row.cells["law"] for row in section.tables[0].rows] == ["Little"] * 3


Row = tuple[str, str, str, int, float]


def counted(metrics: list[Row], calls: list[str]) -> duckdb.DuckDBPyConnection:
    """Return evidence of a block of 30 s: metrics with values at begin and end, and calls of these kinds."""
    connection = duckdb.connect()
    connection.execute(
        "create table metrics (arm varchar, block uinteger, source varchar, object varchar, metric varchar,"
        " at_ns bigint, value double)"
    )
    for source, name, metric, at_s, value in metrics:
        row = [source, name, metric, at_s * 10**9, value]
        connection.execute("insert into metrics values ('', 0, ?, ?, ?, ?, ?)", row)
    connection.execute("create table calls (block uinteger, kind varchar, error varchar)")
    for kind in set(calls):
        connection.execute("insert into calls select 0, ?, null from range(?)", [kind, calls.count(kind)])
    return connection


def disk(weighted_s: float) -> list[Row]:
    ends = {"busy_time": 9e9, "weighted_time": weighted_s * 1e9, "write_time": 10e9, "flush_time": 5e9, "writes": 1e4}
    return [("/proc/diskstats", "vda", name, at, value * at / 30) for name, value in ends.items() for at in (0, 30)]


def test_the_disk_keeps_little_s_law_if_its_counters_agree():
    good, bad = (_disk(counted(disk(weighted_s), []), [[0]]) for weighted_s in (15.0, 30.0))
    assert good is not None and bad is not None
    assert good["holds"] and good["left"] == pytest.approx(0.5) == good["right"]
    assert (
        "vda was busy 30% of the time: 333 requests a second of 1.5 ms each mean 0.5 requests in progress"
        in good["sentence"]
    )
    assert not bad["holds"]
    assert _disk(counted([], []), [[0]]) is None


@pytest.mark.parametrize(
    ("calls", "by_server", "seen", "holds"),
    [
        (["commit", "transaction"] * 100, 101.0, 100.0, True),
        (["commit", "transaction"] * 100, 150.0, 100.0, False),
        (["transaction"] * 100, 100.0, 100.0, True),
        (["exec", "exec", "transaction"] * 100, 200.0, 200.0, True),
    ],
)
def test_commits_that_clients_saw_are_those_that_the_server_counted(
    calls: list[str], by_server: float, seen: float, holds: bool
):
    metrics: list[Row] = [("pg_stat_database", "app", "xact_commit", at, by_server * at / 30) for at in (0, 30)]
    block = Block(0, "measure", 0, 1, len(calls), [], report={"wall_ns": 30 * 10**9})
    found = _commits(counted(metrics, calls), [[0]], [block])
    assert found is not None and (found["left"], found["right"]) == (seen, by_server)
    assert found["holds"] == holds
    assert len(operational.warnings([found])) == (0 if holds else 1)


def test_late_counters_are_not_compared_after_a_short_run_nor_mixed_scripts():
    metrics: list[Row] = [("pg_stat_database", "app", "xact_commit", at, 100.0 * at) for at in (0, 5)]
    short = Block(0, "measure", 0, 1, 1, [], report={"wall_ns": 5 * 10**9})
    assert _commits(counted(metrics, ["commit", "transaction"]), [[0]], [short]) is None
    long = Block(0, "measure", 0, 1, 1, [], report={"wall_ns": 50 * 10**9})
    assert _commits(counted(metrics, ["commit", "transaction", "transaction"]), [[0]], [long]) is None


def test_a_law_that_is_broken_is_marked():
    broken = {"arm": None, "law": "forced flow", "left": 90.0, "right": 100.0, "holds": False, "sentence": "made"}
    (section,) = laws({"laws": [broken], "arms": []})
    cell = section.tables[0].rows[0].cells["holds"]
    assert (cell.value, cell.tone) == ("broken", "bad")
