"""Tests of studies on a model through the command line: folder, report, questions and exit codes are those of live
runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from model_desk import ENVIRONMENT, Desk

from waiting import until


def test_a_run_leaves_the_same_folder_as_on_an_engine(desk: Desk):
    done = desk("run", desk.plan(), "--seed", "7")
    assert "PROVISIONAL  flash looks" in done.stdout  # three blocks
    assert "median commit time" in done.stdout
    assert "Devices" in done.stdout
    run = desk.run()
    parts = {p.parent.name for p in run.rglob("*.parquet")}
    assert parts == {"calls", "waits", "metrics"}
    assert (run / "report.html").is_file()
    manifest = json.loads((run / "manifest.json").read_text())
    assert (manifest["status"], manifest["switch"], manifest["seed"]) == ("complete", "model", 7)
    assert "[devices.log_flash]" in manifest["machine"]["toml"]
    assert manifest["arms"][1]["changes"] == {"redo": "log_flash"}
    assert manifest["arms"][1]["was"] == {"redo": "log_sas"}


def test_for_each_session_time_is_cpu_and_waits(desk: Desk):
    desk("run", desk.plan(), "--seed", "1")
    rows = desk.sql(
        "with busy as (select arm, block, session, sum(elapsed_ns) as took from calls"
        " where kind = 'transaction' group by all), waited as (select arm, block, session,"
        " sum(elapsed_ns) as took from waits where object = 'session' group by all)"
        " select block, count(*) as arms, min(b.took - w.took) as least,"
        " max(b.took - w.took) as most"
        " from busy b join waited w using (arm, block, session) group by block"
    )
    assert len(rows) == 5
    for row in rows:  # what no wait covers is CPU, and both arms drew the same
        assert row["arms"] == 2
        assert row["least"] == row["most"]
        assert int(str(row["least"])) > 300 * 20_000


def test_devices_and_their_law_are_in_the_analysis(desk: Desk):
    desk("run", desk.plan(), "--seed", "1")
    analysis = json.loads((desk.run() / "analysis.json").read_text())
    flash = [row for row in analysis["devices"] if row["station"] == "log_flash"]
    assert [row["arm"] for row in flash] == [1]
    assert flash[0]["utilisation"] > 0.01
    assert all(row["little_broken"] == 0 for row in analysis["devices"])
    shown = sum(w["share"] for w in analysis["figures"]["waits"] if w["arm"] == 0)
    assert shown == pytest.approx(1)
    assert analysis["figures"]["heatmap"] == []
    names = {gate["name"] for gate in analysis["gates"]}
    assert "Little's law at every station" in names
    assert not any("canary" in name or "drift" in name for name in names)


def test_a_seed_replays_a_run_to_the_byte(desk: Desk):
    for _ in range(2):
        desk("run", desk.plan(), "--seed", "11")
    desk("run", desk.plan(), "--seed", "12")
    first, second, other = (
        [json.loads(p.read_text())["report"]["hash"] for p in sorted((run / "blocks").iterdir())]
        for run in sorted((desk.folder / "runs").iterdir(), key=lambda p: p.stat().st_mtime_ns)
    )
    assert first == second
    assert first != other


def test_arms_of_a_block_draw_the_same_numbers_so_an_arm_against_itself_is_equal(desk: Desk):
    done = desk("run", desk.plan(), "--aa")
    assert "the same time to the nanosecond" in " ".join(done.stdout.split())
    rows = desk.sql("select arm, sum(elapsed_ns) as took from calls group by arm order by arm")
    assert [row["arm"] for row in rows] == ["disk", "disk again"]
    assert len({row["took"] for row in rows}) == 1


def test_an_interrupted_run_is_finished_and_equals_one_that_was_not(desk: Desk):
    plan = desk.plan(blocks=10, transactions=4_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", "run", plan, "--seed", "5"],
        cwd=desk.folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    )
    blocks = desk.folder / "runs"
    until(lambda: len(list(blocks.glob("*/blocks/*.json"))) >= 2, 120)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "complete blocks are kept" in said
    run = desk.run()
    assert json.loads((run / "manifest.json").read_text())["status"] == "aborted"
    whole = len(list((run / "blocks").iterdir()))
    assert 2 <= whole < 10
    assert not list(run.rglob("*.tmp"))
    desk("run", "--resume", "last")
    desk("run", plan, "--seed", "5")
    hashes = [
        [json.loads(p.read_text())["report"]["hash"] for p in sorted((at / "blocks").iterdir())]
        for at in (run, next(r for r in blocks.iterdir() if r != run))
    ]
    assert len(hashes[0]) == 10
    assert hashes[0] == hashes[1]


def test_a_resumed_run_keeps_its_machine_though_the_file_changed(desk: Desk):
    from dbdyno import _core

    machine = desk.folder / "mine.toml"
    machine.write_text(_core.model_machine("sas-and-flash"))
    plan = desk.folder / desk.plan()
    plan.write_text(plan.read_text().replace("model:sas-and-flash", "model:mine.toml"))
    desk("run", "p.toml", "--seed", "3")
    run = desk.run()
    before = (run / "calls" / "b000001.parquet").read_bytes()
    (run / "blocks" / "b000001.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text()) | {"status": "aborted"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    machine.write_text(machine.read_text().replace("cores = 24", "cores = 2"))
    desk("run", "--resume", "last")
    assert (run / "calls" / "b000001.parquet").read_bytes() == before


def test_any_parameter_is_a_factor(desk: Desk):
    done = desk("run", desk.plan(), "--quick")
    assert done.returncode == 0
    desk("run", "redo-device", "--quick", "--set", "sessions=1", "--set", "cores=1,24")
    manifest = json.loads((desk.run() / "manifest.json").read_text())
    assert [arm["name"] for arm in manifest["arms"]] == [
        "log_sas, cores 1",
        "log_flash, cores 1",
        "log_sas, cores 24",
        "log_flash, cores 24",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--set", "corse=4"], "did you mean database.cores"),
        (["--set", "sesions=4"], "did you mean sessions"),
        (["--set", "capacity_gb=1"], "name one of them: devices."),
        (["--set", "cores=4,x"], "cores"),
        (["--target", "model:sas-and-flsh"], "did you mean model:sas-and-flash"),
        (["--target", "model:./none.toml"], "cannot be read"),
        (["--target", "postgres"], "no SQL version"),
    ],
)
def test_what_cannot_be_is_told_before_anything_runs(desk: Desk, arguments: list[str], says: str):
    study = "redo-device" if "postgres" not in arguments else "queue-depth"
    done = desk("run", study, "--quick", *arguments, code=2)
    assert says in done.stderr
    assert not (desk.folder / "runs").exists()


def test_a_study_of_sql_says_that_a_model_cannot_run_it(desk: Desk):
    done = desk("run", "hit-ratio", "--target", "model:sas-and-flash", code=2)
    assert "a model runs typed workloads" in done.stderr


def test_a_check_tells_machine_arms_and_amount_and_runs_nothing(desk: Desk):
    told = desk("plan", "check", desk.plan()).stdout
    for expected in (
        "log_flash: flash",
        "redo = log_flash (the machine has log_sas)",
        "300 transactions of each session",
        "nothing was run",
    ):
        assert expected in told
    assert not (desk.folder / "runs").exists()


def test_a_broken_machine_names_file_line_and_key(desk: Desk):
    (desk.folder / "bad.toml").write_text('title = "x"\n[database]\ncoers = 3\n')
    done = desk("run", "redo-device", "--target", "model:./bad.toml", code=2)
    assert "./bad.toml" in done.stderr or "bad.toml" in done.stderr
    assert "coers" in done.stderr
    assert "cores" in done.stderr
