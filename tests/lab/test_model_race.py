"""Tests of runs on modelled cells and a SAN: races are counted, and sweeps find both limits."""

from __future__ import annotations

import json

import pytest
from model_desk import Desk


def test_who_won_the_race_is_what_the_cells_counted(desk: Desk) -> None:
    done = desk("run", "flash-log", "--quick", "--blocks", "3", "--seed", "3", "--set", "commits=1000")
    assert "Disk or flash first" in done.stdout
    (race,) = json.loads((desk.run() / "analysis.json").read_text())["race"]
    assert race["arm"] == 1
    assert race["races"] == race["disk_first"] + race["flash_first"]
    assert race["low"] <= race["share"] <= race["high"]
    (counted,) = desk.sql(
        "select sum(grown) as races from (select max(value) - min(value) as grown from metrics"
        " where metric = 'FL_IO_W' and source like 'cell:%' and arm = 'flash log on'"
        " group by block, source)"
    )
    assert counted["races"] == race["races"]


def test_the_longest_of_both_arms_are_told_apart(desk: Desk) -> None:
    words = ("--quick", "--blocks", "3", "--seed", "3", "--set", "longest=400", "--set", "sessions=2")
    desk("run", "flash-log-tail", *words)
    tails = json.loads((desk.run() / "analysis.json").read_text())["tails"]
    assert sum(tails["longest"]["counts"]) == tails["longest"]["most"] >= 20
    assert [row["name"] for row in tails["quantiles"]][-1] == "longest"


def test_a_machine_without_the_tail_that_is_asked_about_has_no_verdict(desk: Desk) -> None:
    """Regression: the verdict on outliers was SLOWER for disks without outliers; a withheld verdict ends with exit code
    1."""
    words = ("--quick", "--blocks", "3", "--seed", "3", "--set", "sessions=2", "--set", "locks=false")
    done = desk("run", "flash-log-tail", *words, code=1)
    said = " ".join(done.stdout.split())
    assert "NO VERDICT This machine has no such tail: the longest operation of flash log off takes" in said
    assert "the question assumes 100 times" in said


@pytest.mark.soak
def test_the_tail_goes_with_the_flash_log(desk: Desk) -> None:
    """E10: the disks' controllers flush every 4 s, and the next write of the log waits for that."""
    desk("run", "flash-log-tail", "--quick", "--seed", "3")
    model = json.loads((desk.run() / "analysis.json").read_text())
    off, on = model["tails"]["longest"]["counts"]
    assert off > 3 * on
    longest = model["tails"]["quantiles"][-1]
    print(longest)


def test_a_sweep_has_a_curve_per_setting_and_states_both_limits(desk: Desk) -> None:
    done = desk(
        "run",
        "queue-depth",
        "--quick",
        "--blocks",
        "2",
        "--seed",
        "3",
        "--set",
        "stripe_kb=32",
        "--set",
        "sd_max_throttle=2,8",
        "--set",
        "jobs=1,10",
    )
    said = " ".join(done.stdout.split())
    for expected in (
        "is split into 32 pieces on 32 LUNs",
        "The host's limit is per LUN: 2 or 8",
        "at most 64 or 256 on the 32 LUNs of one file system",
        "A port has its own limit",
        "Throughput over sessions",
    ):
        assert expected in said
    sweep = json.loads((desk.run() / "analysis.json").read_text())["figures"]["sweep"]
    assert [curve["name"] for curve in sweep["curves"]] == [
        "sd_max_throttle 2",
        "sd_max_throttle 8",
    ]
    narrow, wide = (curve["points"][-1]["per_s"] for curve in sweep["curves"])
    assert wide > 2 * narrow
    table = desk("compare", "last", "--format", "csv").stdout.splitlines()
    assert len(table) == 5


def test_a_run_on_a_model_and_another_stand_side_by_side(desk: Desk) -> None:
    for place in ("log_sas", "log_flash"):
        desk(
            "run",
            "redo-size",
            "--target",
            "model:sas-and-flash",
            "--quick",
            "--seed",
            "2",
            "--set",
            "redo_bytes=4KiB..4MiB",
            "--set",
            f"redo={place}",
        )
    names = [run.name for run in sorted((desk.folder / "runs").iterdir())]
    done = desk("compare", *names)
    drawn = done.stdout.split("Median commit time by redo size")[1].split("\nThe shape of the curve")[0]
    assert drawn.count(" bins\n") == 2, "a curve of each run, one below the other"
    page = desk("compare", *names, "--format", "json").stdout
    curves = json.loads(page)["figures"]["curve"]["curves"]
    assert [curve["arm"] for curve in curves] == [0, 1]
    assert all(curve["fit"]["redo_bytes"] for curve in curves)
