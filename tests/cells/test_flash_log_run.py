"""The study flash-log on cells over SSH: checks, announcement, switching, reading and verdict."""

from __future__ import annotations

import re
import subprocess
import threading
import time
from pathlib import Path

import pytest
from flash_rig import FIRST, Rig, answering

from command_line import checked, dbdyno
from dbdyno.base.errors import CellsError, PlanError
from dbdyno.bench.cells.survey import describe
from dbdyno.study.analysis.analyse import analyse
from together import meanwhile


def test_a_run_switches_every_cell_reads_it_and_puts_it_back(rig: Rig, tmp_path: Path):
    before = rig.plans
    run = rig.run(rig.plan(), tmp_path)
    assert rig.plans == before
    assert run.status == "complete"
    model = analyse(run)
    off, on = ({**row, "passed": dict(row["passed"])} for row in model["race"])
    assert off["races"] == 0
    assert off["passed"]["IORM_PLAN"] == model["arms"][0]["ops"] > 100
    assert on["races"] == on["disk_first"] + on["flash_first"] == model["arms"][1]["ops"] > 100
    assert on["passed"] == {}
    gates = {gate["name"]: gate["ok"] for gate in model["gates"]}
    assert gates["the plan took effect"] is True
    assert gates["redo of these databases only"] is True
    assert gates["disk first + flash first = redo writes served"] is True
    assert {row["metric"] for row in model["metrics"]} == {"redo_write", "redo_rate", "disk_write"}


@pytest.mark.soak
def test_a_turn_is_between_two_collections_after_the_switch(rig: Rig, tmp_path: Path):
    from dbdyno.evidence.query import connect

    run = rig.run(rig.plan(turn="180s"), tmp_path)
    connection, _ = connect(run)
    with connection:
        rows = connection.execute(
            "select max(at_ns) - min(at_ns) from metrics where metric = 'FL_IO_W' group by block, arm, source"
        ).fetchall()
        raced = connection.execute(
            "select max(value) - min(value) from metrics where metric = 'FL_IO_W'"
            " and arm = 'flash log off' group by block, source"
        ).fetchall()
    assert len(rows) == 8
    assert all(length >= 180 * 10**9 and length % (60 * 10**9) == 0 for (length,) in rows)
    assert {grown for (grown,) in raced} == {0}


@pytest.mark.soak
def test_nothing_else_of_a_plan_is_touched(rig: Rig, tmp_path: Path):
    rig.cells[0].answer("alter iormplan objective=auto")
    seen: set[tuple[str, ...]] = set()

    def look(done: threading.Event) -> None:
        while not done.is_set():
            seen.add(tuple(rig.cells[0].plan.database))
            time.sleep(0.005)

    with meanwhile(look):
        rig.run(rig.plan(), tmp_path)
    assert rig.cells[0].plan.objective == "auto"
    assert seen == {
        ("name=ORCL,share=3,flashLog=on", "name=default,share=1"),
        ("name=ORCL,share=3,flashLog=off", "name=default,share=1"),
    }


def test_what_would_be_done_is_told_and_nothing_is_done(rig: Rig):
    before = rig.plans
    plan = rig.plan()
    page = describe(plan, rig.survey(plan))
    assert f"now, and restored in any case: {FIRST}" in page
    assert "alter iormplan dbplan=((name=ORCL,share=3,flashLog=off),(name=default,share=1))" in page
    assert "alter iormplan dbplan=((name=ORCL,flashLog=off),(name=other,flashLog=on))" in page
    assert rig.plans == before


def test_a_plan_that_is_not_in_force_is_refused(rig: Rig):
    rig.cells[1].answer("alter iormplan inactive")
    with pytest.raises(CellsError, match="plan is inactive"):
        rig.survey(rig.plan())


def test_a_cell_without_flash_log_metrics_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    from dbdyno.bench.cells import survey as cells_survey

    monkeypatch.setattr(cells_survey, "COLLECTION_METRIC", "FL_NOBODY")
    with pytest.raises(CellsError, match="it has no metrics of a flash log"):
        rig.survey(rig.plan())


@pytest.mark.parametrize("name", ["", "SALES"])
def test_the_database_is_one_that_the_cells_know(rig: Rig, name: str):
    with pytest.raises(PlanError, match=r"no database is given|report no I/O for SALES") as refused:
        rig.survey(rig.plan(database=name))
    assert "the cells report ORCL" in str(refused.value)


def test_garbage_for_a_plan_is_refused_before_anything_is_changed(rig: Rig):
    for garbage in ("", "!!\x00\n", "\t name: x\n\t dbPlan: ((((\n\t status: active\n"):
        answering(rig.cells[0], "list iormplan", lambda _, text=garbage: (text, 0))
        with pytest.raises(CellsError, match=r"no readable IORM plan|cannot be restored"):
            rig.survey(rig.plan())


@pytest.mark.usefixtures("html_page")
def test_the_command_asks_and_the_dry_run_does_not(rig: Rig, tmp_path: Path):
    before = rig.plans

    def done(*more: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return dbdyno(*rig.words("--out", str(tmp_path / "runs"), *more), stdin=answer)

    dry = checked(done("--dry-run"))
    assert "nothing was changed" in dry.stdout
    assert "(name=orcl,flashLog=off)" in dry.stdout
    refused = done(answer="n\n")
    assert refused.returncode == 2
    assert "Do it?" in refused.stderr
    assert not (tmp_path / "runs").exists()
    taken = checked(done("--blocks", "2", answer="y\n"))
    text = " ".join(taken.stdout.split())
    assert "flash log on against flash log off" in text
    assert re.search(r"flash log off: writes that bypassed the flash log: IORM_PLAN [\d,]+", text)
    (run,) = (tmp_path / "runs").iterdir()
    assert "Disk or flash first" in (run / "report.html").read_text()
    assert rig.plans == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["redo-size", "--target", "cells:a"], "does not run on storage cells"),
        (["plan.toml", "--target", "cells:a"], "does not run on storage cells"),
        (["flash-log", "--target", "cells:"], "no cell is given"),
        (["flash-log", "--target", "cells:a", "--set", "commits=5"], "no factor 'commits'"),
        (["flash-log", "--target", "cells:a", "--set", "flash_log=on"], "does not name both arms"),
        (["flash-log", "--target", "cells:a", "--set", "turn=soon"], "is not a duration"),
        (["flash-log", "--target", "cells:@/no/such"], "the group file cannot be read"),
    ],
)
def test_what_cannot_be_run_is_told(words: list[str], said: str):
    found = dbdyno("run", *words, "--dry-run")
    assert found.returncode == 2
    assert said in found.stderr


@pytest.mark.parametrize("target", ["cells:a,b", "host"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_plan_of_an_engine_names_the_study_that_runs_there(tmp_path: Path, target: str, inside: bool):
    """A target in the plan's own file was read as a connection string."""
    head = f'target = "{target}"\n' if inside else ""
    text = '[workload]\nbuiltin = "tpcb-like"\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'
    (tmp_path / "p.toml").write_text(f'{head}title = "mine"\n{text}')
    for words in (["plan", "check", "p.toml"], ["run", "p.toml"]):
        if not inside and words[0] == "run":
            continue  # that names a study of cells or of this host
        found = dbdyno(*words, *([] if inside else ["--target", target]), cwd=tmp_path)
        assert found.returncode == 2
        assert "mine: does not run on" in found.stderr
        assert f"dbdyno run flash-log --target {target.partition(':')[0]}" in found.stderr
