"""Every combination of levels is an arm, and is compared with its fair counterpart."""

from __future__ import annotations

import pytest

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.factors import (
    Level,
    choose_levels,
    combine_levels,
    cross_factors,
    numbers,
    option_values,
    sessions,
    setting,
)
from dbdyno.study.plan.plan import Arm, Plan, Workload


def plan(*arms: Arm) -> Plan:
    return Plan("t", list(arms), Workload(kind="commit-loop"))


def test_each_combination_is_an_arm_and_the_last_factor_changes_fastest():
    arms = combine_levels(setting("devices.s.stripe_kb", "32,1024"), sessions("1,10"))
    assert [arm.name for arm in arms] == [
        "stripe_kb 32, 1 session",
        "stripe_kb 32, 10 sessions",
        "stripe_kb 1024, 1 session",
        "stripe_kb 1024, 10 sessions",
    ]
    assert arms[3].settings == {"devices.s.stripe_kb": "1024"}
    assert arms[3].sessions == 10


def test_a_factor_of_one_level_is_in_force_and_names_nothing():
    (arm,) = combine_levels(setting("a.b", "5"), sessions("3"))
    assert (arm.name, arm.settings, arm.sessions) == ("base", {"a.b": "5"}, 3)


def test_within_an_arm_is_compared_with_the_first_level_of_the_last_factor():
    arms = combine_levels(sessions("1,10,20"), setting("storage.redo", "disk,flash"), within=True)
    assert [arm.against for arm in arms] == [
        None,
        None,
        "10 sessions, redo disk",
        "10 sessions, redo disk",
        "20 sessions, redo disk",
        "20 sessions, redo disk",
    ]


def test_without_it_all_are_compared_with_the_first():
    arms = combine_levels(sessions("1,10"), setting("storage.redo", "disk,flash"))
    assert {arm.against for arm in arms} == {None}


def test_a_further_parameter_multiplies_the_arms_and_keeps_the_pairs():
    base = plan(Arm("off"), Arm("on", settings={"enabled": "true"}))
    arms = cross_factors(base, {"cells.flash_log.dispatch_us": "20,60"}).arms
    assert [(arm.name, arm.against) for arm in arms] == [
        ("off, dispatch_us 20", None),
        ("on, dispatch_us 20", None),
        ("off, dispatch_us 60", "off, dispatch_us 60"),
        ("on, dispatch_us 60", "off, dispatch_us 60"),
    ]
    assert arms[3].settings == {"enabled": "true", "cells.flash_log.dispatch_us": "60"}


def test_one_value_is_put_into_every_arm():
    arms = cross_factors(plan(Arm("off"), Arm("on")), {"database.cores": "4"}).arms
    assert [(arm.name, arm.settings) for arm in arms] == [
        ("off", {"database.cores": "4"}),
        ("on", {"database.cores": "4"}),
    ]


def test_two_parameters_give_every_combination():
    arms = cross_factors(plan(Arm("commit")), {"a.x": "1,2", "b.y": "3,4,5"}).arms
    assert len(arms) == 6
    assert arms[-1].name == "x 2, y 5"
    assert {arm.against for arm in arms} == {None}


def test_too_many_arms_are_refused_with_their_number():
    many = ",".join(str(n) for n in range(1, 10))
    with pytest.raises(PlanError, match="81 arms"):
        cross_factors(plan(Arm("a")), {"a.x": many, "b.y": many})


@pytest.mark.parametrize("text", ["", "1,", "1,1", " , 2"])
def test_a_list_needs_different_values(text: str):
    with pytest.raises(PlanError, match="--set x"):
        option_values(text, "x")


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_number_is_whole_and_above_nothing(text: str):
    with pytest.raises(PlanError):
        numbers(text, "sessions")


def test_an_unknown_level_is_told_the_known_ones():
    with pytest.raises(PlanError, match="off, on"):
        choose_levels({"off": Level("off"), "on": Level("on")}, "offf", "flash_log")
