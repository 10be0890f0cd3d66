"""Correct by independent evidence: the output of modelled cells is read back to the same values in every form;
identities and rates hold in archived and imported data.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from recordings import redo, rounds_of, run_of
from rig_help import any_rack, rack

from dbdyno.cells.archive import import_files
from dbdyno.cells.catalogue import metric
from dbdyno.cells.collection import Collection
from dbdyno.cells.documents import read_any
from dbdyno.cells.listing import Reading
from dbdyno.cells.numbers import last_digit_value
from dbdyno.cells.rates import changes
from dbdyno.cells.record import all_rounds
from dbdyno.cli.main import cli
from dbdyno_rig.cell import Cell
from dbdyno_rig.rack import Rack
from fresh_dice import fresh_dice

WITH_TIME = "list metriccurrent attributes name, metricObjectName, metricValue, collectionTime"


def values(readings: list[Reading]) -> list[tuple[str, str, str, float, str]]:
    return [(r.cell, r.name, r.object, r.value, r.unit) for r in readings]


def test_pasted_through_dcli_or_as_json_the_same_values_are_read():
    dice = fresh_dice()
    for _ in range(2):
        asked = Cell(any_rack(dice), 0)
        text = asked.answer(WITH_TIME)[0]
        plain = read_any(text, "cel01")
        assert plain.readings
        assert plain.unread == []
        for pasted in (text.replace("\t", "  "), text.expandtabs(8), text.replace("\t", "")):
            assert read_any(pasted, "cel01").readings == plain.readings
        squeezed = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        assert values(read_any(squeezed, "cel01").readings) == values(plain.readings)
        dcli = "\n".join(f"cel01: {line.strip()}" for line in text.split("\n") if line)
        assert values(read_any(dcli).readings) == values(plain.readings)
        wound = text.replace("\n", "\r\n")
        assert values(read_any(wound, "cel01").readings) == values(plain.readings)
        xml = read_any(asked.answer("list metriccurrent", xml=True)[0])
        rows = [
            {
                "name": r.name,
                "metricObjectName": r.object,
                "metricValue": r.value,
                "collectionTime": (r.at_ns or 0) // 10**6,
            }
            for r in xml.readings
        ]
        context = {"cell": asked.name, "ossStartTimestamp": str(asked.rack.began_ns // 10**6)}
        document = read_any(json.dumps({"cli-output": {"context": context, "metric": rows}}))
        assert values(document.readings) == values(xml.readings)
        assert [r.at_ns for r in document.readings] == [r.at_ns for r in xml.readings]
        assert document.started_ns == xml.started_ns


@functools.cache
def small_rack() -> Rack:
    """Return three small cells after six minutes of an update load."""
    small = {"cells__disks": "2", "cells__modules": "2"}
    return rack(seed=random.randrange(1000), seconds=6 * 60, **small)


def archived(tmp_path: Path, form: str) -> tuple[list[Collection], set[str]]:
    """Archive the history of modelled cells in one file each, import the files, and return the rounds."""
    made = small_rack()
    files = []
    for number, name in enumerate(made.names):
        files.append(tmp_path / f"{name}.txt")
        text = Cell(made, number).answer("list metrichistory", xml=form == "xml")[0]
        if form == "dcli":
            text = "\n".join(f"{name}: {line.strip()}" for line in text.split("\n") if line)
        files[-1].write_text(text)
    found = import_files(files, tmp_path / "run")
    assert found.unread == found.errors == found.refused == []
    return all_rounds(found.run), set(made.names)


@pytest.mark.soak
def test_rates_of_an_imported_history_are_the_cells_own_to_the_printed_digit(tmp_path: Path):
    for form in ("text", "dcli", "xml"):
        folder = tmp_path / form
        folder.mkdir()
        rounds, cells = archived(folder, form)
        assert len(rounds) > 4
        compared = 0
        for before, after in itertools.pairwise(rounds):
            assert {column.host.name for column in after.columns} == cells
            own = {(r.cell, r.name, r.object): r for r in after.readings}
            for change in changes(before.readings, after.readings):
                rate = own.get((change.cell, f"{change.name}_SEC", change.object))
                if rate is None or change.per_s is None:
                    continue
                # What rounding took from both counters, and from the rate.
                fine = last_digit_value(f"{change.after}") if form == "xml" else _fine(change.name, change)
                assert abs(change.per_s - rate.value) <= 2 * fine / 60 + _fine(rate.name, rate)
                compared += rate.value > 0
        assert compared > 20


def _fine(name: str, of: object) -> float:
    """Return the resolution of a printed value of this metric, which depends on the value's size."""
    value = abs(float(getattr(of, "after", None) or getattr(of, "value", 0.0)))
    unit = metric(name).unit
    if unit in ("MB", "MB/sec", "KB/sec"):
        return 0.001 if value < 100 else 1.0
    return 0.1 if value < 100 else 1.0


def test_identities_hold_in_what_was_archived_and_imported(tmp_path: Path):
    rounds, _ = archived(tmp_path, "text")
    checked = 0
    for one in rounds:
        for column in one.columns:
            found = {r.name: r.value for r in column.readings if r.object in ("FLASHLOG", "FLASHCACHE")}
            assert found["FL_IO_W"] == found["FL_DISK_FIRST"] + found["FL_FLASH_FIRST"]
            skipped = sum(v for name, v in found.items() if re.fullmatch("FL_IO_W_SKIP_(?!.*_MIN).*", name))
            assert found["FL_RQ_W"] == found["FL_IO_W"] + skipped
            parts = ("FIRST", "OVERWRITE", "POPULATE")
            assert found["FC_IO_RQ_W"] == sum(found[f"FC_IO_RQ_W_{part}"] for part in parts)
            checked += 1
    assert checked > 12


def test_sql_on_a_whole_recording_warns_of_no_missing_part(tmp_path: Path):
    run = run_of(tmp_path / "rec", rounds_of(3, redo))
    found = CliRunner().invoke(cli, ["sql", "select count(*) as n from metrics", "--run", str(run.path)])
    assert (found.exit_code, found.stderr) == (0, "")
