"""Cells and disks that differ from their siblings: found if planted; no finding if all are alike."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from recordings import CELLS, disks, rounds_of, run_of

from dbdyno.cells.collection import Collection
from dbdyno.cells.kinds import kind_of
from dbdyno.cells.series import open_series
from dbdyno.cli.cells.skew import command
from dbdyno.judge.cells_skew import skew_page
from fresh_dice import fresh_dice
from soaked import first


def page_of(folder: Path, rounds: list[Collection]) -> dict:
    """Return the skew page of these rounds, which are first saved as a recording."""
    with open_series(run_of(folder, rounds)) as found:
        return skew_page(found.siblings(), found.intervals)


def test_a_slow_disk_among_its_siblings_is_found_and_named(tmp_path: Path):
    page = page_of(tmp_path / "rec", disks(fresh_dice(), 16, slow=3.0))
    named = [row for row in page["rows"] if row["differs"] and row["siblings"] == "hard disks"]
    assert {(row["metric"], row["name"]) for row in named} >= {("CD_IO_TM_R_SM_RQ", "cel02 CD_03_cel02")}
    assert 2 < named[0]["ratio"] < 4
    assert {row["name"] for row in named} == {"cel02 CD_03_cel02"}


@pytest.mark.parametrize("count", first(3, 10))
def test_siblings_that_are_alike_give_no_finding(tmp_path: Path, count: int):
    dice = fresh_dice()
    findings = sum(
        row["differs"] for at in range(count) for row in page_of(tmp_path / f"rec{at}", disks(dice, 12))["rows"]
    )
    assert findings == 0  # the threshold of 25 % stands beside the test


def test_load_in_bursts_makes_no_sibling_differ(tmp_path: Path):
    """Redo goes to one stretch of disks after the other: in a minute some disks have ten times the
    writes of the others, over the hour all have the same. The mean of logarithms lay off the
    logarithm of the median for all of them, and all were called different."""

    def counters(cell: str, minute: int) -> dict[tuple[str, str], float]:
        return {
            ("CD_IO_RQ_W_SM", f"CD_{disk:02}_{cell}"): sum(
                110 if (at + disk + CELLS.index(cell)) % 3 == 0 else 10 for at in range(minute)
            )
            for disk in range(6)
        }

    page = page_of(tmp_path / "rec", rounds_of(31, counters))
    assert page["tested"] >= 18
    assert [row for row in page["rows"] if row["differs"]] == []


def test_too_few_rounds_test_nothing(tmp_path: Path):
    page = page_of(tmp_path / "rec", disks(random.Random(1), 3, slow=9.0))
    assert (page["enough"], page["rows"]) == (False, [])


def test_siblings_are_of_one_kind():
    assert kind_of("CD_IO_RQ_R_SM", "CD_00_cel01", "cel01") == "hard disks"
    assert kind_of("CD_IO_RQ_R_SM", "FD_07_cel01", "cel01") == "flash disks"
    assert kind_of("GD_IO_RQ_R_SM", "DATA_CD_03_cel01", "cel01") == "grid disks DATA"
    assert kind_of("FL_IO_W", "FLASHLOG", "cel01") == ""


def test_the_command_reads_a_recording_and_exits_1_on_a_finding(tmp_path: Path):
    run = run_of(tmp_path / "rec", disks(random.Random(7), 12, slow=3.0))
    found = CliRunner().invoke(command, [str(run.path), "-m", "CD_IO_TM.*RQ"], env={"COLUMNS": "200"})
    assert found.exit_code == 1, found.output
    assert "cel02 CD_03_cel02" in found.stdout
