"""The load of the database in a modelled rack: named loads, and loads given as text."""

from __future__ import annotations

import pytest
from rig_help import value

from dbdyno.base.errors import ModelError
from dbdyno_rig.cell import Cell
from dbdyno_rig.loads import NAMED_LOADS, load_of
from dbdyno_rig.rack import Load, Rack


def given(*texts: str, sessions: int | None = None, **settings: str) -> Load:
    return load_of(texts, sessions=sessions, seed=1, settings=settings)


def test_a_workload_is_written_with_its_parameters_and_its_sessions():
    load = given("commit-loop,think_ms=5,redo_bytes=1KiB,sessions=20", sessions=3)
    assert load.workload == {"kind": "commit-loop", "think_ms": 5, "redo_bytes": "1KiB"}
    assert (load.sessions, load.beside) == (20, ())
    assert given("commit-loop", sessions=3).sessions == 3
    assert given("commit-loop").sessions == 8


def test_several_workloads_stand_beside_each_other():
    load = given("quiet", "scan-jobs,sessions=2")
    assert load.workload["kind"] == "update-loop"
    assert load.beside == ((2, {"kind": "scan-jobs"}),)


def test_what_is_set_counts_for_more_than_what_a_name_sets():
    assert given("mixed").settings == NAMED_LOADS["mixed"].settings
    asked = load_of(["mixed"], sessions=None, seed=1, settings={"cells.controller.learn_s": "5"}).settings
    assert asked is not None
    assert asked["cells.controller.learn_s"] == "5"
    assert asked["cells.controller.learn_every_s"] == "1200"


@pytest.mark.parametrize(
    "text",
    ["commit-loop,think_ms", "commit-loop,sessions=0", "sort,sessions=x", "sort,sessions=1.5", "sort,=3"],
)
def test_a_load_that_is_none_is_refused(text: str):
    with pytest.raises(ModelError):
        given(text)


@pytest.mark.parametrize("text", ["dance", "sort,colour=red"])
def test_the_model_refuses_a_workload_that_it_does_not_know(text: str):
    with pytest.raises(ModelError):
        Rack("model:exadata-x2", given(text))


@pytest.mark.soak
def test_in_the_mixed_load_flash_wins_while_the_batteries_learn_and_outliers_are_prevented():
    # The batteries learn in the second of two minutes.
    settings = {"cells.controller.learn_every_s": "120", "cells.controller.learn_s": "60"}
    rack = Rack("model:exadata-x2", load_of(["mixed"], sessions=None, seed=1, settings=settings))
    cells = [Cell(rack, number) for number in range(3)]

    def counted(name: str) -> float:
        return sum(value(cell, name) for cell in cells)

    rack.advance(59 * 10**9)
    assert counted("FL_FLASH_FIRST") == 0
    assert counted("FL_DISK_FIRST") > 1_000
    rack.advance(1 * 10**9)
    disk_first = counted("FL_DISK_FIRST")
    rack.advance(60 * 10**9)
    flash_first = counted("FL_FLASH_FIRST")
    assert flash_first > 10 * (counted("FL_DISK_FIRST") - disk_first)
    assert counted("FL_PREVENTED_OUTLIERS") > 0
    assert counted("FL_IO_W") == flash_first + counted("FL_DISK_FIRST")
