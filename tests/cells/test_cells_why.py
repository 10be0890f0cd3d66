"""Causes of busy disks in cells: planted causes are named, parts add up, and uncertain parts are withheld."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from recordings import cache, disks, rounds_of, run_of

from dbdyno.base.json_types import JsonObject
from dbdyno.cells.collection import Collection
from dbdyno.cli.main import cli
from dbdyno.judge.cells_page import compare_page, recordings
from dbdyno.judge.cells_report import report_page
from fresh_dice import fresh_dice

MINUTES = 8


def load(
    dice: random.Random, *, misses: float = 100.0, read_us: float = 6000.0, scans: float = 3.0
) -> Callable[..., Any]:
    """Return counters of cells with four hard disks and a flash disk; cache misses are small reads of hard disks. Rates
    are per second and disk, and vary a little from minute to minute.
    """
    stand: dict[tuple[str, str, str], float] = {}

    def counters(cell: str, minute: int) -> dict[tuple[str, str], float]:
        found: dict[tuple[str, str], float] = {}
        kinds = [("CD", f"CD_0{disk}_{cell}", misses, read_us, scans) for disk in range(4)]
        kinds.append(("FD", f"FD_00_{cell}", 2000.0, 300.0, 0.0))
        for _, item, small, each, large in kinds:
            for name, rate, time in (("R_SM", small, each), ("R_LG", large, 20000.0), ("W_SM", 20.0, 1000.0)):
                requests = 60 * rate * dice.uniform(0.95, 1.05)
                for metric, more in ((f"CD_IO_RQ_{name}", requests), (f"CD_IO_TM_{name}", requests * time)):
                    stand[cell, item, metric] = stand.get((cell, item, metric), 0.0) + more
                    found[metric, item] = stand[cell, item, metric]
        hits = 4 * 60 * 900 * minute
        found["FC_IO_RQ_R", "FLASHCACHE"] = hits
        found["FC_IO_RQ_R_MISS", "FLASHCACHE"] = 4 * 60 * misses * minute
        return found

    return counters


def reported(folder: Path, rounds: list[Collection]) -> JsonObject:
    (why,) = report_page(run_of(folder, rounds))["why"]
    return why


def compared(folder: Path, one: list[Collection], other: list[Collection]) -> JsonObject:
    runs = (run_of(folder / "one", one), run_of(folder / "two", other))
    (why,) = compare_page(*recordings(runs, ("one", "two")))["why"]
    return why


def test_the_largest_part_comes_first_with_its_share_and_the_parts_add_up(tmp_path: Path):
    """Twelve disks: 100 reads a second of 6 ms are 0.6 under way on each, and 3 scans of 20 ms 0.06."""
    why = reported(tmp_path / "rec", rounds_of(MINUTES, load(fresh_dice())))
    first = why["causes"][0]
    assert (first["code"], first["about"]) == ("cache", "small reads from hard disks")
    assert first["amount"] == pytest.approx(12 * 0.6e9, rel=0.03)
    assert first["low"] < first["amount"] < first["high"] < 1.1 * first["amount"]
    assert first["sentence"].endswith("the flash cache answered 90 % of reads")
    assert sum(one["amount"] for one in why["causes"]) + why["rest"] == pytest.approx(why["amount"])
    assert why["amount"] == pytest.approx(12 * (0.6 + 0.06 + 0.02) * 1e9 + 3 * (0.6 + 0.02) * 1e9, rel=0.03)


def test_a_disk_that_is_slow_is_a_cause_of_its_own(tmp_path: Path):
    """One of twelve takes eleven times as long: ten times the usual, of twenty-two."""
    first = reported(tmp_path / "rec", disks(fresh_dice(), MINUTES, slow=11.0))["causes"]
    (disk,) = (one for one in first if one["code"] == "disk")
    assert disk["about"] == "cel02 CD_03_cel02" and disk["share"] == pytest.approx(10 / 22, abs=0.08)


def test_without_a_slow_disk_none_is_named(tmp_path: Path):
    why = reported(tmp_path / "rec", disks(fresh_dice(), MINUTES))
    assert [one["code"] for one in why["causes"]] == ["read"]


@pytest.mark.parametrize(
    ("planted", "code", "about"),
    [
        ({"misses": 300.0}, "cache", "small reads from hard disks"),
        ({"read_us": 14000.0}, "device", "small reads from hard disks"),
        ({"scans": 40.0}, "calls", "large reads from hard disks"),
    ],
)
def test_the_planted_cause_of_a_difference_is_named_first(tmp_path: Path, planted: dict, code: str, about: str):
    own = fresh_dice()
    why = compared(tmp_path, rounds_of(MINUTES, load(own)), rounds_of(MINUTES, load(own, **planted)))
    first = why["causes"][0]
    assert (first["code"], first["about"]) == (code, about) and first["share"] > 0.8, why
    assert sum(one["amount"] for one in why["causes"]) + why["rest"] == pytest.approx(why["amount"])


def test_a_disk_that_became_slow_is_named_among_its_siblings(tmp_path: Path):
    own = fresh_dice()
    first = compared(tmp_path, disks(own, MINUTES), disks(own, MINUTES, slow=9.0))["causes"][0]
    assert (first["code"], first["about"]) == ("disk", "CD_03_cel02 of cel02")


def test_nothing_is_named_between_two_recordings_of_the_same_load(tmp_path: Path):
    own = fresh_dice()
    why = compared(tmp_path, rounds_of(MINUTES, load(own)), rounds_of(MINUTES, load(own)))
    assert why["withheld"] or abs(why["amount"]) < 0.03 * why["before"], why


def test_too_few_rounds_and_no_disks_are_said(tmp_path: Path):
    assert "too few" in reported(tmp_path / "few", disks(fresh_dice(), 3))["withheld"]
    assert "no times of cell disks" in reported(tmp_path / "none", rounds_of(MINUTES, cache))["withheld"]


def test_a_cell_that_gave_nothing_for_some_minutes_changes_no_rate(tmp_path: Path):
    rounds = rounds_of(MINUTES, load(fresh_dice()))
    holes = [
        Collection([own for own in one.columns if not (own.host.name == "cel03" and at in (4, 5, 6))])
        for at, one in enumerate(rounds)
    ]
    whole, torn = (reported(tmp_path / name, own) for name, own in (("whole", rounds), ("torn", holes)))
    assert torn["amount"] == pytest.approx(whole["amount"], rel=0.05)


def test_the_page_begins_with_it(tmp_path: Path):
    run = run_of(tmp_path / "rec", rounds_of(MINUTES, load(fresh_dice())))
    done = CliRunner().invoke(cli, ["report", str(run.path), "--format", "text"])
    assert done.exit_code == 0, done.output
    assert done.output.index("WHY") < done.output.index("WHAT WAS RECORDED")
    assert "small reads from hard disks, " in done.output
