"""Two modelled cells with different IORM plans, for runs that switch them.

Their virtual time advances when their metrics are read, so that a run gets new collections without waiting.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rig_help import SMALL_BUFFERS, access, serving

from dbdyno.bench.cells import bench as cells_bench
from dbdyno.bench.cells.plan import CellsPlan
from dbdyno.bench.cells.survey import Survey, survey
from dbdyno.cells import iorm_switch
from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.evidence.run import Run
from dbdyno.study.plan.cells import flash_log_on_cells
from dbdyno.study.run.execute import start
from dbdyno_rig.cell import Cell
from dbdyno_rig.rack import MINUTE_NS, Load, Rack
from dbdyno_rig.serve import RackAccess

LOAD = Load({"kind": "commit-loop", "think_ms": 200}, 3, 1, {**SMALL_BUFFERS, "cells.disks": "1", "cells.modules": "1"})
"""Load of the modelled racks; one disk and one flash module, because each read returns all metrics of each of them."""
A_LOOK_NS = 20 * 10**9
"""Virtual time by which a cell advances at each read of its metrics [ns]."""
FIRST_WAIT_S = 0.02
"""Time after which a run reads the metrics again."""
FIRST = "alter iormplan dbplan=((name=ORCL,share=3,flashLog=on),(name=default,share=1))"
SECOND = 'alter iormplan dbplan=""'


class Rig:
    """Two modelled cells with different IORM plans; `stop` stops their virtual clocks."""

    def __init__(self, cells: list[Cell], served: RackAccess, stop: threading.Event) -> None:
        self.cells, self.served, self.stop = cells, served, stop

    def start(self, *more: str) -> subprocess.Popen[str]:
        """Start a flash-log run in its own process."""
        command = [sys.executable, "-m", "dbdyno", *self.words(*more)]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    @property
    def plans(self) -> list[list[str]]:
        """Return the database directives of each cell's IORM plan."""
        return [list(cell.plan.database) for cell in self.cells]

    @property
    def hosts(self) -> list[Host]:
        return hosts_of([self.served.hosts], user="celladmin")

    def plan(self, **given: str) -> CellsPlan:
        options = {"database": "ORCL", "turn": "60s", "held": "ours", **given}
        plan = flash_log_on_cells(options, False, f"cells:{self.served.hosts}")
        return replace(plan, schedule=replace(plan.schedule, blocks=2))

    def survey(self, plan: CellsPlan) -> Survey:
        return survey(plan, self.hosts, access(self.served))

    def run(self, plan: CellsPlan, folder: Path, **given: object) -> Run:
        return start(plan.to_plan(), folder, seed=1, ways=self.ways(), **given)

    def ways(self) -> dict[str, object]:
        """Return the arguments with which the cells are reached."""
        return {"reach": lambda: access(self.served), "user": "celladmin"}

    def words(self, *more: str) -> list[str]:
        """Return the command line of a flash-log run."""
        return [
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
    monkeypatch.setattr(cells_bench, "_FIRST_WAIT_S", FIRST_WAIT_S)
    folder = tmp_path / "rig"
    folder.mkdir()
    with two_cells(folder) as made:
        yield made


@contextlib.contextmanager
def two_cells(folder: Path) -> Iterator[Rig]:
    """Yield two served cells whose virtual time advances when their metrics are read."""
    made = Rack("model:exadata-x2", LOAD)
    made.advance(MINUTE_NS)
    cells = [Cell(made, number) for number in range(2)]
    for cell, text in zip(cells, (FIRST, SECOND), strict=True):
        assert cell.answer(text)[1] == 0
    stop, one_at_a_time = threading.Event(), threading.Lock()
    for cell in cells:
        passes_when_looked_at(cell, stop, one_at_a_time)
    with serving(cells, folder) as served:
        yield Rig(cells, served, stop)


def passes_when_looked_at(cell: Cell, stop: threading.Event, one_at_a_time: threading.Lock) -> None:
    """Let a rack's virtual time advance before the cell answers each query for metrics."""
    real = cell.answer

    def answer(text: str, *, xml: bool = False) -> tuple[str, int]:
        if text.startswith("list metriccurrent") and not stop.is_set():
            with one_at_a_time:
                cell.rack.advance(A_LOOK_NS)
        return real(text, xml=xml)

    cell.answer = answer  # type: ignore[method-assign]


def answering(cell: Cell, to: str, instead: Callable[[str], tuple[str, int]]) -> None:
    """Let `instead` answer all commands that begin with `to`."""
    real = cell.answer

    def answer(text: str, *, xml: bool = False) -> tuple[str, int]:
        return instead(text) if text.startswith(to) else real(text, xml=xml)

    cell.answer = answer  # type: ignore[method-assign]


def by_form(
    text: Callable[..., tuple[str, int]], xml: Callable[..., tuple[str, int]]
) -> Callable[..., tuple[str, int]]:
    """Return a function that answers text requests with `text` and XML requests with `xml`."""

    def answer(words: str, **given: bool) -> tuple[str, int]:
        return xml(words, xml=True) if given.get("xml") else text(words)

    return answer
