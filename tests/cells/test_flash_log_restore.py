"""A run on cells whose machine crashed: its plans are restored from its folder, and the run can be resumed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import pytest
from flash_rig import FIRST, Rig, answering, two_cells
from rig_help import access

from command_line import checked, dbdyno
from dbdyno.base.errors import CellsError, TargetError
from dbdyno.bench.cells.restore import refuse_interrupted_runs, undo_of
from dbdyno.bench.guardian import Guardian
from dbdyno.cells.iorm_switch import plan_undo
from dbdyno.evidence.run import Run, new_run
from dbdyno.study.analysis.analyse import analyse
from dbdyno_rig.state import IormPlan
from waiting import until

LONG_S = 120.0


def asked(rig: Rig, *words: str, answer: str = "", named: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a dbdyno command in the folder of the runs; add SSH options if it continues a run and `named` is set."""
    goes_on = named and ("restore" in words or "--resume" in words)
    ways = ["--key", str(rig.served.key), "--known-hosts", str(rig.served.known_hosts)] if goes_on else []
    return dbdyno(*words, *ways, cwd=rig.served.known_hosts.parent, stdin=answer)


def stop_like_a_machine(process: subprocess.Popen[str]) -> None:
    """Kill a run and its guardian at the same moment, so that nothing is restored."""
    os.kill(process.pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    assert len(children) == 1
    assert "guardian" in Path(f"/proc/{children[0]}/cmdline").read_text()
    for pid in (*children, process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=LONG_S)


def cut(rig: Rig, *more: str, whole: int = 0) -> Run:
    """Return a run whose machine stopped in the middle of a block, after `whole` complete blocks."""
    runs = rig.served.known_hosts.parent / "runs"

    def in_a_block() -> bool:
        first, second = ("flashLog=off" in str(plan) for plan in rig.plans)
        switched = first == second and "flashLog" in str(rig.plans[1])
        return switched and len(list(runs.glob("*/blocks/b*.json"))) >= whole

    with rig.start("--yes", "--out", str(runs), *more) as process:
        try:
            assert until(in_a_block, LONG_S)
            stop_like_a_machine(process)
        finally:
            process.kill()
    (folder,) = runs.iterdir()
    return Run.open(folder)


def shown(rig: Rig) -> list[str]:
    return [cell.answer("list iormplan detail")[0] for cell in rig.cells]


class Interrupted(NamedTuple):
    """Cells with a run whose machine stopped in a block of an hour, and their plans before it."""

    rig: Rig
    run: Run
    before: list[str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interrupted]:
    """Yield the cells and their interrupted run, which is made once; `interrupted` puts both back before each test."""
    folder = tmp_path_factory.mktemp("rig")
    with two_cells(folder) as rig, pytest.MonkeyPatch.context() as patched:
        patched.setenv("DBDYNO_STATE", str(folder / "state"))
        before = shown(rig)
        yield Interrupted(rig, cut(rig, "--set", "turn=1h"), before)


@pytest.fixture(scope="module")
def after_the_cut(kept: Interrupted, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[IormPlan]]:
    """Return a copy of the run's folder, and the plan of each cell, as they were when the machine stopped."""
    copy = shutil.copytree(kept.run.path, tmp_path_factory.mktemp("kept") / kept.run.id)
    return copy, [deepcopy(cell.plan) for cell in kept.rig.cells]


@pytest.fixture
def interrupted(kept: Interrupted, after_the_cut: tuple[Path, list[IormPlan]]) -> Interrupted:
    folder, plans = after_the_cut
    shutil.rmtree(kept.run.path)
    shutil.copytree(folder, kept.run.path)
    for cell, plan in zip(kept.rig.cells, plans, strict=True):
        cell.plan = deepcopy(plan)
    return Interrupted(kept.rig, Run.open(kept.run.path), kept.before)


def test_the_plans_are_restored_from_the_folder_of_a_run_whose_machine_stopped(interrupted: Interrupted):
    rig, run, before = interrupted
    changed = shown(rig)
    assert changed != before
    assert run.status == "aborted"

    silent = asked(rig, "cells", "restore", "last", "--dry-run", named=False)
    assert silent.returncode == 2
    assert f"with its own options: --key {rig.served.key}" in silent.stderr
    dry = checked(asked(rig, "cells", "restore", "last", "--dry-run"))
    name = f"127.0.0.1:{rig.served.ports[1]}"
    assert f'{name}: to be restored: alter iormplan dbplan=""' in dry.stdout
    assert "nothing was changed" in dry.stdout
    for answer in ("", "n\n"):
        refused = asked(rig, "cells", "restore", "last", answer=answer)
        assert refused.returncode == 2
        assert "Do it?" in refused.stderr
    assert shown(rig) == changed

    done = checked(asked(rig, "cells", "restore", run.id[-4:], "--yes"))
    assert f"{name}: put back" in done.stdout
    assert shown(rig) == before
    again = checked(asked(rig, "cells", "restore", str(run.path)))
    assert again.stdout.count("as it was found") == 2
    assert "nothing to restore" in again.stdout
    assert Run.open(run.path).manifest.restored is True


def test_a_new_run_on_cells_whose_run_was_cut_is_told_how_to_restore_them(interrupted: Interrupted):
    rig, run, _ = interrupted
    runs = str(run.path.parent)
    for more in ("--dry-run", "--yes"):
        words = rig.words(more, "--out", runs)
        refused = asked(rig, *words)
        assert refused.returncode == 2, refused.stdout
        assert f"run {run.id} was interrupted, and its IORM plan is still in effect on this cell" in refused.stderr
        assert f"dbdyno cells restore {run.path}" in refused.stderr
    assert len(list(run.path.parent.iterdir())) == 1
    assert asked(rig, "cells", "restore", "last", "--yes").returncode == 0
    assert asked(rig, *rig.words("--dry-run", "--out", runs)).returncode == 0


@pytest.mark.soak
def test_a_run_whose_machine_stopped_goes_on_once_it_is_restored(rig: Rig):
    before = shown(rig)
    run = cut(rig, "--blocks", "4", whole=1)
    records = {file: file.read_bytes() for file in (run.path / "blocks").glob("b*.json")}
    resume = ("run", "--resume", "last")
    refused = asked(rig, *resume, "--yes")
    assert refused.returncode == 2
    assert "dbdyno cells restore" in refused.stderr
    assert asked(rig, "cells", "restore", "last", "--yes").returncode == 0
    elsewhere = asked(rig, *resume, "--target", "cells:a", "--yes")
    assert "can be resumed only with the cells it was started with" in elsewhere.stderr
    dry = checked(asked(rig, *resume, "--dry-run"))
    assert "nothing was changed" in dry.stdout

    checked(asked(rig, *resume, answer="y\n"))
    assert shown(rig) == before
    run = Run.open(run.path)
    assert run.status == "complete"
    assert run.manifest.resumed == [len(records)]
    assert [block.index for block in run.blocks()] == [0, 1, 2, 3]
    assert {file: file.read_bytes() for file in records} == records
    assert analyse(run)["run"]["blocks_whole"] == 4
    assert "is complete" in asked(rig, *resume).stderr


def test_a_run_does_not_go_on_where_a_cell_is_not_as_it_was(interrupted: Interrupted):
    rig = interrupted.rig
    assert asked(rig, "cells", "restore", "last", "--yes").returncode == 0
    rig.cells[1].answer("alter iormplan objective=auto")
    refused = asked(rig, "run", "--resume", "last", "--yes")
    assert refused.returncode == 2
    name = f"127.0.0.1:{rig.served.ports[1]}"
    assert f"{name}: has changed since the run began: objective" in refused.stderr


def test_a_cell_that_cannot_be_reached_is_told_of_and_the_others_are_put_back(interrupted: Interrupted):
    rig, run, before = interrupted
    manifest = json.loads((run.path / "manifest.json").read_text())
    cells = manifest["iorm"]["undo"]["cells"]
    cells[0] |= {"name": "gone", "port": 1}
    (run.path / "manifest.json").write_text(json.dumps(manifest))
    for more in ("--dry-run", "--yes", "--yes"):
        done = asked(rig, "cells", "restore", "last", more)
        assert done.returncode == 2
        assert "gone: its IORM plan cannot be read: cannot be reached" in done.stderr
    assert shown(rig)[1] == before[1]
    assert "nothing to restore on the cells that answered" in done.stdout
    assert Run.open(run.path).manifest.restored is False


def test_a_plan_that_somebody_else_made_since_is_left_alone(interrupted: Interrupted):
    rig = interrupted.rig
    rig.cells[0].answer("alter iormplan dbplan=((name=ORCL,share=9))")
    rig.cells[1].answer('alter iormplan dbplan=""')
    done = asked(rig, "cells", "restore", "last", "--yes")
    assert done.returncode == 2
    left = "left unchanged, because somebody else set its plan: alter iormplan dbplan=((name=ORCL,share=9))"
    assert left in done.stdout
    assert f"to restore it manually: {FIRST}" in done.stderr
    assert rig.plans == [["name=ORCL,share=9"], []]


def test_a_killed_run_whose_guardian_lived_has_nothing_to_restore(rig: Rig, tmp_path: Path):
    before = rig.plans
    with rig.start("--yes", "--out", str(tmp_path / "runs"), "--set", "turn=1h") as process:
        assert until(lambda: "flashLog" in str(rig.plans[1]), LONG_S)
        process.kill()
        process.communicate(timeout=LONG_S)  # the guardian holds the other end until it is done
    assert rig.plans == before
    done = checked(asked(rig, "cells", "restore", "last", "--runs", str(tmp_path / "runs")))
    assert "nothing to restore" in done.stdout


def test_what_is_no_cut_run_on_cells_is_refused_in_words(rig: Rig, tmp_path: Path):
    runs = tmp_path / "runs"
    new_run(runs, "other", {}, name="other")
    refused = asked(rig, "cells", "restore", "other", "--runs", str(runs))
    assert refused.returncode == 2
    assert "other: did not change the IORM plan of a storage cell, so there is nothing to restore" in (refused.stderr)
    found = rig.survey(rig.plan()).found
    undo = plan_undo(found, {host: (plan.directives,) for host, plan in found.items()}, access(rig.served))
    from dbdyno.bench.undo import to_wire

    manifest = {"iorm": {"undo": to_wire(undo)}, "restored": False}
    at_work = new_run(runs, "mine", manifest, name="mine")
    refused = asked(rig, "cells", "restore", "mine", "--runs", str(runs))
    assert refused.returncode == 2
    assert "is still running" in refused.stderr
    with pytest.raises(CellsError, match="run mine is still running on this cell"):
        refuse_interrupted_runs(runs, found)
    at_work.save(restored=True)
    refuse_interrupted_runs(runs, found)


@pytest.mark.soak
def test_what_restoring_needs_is_on_disk_before_the_first_plan_is_changed(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A machine that stops keeps what was synced: the file, its name, its folder's name."""
    synced: list[str] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    at_first: list[tuple[list[str], dict[str, object]]] = []
    for cell in rig.cells:
        alter = cell.answer

        def first(text: str, alter=alter) -> tuple[str, int]:
            (manifest,) = tmp_path.glob("*flash-log*/manifest.json")
            at_first.append((list(synced), json.loads(manifest.read_text())))
            return alter(text)

        answering(cell, "alter iormplan", first)
    found = rig.survey(rig.plan()).found
    run = rig.run(rig.plan(), tmp_path)
    names, manifest = at_first[0]
    aside = next(at for at, name in enumerate(names) if name.startswith(str(run.path / ".manifest.json.")))
    assert str(run.path) in names[aside:]
    assert str(tmp_path) in names
    undo = undo_of(Run(run.path, manifest))
    assert undo.directives_before == {host: plan.directives for host, plan in found.items()}
    assert manifest["restored"] is False
    assert run.manifest.restored is True


def test_a_run_that_could_not_put_a_plan_back_says_so(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    theirs = "alter iormplan dbplan=((name=ORCL,share=9))"
    real = rig.cells[0].answer
    taken: list[str] = []

    def somebody_else_follows(text: str) -> tuple[str, int]:
        answer = real(text)
        taken.append(text)
        return real(theirs) if len(taken) == 2 else answer

    answering(rig.cells[0], "alter", somebody_else_follows)
    with pytest.raises((TargetError, CellsError)):
        rig.run(rig.plan(), tmp_path)
    (folder,) = tmp_path.glob("*flash-log*")
    assert Run.open(folder).manifest.restored is False


@pytest.mark.soak
def test_a_file_of_ssh_configuration_is_handed_to_the_guardian(rig: Rig, tmp_path: Path):
    """A path is no JSON: the run ended before its first block."""
    from dataclasses import replace

    config = tmp_path / "ssh_config"
    config.write_text("")
    found = rig.survey(rig.plan()).found
    way = replace(access(rig.served), config=config)
    undo = plan_undo(found, dict.fromkeys(found, ()), way)
    assert undo.access == replace(way, keys=undo.access.keys, known_hosts=undo.access.known_hosts)
    with Guardian() as guardian, guardian.undo(undo):
        pass
