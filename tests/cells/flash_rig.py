"""Two modelled cells with different IORM plans, for runs that switch them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig_help import SMALL_BUFFERS, access, passing, serving

from dbdyno.cells import iorm_switch
from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.evidence.run import Run
from dbdyno.study.plan.cells import CellsPlan, cells_study
from dbdyno.study.run.cells import start_on_cells
from dbdyno.study.run.cells_survey import Survey, survey
from dbdyno_rig.cell import Cell
from dbdyno_rig.rack import Load, Rack
from dbdyno_rig.serve import Served

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
        options = {"database": "ORCL", "turn": "60s", "held": "ours", **given}
        return cells_study("flash-log", f"cells:{self.served.hosts}", options, blocks=2)

    def survey(self, plan: CellsPlan) -> Survey:
        return survey(plan, self.hosts, access(self.served))

    def run(self, plan: CellsPlan, folder: Path, **given: object) -> Run:
        found = self.survey(plan)
        return start_on_cells(plan, found, access(self.served), folder, seed=1, **given)

    def words(self, *more: str) -> list[str]:
        """The command line of such a run."""
        return [
            sys.executable,
            "-m",
            "dbdyno",
            "run",
            "flash-log",
            "--target",
            f"cells:{self.served.hosts}",
            "--user",
            "celladmin",
            "--known-hosts",
            str(self.served.known_hosts),
            "--key",
            str(self.served.key),
            "--seed",
            "1",
            "--set",
            "database=orcl",
            "--set",
            "turn=60s",
            "--set",
            "held=ours",
            *more,
        ]


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


def answering(cell: Cell, to: str, instead: Callable[[str], tuple[str, int]]) -> None:
    """Lets a cell answer to commands that begin so in another way."""
    real = cell.answer

    def answer(text: str, *, xml: bool = False) -> tuple[str, int]:
        return instead(text) if text.startswith(to) else real(text, xml=xml)

    cell.answer = answer  # type: ignore[method-assign]


def by_form(
    text: Callable[..., tuple[str, int]], xml: Callable[..., tuple[str, int]]
) -> Callable[..., tuple[str, int]]:
    """One way of answering in text, another in XML."""

    def answer(words: str, **given: bool) -> tuple[str, int]:
        return xml(words, xml=True) if given.get("xml") else text(words)

    return answer
