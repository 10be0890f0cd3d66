"""Verdicts on switching a flash log off and on, from counters for which the right answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dbdyno import _core
from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.cells.plan import CellsPlan
from dbdyno.cells.catalogue import metric
from dbdyno.evidence.run import Block, Run, SliceRecord, new_run
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.analysis.pair import analyse_pair

OFF = {
    "FL_RQ_W": 50_000,
    "FL_RQ_TM_W": 50_000 * 600,
    "FL_IO_W": 0,
    "FL_IO_TM_W": 0,
    "FL_DISK_FIRST": 0,
    "FL_FLASH_FIRST": 0,
    "FL_IO_W_SKIP_IORM_PLAN": 50_000,
    "FL_SKIP_OUTLIERS": 25,
    "FL_ACTUAL_OUTLIERS": 0,
    "FL_PREVENTED_OUTLIERS": 0,
}
ON = {
    "FL_RQ_W": 50_000,
    "FL_RQ_TM_W": 50_000 * 500,
    "FL_IO_W": 50_000,
    "FL_IO_TM_W": 50_000 * 500,
    "FL_DISK_FIRST": 48_260,
    "FL_FLASH_FIRST": 1_740,
    "FL_IO_W_SKIP_IORM_PLAN": 0,
    "FL_SKIP_OUTLIERS": 0,
    "FL_ACTUAL_OUTLIERS": 1,
    "FL_PREVENTED_OUTLIERS": 24,
}
Counters = dict[str, float]


def made(
    folder: Path,
    turns: list[tuple[Counters, Counters]],
    *,
    cells: int = 2,
    wrong: dict[int, dict[str, str]] | None = None,
    plan: CellsPlan | None = None,
) -> Run:
    """Return a run with these differences of each cell's counters in each block, first for arm off, then for arm on."""
    plan = plan or CellsPlan("cel[01-02]", ("ORCL",))
    common = plan.to_plan()
    names = [f"cel0{at + 1}" for at in range(cells)]
    run = new_run(
        folder,
        "flash-log",
        {
            "tool_version": "0",
            "title": common.title,
            "question": common.question,
            "kind": plan.kind,
            "study": "flash-log",
            "seed": 1,
            "switch": "plan",
            "switch_reason": "of the test",
            "slice_ns": None,
            "turn_ns": plan.turn_ns,
            "blocks_planned": len(turns),
            "arms": [
                {
                    "name": name,
                    "description": "",
                    "sessions": None,
                    "rate_per_s": None,
                    "target": "cells",
                    "changes": dict.fromkeys(names, "alter"),
                    "how": {},
                    "was": {},
                }
                for name in plan.names
            ],
            "targets": {name: {"plan": 'alter iormplan dbplan=""'} for name in names},
            "iorm": {"databases": ["ORCL"], "on": list(plan.arms), "cells": names},
            "plan": common.to_dict(),
        },
    )
    at = 0
    for index, pair in enumerate(turns):
        rows: list[tuple[Any, ...]] = []
        for arm, counters in zip(plan.names, pair, strict=True):
            at += 1
            for cell in names:
                for name, value in counters.items():
                    for turn_s, own in ((0, 1000.0), (120, 1000.0 + value)):
                        known = metric(name)
                        rows.append(
                            (
                                arm,
                                index,
                                f"cell:{cell}",
                                known.object_type,
                                "",
                                name,
                                (at * 300 + turn_s) * 10**9,
                                own,
                                known.unit,
                                known.kind,
                            )
                        )
        columns = ("arm", "block", "source", "object_type", "object", "metric", "at_ns", "value", "unit", "kind")
        _core.write_metrics(
            run.path / "metrics",
            f"b{index:06d}",
            dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)),
        )
        own = (wrong or {}).get(index, {})
        marks = [f"{cell}: {why}" for cell, why in own.items()]
        begin = index * 600 * 10**9
        run.add_block(
            Block(
                index,
                "measure",
                begin,
                begin + 600 * 10**9,
                len(rows),
                [SliceRecord(0, 0), SliceRecord(1, 1)],
                marks,
                {"turns": [{"arm": 0, "wrong": own}, {"arm": 1, "wrong": {}}]},
            )
        )
    run.save(status="complete")
    return run


