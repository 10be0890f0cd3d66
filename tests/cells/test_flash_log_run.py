"""The study flash-log on cells over SSH: switched, read, judged, and put back whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig_help import SMALL_BUFFERS, access, passing, serving

from dbdyno.cells import iorm_switch
from dbdyno.cells.collect import Collection, collect
from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.cells.iorm_plan import LIST, IormPlan, with_flash_log
from dbdyno.cells.iorm_switch import PlanUndo, plan_undo, put
from dbdyno.cells.ssh import Fleet
from dbdyno.errors import CellsError, PlanError, TargetError
from dbdyno.evidence.run import Run
from dbdyno.rig.cell import Cell
from dbdyno.rig.rack import Load, Rack
from dbdyno.rig.serve import Served
from dbdyno.study import execute_cells
from dbdyno.study.analyse import analyse
from dbdyno.study.cells_plan import CellsPlan, cells_study
from dbdyno.study.cells_survey import Survey, describe, survey
from dbdyno.study.execute_cells import start_on_cells
from dbdyno.target.undo import from_wire, to_wire

SPEED = 600
LOAD = Load({"kind": "commit-loop", "think_ms": 200}, 3, 1, SMALL_BUFFERS)
"""Light enough for the model to keep up with the speed on a busy machine."""
FIRST = "alter iormplan dbplan=((name=ORCL,share=3,flashLog=on),(name=default,share=1))"
SECOND = 'alter iormplan dbplan=""'


class Rig:
    """Two modelled cells with different plans, their clocks running fast."""

    def __init__(self, cells: list[Cell], served: Served, stop: threading.Event) -> None:
        self.cells, self.served, self.stop = cells, served, stop

    @property
    def plans(self) -> list[list[str]]:
        """The directives of each cell."""
        return [list(cell.plan.database) for cell in self.cells]

    @property
    def hosts(self) -> list[Host]:
        return hosts_of([self.served.hosts], user="celladmin")

    def plan(self, **given: str) -> CellsPlan:
        options = {"database": "ORCL", "turn": "60s", **given}
        return cells_study("flash-log", f"cells:{self.served.hosts}", options, blocks=2)

    def survey(self, plan: CellsPlan) -> Survey:
        return survey(plan, self.hosts, access(self.served))

    def run(self, plan: CellsPlan, folder: Path, **given: object) -> Run:
        found = self.survey(plan)
        return start_on_cells(plan, found, access(self.served), folder, seed=1, **given)

    def words(self, *more: str) -> list[str]:
        """The command line of such a run."""
        return [sys.executable, "-m", "dbdyno", "run", "flash-log", "--target",
                f"cells:{self.served.hosts}", "--user", "celladmin", "--known-hosts",
                str(self.served.known_hosts), "--key", str(self.served.key), "--seed", "1",
                "--set", "database=orcl", "--set", "turn=60s", *more]  # fmt: skip


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(iorm_switch, "SETTLE_S", 0.2)
    made = Rack("model:exadata-x2", LOAD, speed=SPEED)
    cells = [Cell(made, number) for number in range(2)]
    for cell, text in zip(cells, (FIRST, SECOND), strict=True):
        assert cell.answer(text)[1] == 0
    folder = tmp_path / "rig"
    folder.mkdir()
    with serving(cells, folder) as served, passing(made) as stop:
        yield Rig(cells, served, stop)


def eventually(holds: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


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


def test_a_turn_is_between_two_collections_after_the_switch(rig: Rig, tmp_path: Path):
    from dbdyno.evidence.query import connect

    run = rig.run(rig.plan(turn="180s"), tmp_path)
    connection, _ = connect(run)
    with connection:
        rows = connection.execute(
            "select max(at_ns) - min(at_ns) from metrics where metric = 'FL_IO_W'"
            " group by block, arm, source"
        ).fetchall()
        raced = connection.execute(
            "select max(value) - min(value) from metrics where metric = 'FL_IO_W'"
            " and arm = 'flash log off' group by block, source"
        ).fetchall()
    assert len(rows) == 8
    assert all(length >= 180 * 10**9 and length % (60 * 10**9) == 0 for (length,) in rows)
    assert {grown for (grown,) in raced} == {0}


def test_nothing_else_of_a_plan_is_touched(rig: Rig, tmp_path: Path):
    rig.cells[0].answer("alter iormplan objective=auto")
    seen: set[tuple[str, ...]] = set()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.add(tuple(rig.cells[0].plan.database))
            time.sleep(0.005)

    thread = threading.Thread(target=look)
    thread.start()
    rig.run(rig.plan(), tmp_path)
    done.set()
    thread.join()
    assert rig.cells[0].plan.objective == "auto"
    assert seen == {
        ("name=ORCL,share=3,flashLog=on", "name=default,share=1"),
        ("name=ORCL,share=3,flashLog=off", "name=default,share=1"),
    }


def test_what_would_be_done_is_told_and_nothing_is_done(rig: Rig):
    before = rig.plans
    plan = rig.plan()
    page = describe(plan, rig.survey(plan))
    assert f"now, and put back whatever happens: {FIRST}" in page
    assert "alter iormplan dbplan=((name=ORCL,share=3,flashLog=off),(name=default,share=1))" in page
    assert "alter iormplan dbplan=((name=ORCL,flashLog=off),(name=other,flashLog=on))" in page
    assert rig.plans == before


def test_a_plan_that_is_not_in_force_is_refused(rig: Rig):
    rig.cells[1].answer("alter iormplan inactive")
    with pytest.raises(CellsError, match="plan is inactive"):
        rig.survey(rig.plan())


def test_a_cell_without_flash_log_metrics_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    from dbdyno.study import cells_survey

    monkeypatch.setattr(cells_survey, "MARK", "FL_NOBODY")
    with pytest.raises(CellsError, match="no flash log is counted there"):
        rig.survey(rig.plan())


@pytest.mark.parametrize("name", ["", "SALES"])
def test_the_database_is_one_that_the_cells_know(rig: Rig, name: str):
    with pytest.raises(PlanError, match=r"no database is named|count no I/O of SALES") as refused:
        rig.survey(rig.plan(database=name))
    assert "the cells know ORCL" in str(refused.value)


def test_a_cell_that_collects_nothing_anew_costs_its_own_column(rig: Rig, tmp_path: Path):
    samples = rig.cells[1].rack.samples
    told: list[str] = []

    class Notes:
        def __getattr__(self, name: str):
            return lambda *words: told.append(str(words[0])) if name == "note" else None

    class Held(deque):
        def append(self, sample: object) -> None:
            """Nothing is collected any more."""

    samples[1] = Held(samples[1])
    run = rig.run(rig.plan(patience="3s"), tmp_path, progress=Notes())
    port = rig.served.ports[1]
    name = f"127.0.0.1:{port}"
    model = analyse(run)
    assert sum(name in text and "not refreshed" in text for text in told) == 1
    assert [name in mark for block in run.blocks() for mark in block.marks] == [True, True]
    assert any(w["code"] == "cell left out" and name in w["text"] for w in model["warnings"])
    assert model["run"]["blocks_whole"] == 2
    assert model["arms"][0]["ops"] > 0


def test_where_no_cell_collects_the_run_ends_and_the_plans_are_back(rig: Rig, tmp_path: Path):
    before = rig.plans
    plan = rig.plan(patience="4s")
    found = rig.survey(plan)
    rig.stop.set()
    with pytest.raises(CellsError, match=r"not refreshed.*none of the other cells"):
        start_on_cells(plan, found, access(rig.served), tmp_path, seed=1)
    assert rig.plans == before
    (folder,) = tmp_path.glob("*flash-log*")
    assert Run.open(folder).status == "aborted"


def test_a_restart_of_a_cell_leaves_it_out_of_its_block(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = rig.plan()
    found = rig.survey(plan)
    collected = []

    async def restarted_after_the_first(fleet: Fleet) -> Collection:
        collected.append(await collect(fleet))
        if len(collected) == 1:
            rig.cells[0].answer("alter cell restart services all")
        return collected[-1]

    monkeypatch.setattr(execute_cells, "collect", restarted_after_the_first)
    run = start_on_cells(plan, found, access(rig.served), tmp_path, seed=1)
    name = f"127.0.0.1:{rig.served.ports[0]}"
    first, second = run.blocks()
    assert first.marks == [f"{name}: its service began anew within the turn"]
    assert second.marks == []
    model = analyse(run)
    assert model["run"]["blocks_whole"] == 2
    assert f"{name}: its service began anew" in str(model["warnings"])


def test_a_plan_that_somebody_else_made_meanwhile_is_left_alone(rig: Rig, tmp_path: Path):
    theirs = "name=ORCL,share=9"

    def interfere() -> None:
        assert eventually(lambda: "flashLog=off" in str(rig.plans[0]))
        rig.cells[0].answer(f"alter iormplan dbplan=(({theirs}))")

    thread = threading.Thread(target=interfere)
    thread.start()
    with pytest.raises(TargetError, match="somebody else changed its plan") as stopped:
        rig.run(rig.plan(), tmp_path)
    thread.join()
    assert "left so" in str(stopped.value)
    assert rig.plans == [[theirs], []]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_plans_are_put_back_however_the_run_ends(rig: Rig, tmp_path: Path, how: signal.Signals):
    before = rig.plans
    words = rig.words("--yes", "--out", str(tmp_path / "runs"), "--set", "turn=1h")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert eventually(lambda: all("flashLog" in str(plan) for plan in rig.plans[1:]))
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    assert eventually(lambda: rig.plans == before), errors
    assert "Traceback" not in errors
    if how is not signal.SIGKILL:
        assert "the plans of the cells are as they were" in errors


def test_an_alter_that_lands_after_the_undo_is_undone_too(rig: Rig):
    """The session of a killed run may still be at work on a cell."""
    before = rig.plans
    host = rig.hosts[0]
    found = rig.survey(rig.plan()).found
    off = with_flash_log(found[host], ["ORCL"], on=False)
    undo = plan_undo({host: found[host]}, {host: (off,)}, access(rig.served))
    undo = PlanUndo(undo.label, undo.cells, undo.reach, settle_s=1.5)
    late = threading.Timer(0.8, rig.cells[0].answer, [FIRST.replace("Log=on", "Log=off")])
    late.start()
    assert undo.carry_out() == []
    late.join()
    assert rig.plans == before


def test_an_undo_survives_the_wire_and_can_be_carried_out_twice(rig: Rig):
    before = rig.plans
    found = rig.survey(rig.plan()).found
    ours = {h: (with_flash_log(p, ["ORCL"], on=False),) for h, p in found.items()}
    undo = plan_undo(found, ours, access(rig.served))
    again = from_wire(json.loads(json.dumps(to_wire(undo))))
    assert isinstance(again, PlanUndo)
    for text, cell in zip((FIRST, SECOND), rig.cells, strict=True):
        cell.answer(text.replace("flashLog=on", "flashLog=off"))
    rig.cells[1].answer("alter iormplan dbplan=((name=ORCL,flashLog=off),(name=other,flashLog=on))")
    assert again.carry_out() == []
    assert rig.plans == before
    assert again.carry_out() == []


def test_a_cell_that_cannot_be_reached_to_put_its_plan_back_is_told(rig: Rig):
    host = Host("gone", "127.0.0.1", 1, "celladmin")
    undo = plan_undo({host: IormPlan(())}, {host: ((),)}, access(rig.served))
    undo = PlanUndo(undo.label, undo.cells, undo.reach, patience_s=0.5)
    (problem,) = undo.carry_out()
    assert problem.startswith("IORM plans: gone: its IORM plan cannot be read: cannot be reached")


def test_a_cell_that_takes_a_plan_and_shows_another_is_an_error(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
):
    import asyncio

    from dbdyno.rig import changes

    host = rig.hosts[1]
    found = rig.survey(rig.plan()).found[host]
    wanted = with_flash_log(found, ["ORCL"], on=False)
    monkeypatch.setattr(changes, "_put_plan", lambda *_: None)
    monkeypatch.setattr(changes, "_lines", lambda _: [])

    async def work() -> None:
        async with Fleet([host], access(rig.served)) as fleet:
            assert (await fleet.run(LIST))[0].code == 0
            await put(fleet, {host: wanted}, {host: ((),)})

    with pytest.raises(CellsError, match="took ALTER IORMPLAN and shows another plan"):
        asyncio.run(work())


def test_the_command_asks_and_the_dry_run_does_not(rig: Rig, tmp_path: Path):
    before = rig.plans

    def done(*more: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*rig.words("--out", str(tmp_path / "runs"), *more)], input=answer, text=True,
            capture_output=True, check=False, timeout=120, env={**os.environ},
        )  # fmt: skip

    dry = done("--dry-run")
    assert dry.returncode == 0
    assert "nothing was changed" in dry.stdout
    assert "(name=orcl,flashLog=off)" in dry.stdout
    refused = done(answer="n\n")
    assert refused.returncode == 2
    assert "Do it?" in refused.stderr
    assert not (tmp_path / "runs").exists()
    taken = done("--blocks", "2", answer="y\n")
    assert taken.returncode == 0, taken.stderr
    text = " ".join(taken.stdout.split())
    assert "flash log on against flash log off" in text
    assert re.search(r"flash log off: passed by the flash log: IORM_PLAN [\d,]+", text)
    (run,) = (tmp_path / "runs").iterdir()
    assert "Disk or flash first" in (run / "report.html").read_text()
    assert rig.plans == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["redo-size", "--target", "cells:a"], "does not run on storage cells"),
        (["plan.toml", "--target", "cells:a"], "does not run on storage cells"),
        (["flash-log", "--target", "cells:"], "no cell is named"),
        (["flash-log", "--target", "cells:a", "--set", "commits=5"], "no factor 'commits'"),
        (["flash-log", "--target", "cells:a", "--set", "flash_log=on"], "is not both arms"),
        (["flash-log", "--target", "cells:a", "--set", "turn=soon"], "no length of time"),
        (["flash-log", "--target", "cells:@/no/such"], "the group file cannot be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_told(words: list[str], said: str):
    found = subprocess.run(
        [sys.executable, "-m", "dbdyno", "run", *words, "--dry-run"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert found.returncode == 2
    assert said in found.stderr
