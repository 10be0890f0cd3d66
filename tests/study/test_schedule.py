"""Blocks are randomised by a seed, are balanced, and are repeated with the same seed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan
from dbdyno.study.plan.schedule import blocks, timing


def plan(arms: int, extra: str = "") -> Plan:
    text = 'title = "t"\n[workload]\nscripts = [{text = "select 1;"}]\n' + extra
    text += "".join(f'[[arm]]\nname = "arm {number}"\n' for number in range(arms))
    return parse_plan(text, Path("p.toml"))


def order(planned):
    return [[(turn.arm, turn.counts) for turn in block.turns] for block in planned]


@pytest.mark.parametrize("switch", ["slices", "turns", "reload", "restart"])
def test_a_seed_replays_the_order_and_another_seed_changes_it(switch: str):
    p = plan(3)
    how = timing(p.schedule, switch)
    assert order(blocks(p, how, 7)) == order(blocks(p, how, 7))
    assert order(blocks(p, how, 7)) != order(blocks(p, how, 8))


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_slices_are_mirrored_quads_so_that_a_straight_drift_cancels(arms: int):
    p = plan(arms)
    how = timing(p.schedule, "slices")
    for block in blocks(p, how, 1):
        if block.kind == "overhead":
            continue
        sequence = [turn.arm for turn in block.turns]
        for at in range(0, len(sequence), 2 * arms):
            quad = sequence[at : at + 2 * arms]
            assert quad == quad[::-1]
            assert Counter(quad) == dict.fromkeys(range(arms), 2)


def test_both_arms_come_first_about_equally_often():
    p = plan(2, "[schedule]\nblocks = 400\n")
    how = timing(p.schedule, "slices")
    first = [block.turns[0].arm for block in blocks(p, how, 3) if block.kind == "measure"]
    assert 150 < sum(first) < 250, "seed 3"


def test_turns_are_mirrored_from_block_to_block():
    p = plan(3, "[schedule]\nblocks = 10\nwarmup_blocks = 1\n")
    how = timing(p.schedule, "reload")
    counted = [[t.arm for t in b.turns if t.counts] for b in blocks(p, how, 5) if b.kind == "measure"]
    for first, second in zip(counted[::2], counted[1::2], strict=True):
        assert first == second[::-1]


def test_a_switch_by_restart_has_time_to_settle_that_does_not_count():
    p = plan(2)
    for block in blocks(p, timing(p.schedule, "restart"), 1):
        if block.kind == "measure":
            assert [turn.counts for turn in block.turns] == [False, True, False, True]


def test_warm_up_and_watching_come_first_and_are_marked():
    p = plan(2, "[schedule]\nblocks = 4\nwarmup_blocks = 2\n[watch]\noverhead_blocks = 1\n")
    kinds = [block.kind for block in blocks(p, timing(p.schedule, "slices"), 1)]
    assert kinds == ["warmup"] * 2 + ["overhead"] + ["measure"] * 4


def test_without_watching_its_cost_is_not_measured():
    p = plan(2, "[watch]\nactivity_hz = 0\ncounters = false\n")
    kinds = {block.kind for block in blocks(p, timing(p.schedule, "slices"), 1)}
    assert "overhead" not in kinds


def test_an_arms_share_of_a_block_is_the_same_for_all():
    p = plan(3, '[schedule]\nturn = "1s"\nslice = "50ms"\n')
    for block in blocks(p, timing(p.schedule, "slices"), 9):
        if block.kind == "measure":
            share = Counter()
            for turn in block.turns:
                share[turn.arm] += turn.length_ns
            assert set(share.values()) == {1_000_000_000}


def test_looking_at_a_large_plan_draws_no_order():
    """100,000 blocks of 20,000 slices each are two thousand million turns."""
    p = plan(2, '[schedule]\nblocks = 100000\nturn = "500s"\nslice = "50ms"\n')
    planned = blocks(p, timing(p.schedule, "slices"), 1)
    assert len(planned) == 100_004
    assert len(planned[-1].turns) == 20_000


def test_a_block_has_the_same_order_each_time_and_whatever_comes_before_it():
    short, long = (plan(2, f"[schedule]\nblocks = {count}\n") for count in (5, 50))
    how = timing(short.schedule, "slices")
    few, many = (blocks(p, how, 4) for p in (short, long))
    assert order(few) == order(many[: len(few)])
    assert few[-1].turns == few[-1].turns