def noisy(counters: Counters, factor: float) -> Counters:
    return {**counters, "FL_RQ_TM_W": counters["FL_RQ_TM_W"] * factor}


def blocks(n: int, seed: int = 7) -> list[tuple[Counters, Counters]]:
    dice = np.random.default_rng(seed)
    return [(noisy(OFF, dice.normal(1, 0.02)), noisy(ON, dice.normal(1, 0.02))) for _ in range(n)]


def said(model: JsonObject) -> str:
    return " ".join([model["verdict"]["headline"], *model["verdict"]["sentences"]])


def test_what_the_cells_measured_is_judged_block_by_block(tmp_path: Path):
    model = analyse(made(tmp_path, blocks(12)))
    row = next(row for row in model["metrics"] if row["metric"] == "redo_write")
    assert model["verdict"]["decision"] == "faster"
    assert row["low"] < 500 / 600 < row["high"]
    assert (row["base_value"], row["value"]) == pytest.approx((600_000, 500_000), rel=0.02)
    assert model["verdict"]["headline"].startswith("flash log on is 1")
    assert [arm["ops"] for arm in model["arms"]] == [12 * 2 * 50_000] * 2
    assert model["arms"][1]["throughput_per_s"] == pytest.approx(2 * 50_000 / 120)
    assert {gate["name"]: gate["ok"] for gate in model["gates"]} == {
        "enough blocks": True,
        "blocks without a gap": True,
        "redo writes enough": True,
        "the plan took effect": True,
        "redo of these databases only": True,
        "disk first + flash first = redo writes served": True,
        "no drift of redo writes per second": True,
        "blocks independent of each other": True,
    }


def test_the_figures_printed_in_the_source_come_out_of_its_counters(tmp_path: Path):
    """It prints 3.8 %; its own counters, 19,190 of 551,342 writes, give 3.48 %."""
    printed = {"FL_IO_W": 551_342, "FL_DISK_FIRST": 532_152, "FL_FLASH_FIRST": 19_190}
    run = made(tmp_path, [({**OFF, **dict.fromkeys(printed, 0)}, {**ON, **printed})] * 2, cells=1)
    model = analyse(run)
    text = said(model)
    assert "flash was first in 38,380 of 1,102,684 redo writes, 3.48 %" in text
    assert "3.8 %" not in text
    (race,) = [row for row in model["race"] if row["races"]]
    assert race["disk_first"] + race["flash_first"] == race["races"]
    assert "19 190" not in render_html(model)
    assert "3.48" in render_html(model)


def test_outliers_prevented_and_left_are_told(tmp_path: Path):
    text = said(analyse(made(tmp_path, blocks(3))))
    assert "flash log on: 144 of 150 outliers of the disk were prevented by flash (96.0 %)" in text
    assert "500 with flash log off and 20 with flash log on; difference -480" in text
    assert "flash log off: writes that bypassed the flash log: IORM_PLAN 300,000." in text
    assert "a redo write that raced took 500 us on average" in text


def test_a_cell_that_does_not_count_in_one_turn_counts_in_none_of_its_block(tmp_path: Path):
    run = made(tmp_path, blocks(4), wrong={1: {"cel02": "not refreshed"}})
    model = analyse(run)
    assert [arm["ops"] for arm in model["arms"]] == [7 * 50_000] * 2
    assert model["figures"]["blocks"][0]["marked"] == ["", "cel02: not refreshed", "", ""]
    assert [w["text"] for w in model["warnings"] if w["code"] == "cell left out"] == [
        "cel02: not refreshed (in 1 block(s))"
    ]


def test_a_block_in_which_no_cell_counts_is_no_block(tmp_path: Path):
    gone = {"cel01": "cannot be reached", "cel02": "not refreshed"}
    model = analyse(made(tmp_path, blocks(4), wrong={0: gone}))
    assert model["run"]["blocks_whole"] == 3
    assert "1 of 4 blocks gave no number" in str(model["gates"])
    with pytest.raises(EvidenceError, match="no complete block that counts"):
        analyse(made(tmp_path, blocks(1), wrong={0: gone}))


def test_a_counter_that_fell_leaves_its_cell_out(tmp_path: Path):
    turns = blocks(3)
    turns[1] = (turns[1][0], {**turns[1][1], "FL_IO_W": -500})
    model = analyse(made(tmp_path, turns))
    assert model["run"]["blocks_whole"] == 2


