"""Values before and after: the flash log's shares, restarts, recordings, and metrics that have no difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.base.errors import CellsError
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.diff import collection_of, diff_page, read_collection, share_interval
from dbdyno.cells.documents import read_any
from dbdyno.cells.hosts import Host
from dbdyno.cells.record import Pace, new_recording, save_round
from fresh_dice import fresh_dice

LISTED = """\
cel01: FL_DISK_FIRST     FLASHLOG   {} IO requests
cel01: FL_FLASH_FIRST    FLASHLOG   {} IO requests
cel01: FL_IO_W           FLASHLOG   {} IO requests
cel01: FL_PREVENTED_OUTLIERS FLASHLOG {} IO requests
cel01: FL_IO_W_SKIP_BUSY FLASHLOG   {} IO requests
"""
BEFORE = LISTED.format("1,000,000", "40,000", "1,040,000", 10, 3)
AFTER = LISTED.format("1,532,152", "59,190", "1,591,342", 17, 5)


def collection(text: str) -> Collection:
    listing = read_any(text)
    cells = dict.fromkeys(r.cell for r in listing.readings)
    columns = []
    for cell in cells:
        own = read_any("\n".join(line for line in text.split("\n") if line.startswith(cell)))
        columns.append(Column(Host(cell, cell), own, 0, 0.1))
    return Collection(columns)


def test_the_share_of_writes_that_flash_won_comes_out_of_the_printed_counters():
    """The source prints 3.8 %; its own counters, 19,190 of 551,342, give 3.48 %."""
    log = diff_page(collection(BEFORE), collection(AFTER))["flash_log"]
    assert (log["disk_first"], log["flash_first"], log["writes"]) == (532_152, 19_190, 551_342)
    assert round(100 * log["flash_share"], 2) == 3.48
    assert log["flash_share_low"] < log["flash_share"] < log["flash_share_high"]
    assert log["identity_holds"]
    assert log["prevented_outliers"] == 7
    assert log["passed_by"] == {"BUSY": 2}


def test_the_interval_of_a_share_is_wilsons():
    from scipy.stats import binomtest

    dice = fresh_dice()
    for _ in range(50):
        whole = dice.randrange(1, 10**6)
        part = dice.randrange(0, whole + 1)
        expected = binomtest(part, whole).proportion_ci(method="wilson")
        assert share_interval(part, whole) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_a_service_that_began_anew_has_no_difference():
    before, after = collection(BEFORE), collection(AFTER)
    before.columns[0].listing.started_ns = {"cel01": 1}
    after.columns[0].listing.started_ns = {"cel01": 2}
    page = diff_page(before, after)
    assert page["flash_log"] is None
    assert {row["verdict"] for row in page["without"]} == {"reset"}


def test_files_without_the_names_of_cells_are_the_same_cell(tmp_path: Path):
    for name, text in (("before.txt", BEFORE), ("after.txt", AFTER)):
        (tmp_path / name).write_text(text.replace("cel01: ", ""))
    page = diff_page(read_collection(tmp_path / "before.txt"), read_collection(tmp_path / "after.txt"))
    assert page["flash_log"]["writes"] == 551_342


def test_a_recording_is_readable_up_to_its_last_whole_round(tmp_path: Path):
    run = new_recording(tmp_path / "rec", [Host("cel01", "cel01")], Pace())
    save_round(run, 0, collection(BEFORE))
    save_round(run, 1, collection(AFTER))
    (run.path / "blocks" / "b000001.json").unlink()  # cut short before the round was whole
    first = collection_of(str(run.path))
    assert {r.name: r.value for r in first.readings}["FL_IO_W"] == 1_040_000
    save_round(run, 1, collection(AFTER))
    page = diff_page(collection(BEFORE), collection_of(str(run.path)))
    assert page["flash_log"]["flash_first"] == 19_190


def test_a_file_without_metrics_says_what_was_found(tmp_path: Path):
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(CellsError, match="contains no metric; line 1 is 'hello'"):
        read_collection(tmp_path / "x")
