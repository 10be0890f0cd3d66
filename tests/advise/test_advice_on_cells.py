"""Rules for storage cells on recordings: each finds its planted fault with its figures, and few on healthy cells."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from advised import Found

from command_line import dbdyno
from fresh_dice import fresh_dice

sys.path.insert(0, str(Path(__file__).parents[1] / "cells"))

from recordings import cache, column, disks, redo, rounds_of, run_of
from test_cells_why import load

from dbdyno.advise.judge import applicable_rules, judge, rules
from dbdyno.advise.recordings import read
from dbdyno.cells.collection import Collection

MINUTES = 8
Counters = Mapping[tuple[str, str], float]


def advised(folder: Path, rounds: list[Collection]) -> Found:
    facts = read(run_of(folder / "rec", rounds))
    return Found(facts, judge(facts, rules()))


def both(*parts: Callable[[str, int], Counters]) -> Callable[[str, int], Counters]:
    return lambda cell, minute: {name: value for part in parts for name, value in part(cell, minute).items()}


def scans(eligible: float, returned: float, passed: float) -> Callable[[str, int], Counters]:
    names = {"SIO_IO_EL_OF": eligible, "SIO_IO_OF_RE": returned, "SIO_IO_PA_TH": passed, "SIO_IO_SI_SV": 0.0}
    return lambda _, minute: {(name, "SMARTIO"): value * minute for name, value in names.items()}


def test_on_healthy_cells_no_rule_fires(tmp_path: Path) -> None:
    """Nine of ten reads hit, flash and disks share the time, scans return a tenth, nothing passes by the log."""
    healthy = both(load(fresh_dice(), misses=1.0, read_us=3000.0, scans=20.0), scans(1e4, 1e3, 0.0))
    found = advised(tmp_path, rounds_of(MINUTES, healthy))
    assert not found.model["findings"], [one["sentence"] for one in found.model["findings"]]
    assert not found.model["not_judged"]


def test_only_rules_for_cells_are_asked(tmp_path: Path) -> None:
    facts = read(run_of(tmp_path / "rec", rounds_of(MINUTES, cache)))
    assert {one.family for one in applicable_rules(facts, rules())} == {"cells"}


def test_reads_that_miss_the_flash_cache(tmp_path: Path) -> None:
    """300 misses a second of each of twelve disks at 6 ms, against 0.3 ms from flash."""
    found = advised(tmp_path, rounds_of(MINUTES, load(fresh_dice(), misses=300.0)))
    one = found.only("flash_misses")
    total = 12 * (0.3 * 6 + 0.06 + 0.02) + 3 * (0.6 + 0.02)
    assert one["stake"] == pytest.approx(12 * 0.3 * 5.7 / total, rel=0.05)
    assert found.figure("flash_misses", "reads that hit") == pytest.approx(0.75, rel=0.01)


def test_a_hit_share_of_three_quarters_without_time_behind_it_is_no_finding(tmp_path: Path) -> None:
    found = advised(tmp_path, rounds_of(MINUTES, load(fresh_dice(), misses=300.0, read_us=100.0)))
    assert not found.of("flash_misses")


def test_a_disk_that_is_slow(tmp_path: Path) -> None:
    found = advised(tmp_path, disks(fresh_dice(), MINUTES, slow=5.0))
    assert found.only("slow_disk")["subject"] == "cel02 CD_03_cel02"
    assert found.figure("slow_disk", "times the median, R_SM") == pytest.approx(5.0, rel=0.1)
    assert found.only("slow_disk")["stake"] == pytest.approx(4 / 16, abs=0.05)


def test_redo_writes_that_pass_by_the_flash_log(tmp_path: Path) -> None:
    """Six of 606 writes a minute find the flash busy: just under one in a hundred, and more is a finding."""
    assert not advised(tmp_path / "few", rounds_of(MINUTES, redo)).of("flash_log_bypass")

    def busy(cell: str, minute: int) -> Counters:
        return {
            **redo(cell, minute),
            ("FL_IO_W_SKIP_BUSY", "FLASHLOG"): 60.0 * minute,
            ("FL_ACTUAL_OUTLIERS", "FLASHLOG"): minute,
        }

    found = advised(tmp_path / "many", rounds_of(MINUTES, busy))
    assert "FL_IO_W_SKIP_BUSY" in str(found.only("flash_log_bypass")["evidence"])
    assert found.figure("flash_log_outliers", "outliers on both") == 3 * (MINUTES - 1)


def test_scans_that_are_passed_through_or_filter_nothing(tmp_path: Path) -> None:
    passed = advised(tmp_path / "passed", rounds_of(MINUTES, scans(1000.0, 300.0, 250.0)))
    assert passed.figure("smart_scan_passed", "passed through [MB]") == 3 * 250 * (MINUTES - 1)
    assert not passed.of("offload_efficiency")
    whole = advised(tmp_path / "whole", rounds_of(MINUTES, scans(1000.0, 950.0, 0.0)))
    assert "95 %" in whole.only("offload_efficiency")["sentence"]
    assert not advised(tmp_path / "small", rounds_of(MINUTES, scans(1.0, 0.95, 0.5))).model["findings"]


def test_a_cell_that_goes_silent_one_that_restarts_and_one_whose_clock_is_off(tmp_path: Path) -> None:
    def cells(at: int) -> Collection:
        began = 10**18 + (at >= 6)
        silent = column("cel02", {} if at >= 5 else cache("cel02", at), at, problem="timed out" if at >= 5 else None)
        late = column("cel03", cache("cel03", at), at + 60, asked=at)
        return Collection([column("cel01", cache("cel01", at), at, began=began), silent, late])

    found = advised(tmp_path, [cells(at) for at in range(MINUTES)])
    assert found.model["findings"][0]["rule"] == "dead_cell" and found.only("dead_cell")["subject"] == "cel02"
    assert found.figure("dead_cell", "rounds with an answer") == 5
    assert found.only("cell_restart")["subject"] == "cel01"
    assert found.only("cell_clock")["subject"] == "cel03"


def test_the_command_reads_a_recording(tmp_path: Path) -> None:
    run = run_of(tmp_path / "rec", disks(fresh_dice(), MINUTES, slow=5.0))
    done = dbdyno("advise", str(run.path), "--format", "json", "--fail-on", "warning")
    assert done.returncode == 1 and "failed on warning: slow_disk" in done.stderr, done.stderr
    assert json.loads(done.stdout)["facts"]["what"] == "recording"
    refused = dbdyno("advise", str(run.path), "--only", "fsync")
    assert refused.returncode == 2 and "storage cells" in refused.stderr