def test_older_cells_that_do_not_time_all_requests_give_the_race_and_no_verdict(tmp_path: Path):
    def old(counters: Counters) -> Counters:
        return {key: v for key, v in counters.items() if not key.startswith("FL_RQ")}

    model = analyse(made(tmp_path, [(old(a), old(b)) for a, b in blocks(10)]))
    assert model["verdict"]["decision"] == "unclear"
    assert "do not count FL_RQ_TM_W" in said(model)
    assert "flash was first in 34,800 of 1,000,000" in said(model)
    gates = {gate["name"]: gate["ok"] for gate in model["gates"]}
    assert gates["the plan took effect"] is None


def test_where_the_blocks_scatter_longer_turns_are_the_advice(tmp_path: Path):
    dice = np.random.default_rng(5)
    turns = [(noisy(OFF, dice.uniform(0.5, 3)), noisy(ON, dice.uniform(0.5, 3))) for _ in range(6)]
    model = analyse(made(tmp_path, turns))
    assert model["verdict"]["decision"] == "unclear"
    assert "--set turn=10min" in said(model)


def test_cells_without_any_load_are_told_so(tmp_path: Path):
    idle = dict.fromkeys(OFF, 0)
    model = analyse(made(tmp_path, [(idle, idle)] * 10))
    assert "The cells saw no redo write in any turn" in said(model)
    assert any(gate["code"] == "writes" and gate["ok"] is False for gate in model["gates"])
    assert render_text(model, width=100, color=False)


def test_a_plan_that_took_no_effect_is_told(tmp_path: Path):
    model = analyse(made(tmp_path, [(ON, ON)] * 10))
    gates = {gate["name"]: gate["ok"] for gate in model["gates"]}
    assert gates["the plan took effect"] is False
    assert gates["redo of these databases only"] is False


def test_counters_of_several_moments_fail_the_identity(tmp_path: Path):
    model = analyse(made(tmp_path, [(OFF, {**ON, "FL_IO_W": 50_003})] * 10))
    (gate,) = [g for g in model["gates"] if g["name"].startswith("disk first")]
    assert gate["ok"] is False
    assert gate["text"] == "exact in 10 of 20 turns"


def test_the_same_plan_twice_gives_a_noise_floor(tmp_path: Path):
    plan = CellsPlan("cel01", ("ORCL",)).aa_plan()
    dice = np.random.default_rng(3)
    turns = [(noisy(OFF, dice.normal(1, 0.02)), noisy(OFF, dice.normal(1, 0.02))) for _ in range(10)]
    model = analyse(made(tmp_path, turns, plan=plan))
    assert model["kind"] == "aa"
    assert model["verdict"]["decision"] == "noise floor"
    assert "These 10 blocks can detect a difference of" in said(model)
    assert "the plan took effect" not in str(model["gates"])
    assert "flash log off again" in render_text(model, width=100, color=False)


def test_without_a_difference_a_difference_is_called_at_the_nominal_rate(tmp_path: Path):
    """Of 200 runs with equal arms and 3 % of noise, at most 5 % and a margin are called."""
    from dbdyno.study.analysis.cells.turns import Turn, compare_turns

    dice = np.random.default_rng(20)

    def turn() -> Turn:
        return Turn({"FL_RQ_W": (1e5, 800.0), "FL_RQ_TM_W": (1e5 * dice.normal(600, 18), 0.0)})

    judge = {"level": 0.95, "threshold": 0.0001}
    called = sum(
        compare_turns([[turn() for _ in range(10)] for _ in range(2)], judge)[0].decision in ("faster", "slower")
        for _ in range(200)
    )
    assert 1 <= called <= 20


def test_two_such_runs_are_not_laid_side_by_side(tmp_path: Path):
    run = made(tmp_path, blocks(2))
    with pytest.raises(EvidenceError, match="no arm whose operations' times can be compared"):
        analyse_pair(run, run)


def test_every_renderer_shows_the_race(tmp_path: Path):
    model = analyse(made(tmp_path, blocks(12)))
    page = render_html(model)
    for expected in ("Disk or flash first", "IORM_PLAN", "a write that raced", "Block by block"):
        assert expected in page
    text = render_text(model, width=110, color=False)
    assert "FASTER" in text
