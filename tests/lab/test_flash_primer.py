"""Tests of the study of a flash card full of modified pages, on the model."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from model_desk import Desk

from dbdyno.study.library.flash_primer import STUDY


@pytest.mark.soak
def test_a_used_card_is_slower_and_less_so_with_more_spare_flash(desk: Desk) -> None:
    desk("run", "flash-primer", "--quick", "--seed", "3", "--set", "spare=0.07,0.28,0.5")
    arms = json.loads((desk.run() / "analysis.json").read_text())["arms"]
    rates = {arm["name"]: arm["throughput_per_s"] for arm in arms}
    fresh = [rates[f"{share} spare, fresh"] for share in ("0.07", "0.28", "0.5")]
    used = [rates[f"{share} spare, used"] for share in ("0.07", "0.28", "0.5")]
    assert max(fresh) - min(fresh) < 0.05 * max(fresh)
    assert all(less < more for less, more in pairwise(used))
    assert used[0] < fresh[0] / 4
    assert all(slow < quick for slow, quick in zip(used, fresh, strict=True))


def test_the_primer_s_times_are_in_every_arm_on_the_device_that_is_named() -> None:
    made = STUDY.make({factor.name: factor.default for factor in STUDY.factors} | {"device": "card"}, True)
    assert len(made.arms) == 4
    for arm in made.arms:
        times = [arm.settings[f"devices.card.{name}"] for name in ("read_us", "program_us", "erase_us")]
        assert times == ["25", "250", "2000"]
    assert [arm.against for arm in made.arms] == [None, None, "0.28 spare, fresh", "0.28 spare, fresh"]
