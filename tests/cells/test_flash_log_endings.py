"""After every kind of ending of a run on cells, their plans are restored; a failed cell affects only its own column."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from flash_rig import FIRST, SECOND, Rig, answering, by_form
from rig_help import access

from dbdyno.base.errors import CellsError, TargetError
from dbdyno.bench.cells import bench as execute_cells
from dbdyno.bench.undo import from_wire, to_wire
from dbdyno.cells import iorm_switch
from dbdyno.cells.collect import collect
from dbdyno.cells.collection import Collection
from dbdyno.cells.hosts import Host
from dbdyno.cells.iorm_plan import IormPlan, with_flash_log
from dbdyno.cells.iorm_switch import PlanUndo, plan_undo
from dbdyno.cells.ssh import Fleet
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.run.execute import start
from together import together
from waiting import until


@pytest.mark.soak
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
    run = rig.run(rig.plan(patience="10s"), tmp_path, progress=Notes())
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
    rig.stop.set()
    with pytest.raises(CellsError, match=r"not refreshed.*no other cell could be measured"):
        rig.run(plan, tmp_path)
    assert rig.plans == before
    (folder,) = tmp_path.glob("*flash-log*")
    assert Run.open(folder).status == "aborted"


def test_a_restart_of_a_cell_leaves_it_out_of_its_block(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    collected = []

    async def restarted_after_the_first(fleet: Fleet) -> Collection:
        collected.append(await collect(fleet))
        if len(collected) == 1:
            rig.cells[0].answer("alter cell restart services all")
        return collected[-1]

    monkeypatch.setattr(execute_cells, "collect", restarted_after_the_first)
    run = rig.run(rig.plan(), tmp_path)
    name = f"127.0.0.1:{rig.served.ports[0]}"
    first, second = run.blocks()
    assert first.marks == [f"{name}: its service was restarted during the turn"]
    assert second.marks == []
    model = analyse(run)
    assert model["run"]["blocks_whole"] == 2
    assert f"{name}: its service was restarted" in str(model["warnings"])


def test_a_plan_that_somebody_else_made_meanwhile_is_left_alone(rig: Rig, tmp_path: Path):
    theirs = "name=ORCL,share=9"

    def interfere() -> None:
        assert until(lambda: "flashLog=off" in str(rig.plans[0]))
        rig.cells[0].answer(f"alter iormplan dbplan=(({theirs}))")

    with together(interfere), pytest.raises(TargetError, match="somebody else changed its plan") as stopped:
        rig.run(rig.plan(), tmp_path)
    assert "dbdyno does not change it" in str(stopped.value)
    assert rig.plans == [[theirs], []]


@pytest.mark.parametrize("how", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM, signal.SIGKILL])
def test_the_plans_are_put_back_however_the_run_ends(rig: Rig, tmp_path: Path, how: signal.Signals):
    before = rig.plans
    with rig.start("--yes", "--out", str(tmp_path / "runs"), "--set", "turn=1h") as process:
        assert until(lambda: all("flashLog" in str(plan) for plan in rig.plans[1:]))
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    assert until(lambda: rig.plans == before), errors
    assert "Traceback" not in errors
    if how is not signal.SIGKILL:
        assert "the plans of the cells are restored" in errors


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
    assert undo.execute() == []
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
    assert again.execute() == []
    assert rig.plans == before
    assert again.execute() == []


def test_a_cell_that_cannot_be_reached_to_put_its_plan_back_is_told(rig: Rig):
    host = Host("gone", "127.0.0.1", 1, "celladmin")
    undo = plan_undo({host: IormPlan(())}, {host: ((),)}, access(rig.served))
    undo = PlanUndo(undo.label, undo.cells, undo.reach, patience_s=0.5)
    (problem,) = undo.execute()
    assert problem.startswith("IORM plans: gone: its IORM plan cannot be read: cannot be reached")


def test_a_cell_that_takes_a_plan_and_shows_another_is_an_error(rig: Rig, tmp_path: Path):
    before = rig.plans
    answering(rig.cells[1], "alter", lambda _: ("IORMPLAN successfully altered\n", 0))
    with pytest.raises(CellsError, match=r"accepted ALTER IORMPLAN, but shows another plan") as ended:
        rig.run(rig.plan(), tmp_path)
    assert ended.value.where == f"127.0.0.1:{rig.served.ports[1]}"
    assert rig.plans == before


def test_a_cell_that_refuses_the_plan_ends_the_run_and_the_others_are_back(rig: Rig, tmp_path: Path):
    before = rig.plans
    refusal = "\nCELL-02526: Pre-condition failed: no.\n"
    answering(rig.cells[1], "alter", lambda _: (refusal, 1))
    with pytest.raises(CellsError, match=r"cannot be changed: CELL-02526: Pre-condition") as ended:
        rig.run(rig.plan(), tmp_path)
    assert ended.value.where == f"127.0.0.1:{rig.served.ports[1]}"
    assert rig.plans == before


def test_a_cell_that_hangs_on_the_plan_is_put_back_when_it_answers_again(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The ALTER lands after its time-out, and after the first look of the undo."""
    before = rig.plans
    real = rig.cells[1].answer
    slow: list[str] = []

    def late(text: str) -> tuple[str, int]:
        if not slow:
            slow.append(text)
            time.sleep(3.0)
        return real(text)

    answering(rig.cells[1], "alter", late)
    patient = access(rig.served)
    reach = replace(patient, timeout_s=1.0)
    looked = execute_cells.survey
    monkeypatch.setattr(execute_cells, "survey", lambda plan, hosts, _: looked(plan, hosts, patient))
    monkeypatch.setattr(iorm_switch, "SETTLE_S", 4.0)
    with pytest.raises(CellsError, match=r"cannot be changed: no answer within 1 s"):
        start(rig.plan().to_plan(), tmp_path, seed=1, ways={"reach": lambda: reach, "user": "celladmin"})
    assert len(slow) == 1
    assert slow[0].startswith("alter iormplan dbplan=((name=ORCL,flashLog=")
    assert rig.plans == before


@pytest.mark.soak
def test_half_a_listing_costs_its_own_column(rig: Rig, tmp_path: Path):
    real = rig.cells[0].answer
    whole: list[int] = []

    def half(text: str) -> tuple[str, int]:
        output, code = real(text, xml=True)
        whole.append(len(output))
        return output[: len(output) // 2] if len(whole) == 2 else output, code

    answering(rig.cells[0], "list metriccurrent", half)
    rig.cells[0].answer = by_form(real, rig.cells[0].answer)  # type: ignore[method-assign]
    run = rig.run(rig.plan(), tmp_path)
    first, second = run.blocks()
    assert len(first.marks) == 1
    assert "not understood" in first.marks[0]
    assert second.marks == []
