"""The network line between sessions and server in a plan: its syntax, its effect, and arms that cannot have one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.study.plan.confirmation import confirming_plan
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.network import line_parameters, network_text, rate_bit_per_s
from dbdyno.study.plan.plan import Plan, plan_from_dict
from dbdyno.study.run.report import join_reports
from mock_plans import mock_plan

HEAD = """\
title = "t"
[workload]
scripts = [{name = "s", text = "select 1;"}]
"""
NEAR = '[[arm]]\nname = "near"\n'


def plan(rest: str) -> Plan:
    return parse_plan(HEAD + rest, Path("p.toml"))


def networks(rest: str) -> list[dict[str, str]]:
    made = plan(rest)
    return [made.network_of(arm) for arm in made.arms]


def test_an_arm_has_the_line_that_it_says_and_else_that_of_the_load():
    given = '[load]\nnetwork = {delay = "2ms", rate = "1Gbit"}\n' + NEAR + '[[arm]]\nname = "b"\n'
    assert networks(given + 'network = {delay = "9ms"}\n') == [
        {"delay": "2ms", "rate": "1Gbit"},
        {"delay": "9ms", "rate": "1Gbit"},
    ]
    assert networks(NEAR) == [{}]


def test_delay_and_rate_are_factors():
    made = plan('[[factor]]\ndelay = ["0ms", "5ms"]\n[[factor]]\nnetwork.rate = ["10Mbit", "1Gbit"]\n')
    assert [arm.name for arm in made.arms][-1] == "delay 5ms, rate 1Gbit"
    assert made.arms[-1].network == {"delay": "5ms", "rate": "1Gbit"}
    assert made.arms[-1].levels == {"delay": "5ms", "rate": "1Gbit"}
    level = '[[factor]]\nname = "place"\nlevels = [{name = "here"}, {name = "far", network = {delay = "20ms"}}]\n'
    assert plan(level).arms[1].network == {"delay": "20ms"}


def test_a_line_becomes_nanoseconds_and_bits_a_second():
    assert line_parameters({}) is None
    assert line_parameters({"delay": "0ms"}) == {"delay_ns": 0, "rate_bit_per_s": None}
    assert line_parameters({"delay": "1.5ms", "rate": "100Mbit"}) == {
        "delay_ns": 1_500_000,
        "rate_bit_per_s": 100_000_000,
    }
    assert line_parameters({"rate": "64kbit"}) == {"delay_ns": 0, "rate_bit_per_s": 64_000}
    assert (network_text({}), network_text({"delay": "5ms", "rate": "1Gbit"})) == ("", "5ms each way, 1Gbit")


@pytest.mark.parametrize("text", ["100", "100 Mb", "1Mbit/s", "-1Mbit", "7.9kbit", "101Gbit", "", "1e3Mbit", "inf"])
def test_what_is_no_rate_is_none(text: str):
    assert rate_bit_per_s(text) is None


@pytest.mark.parametrize(
    ("table", "given", "message"),
    [
        (NEAR, 'network = {delay = "2s"}', "arm.delay must be from 0s to 1s, found 2s"),
        (NEAR, 'network = {delay = "fast"}', "must be a duration"),
        (NEAR, "network = {delay = 5}", "must be a duration"),
        (NEAR, 'network = {rate = "100 Mb"}', "rate must be a number and kbit, Mbit or Gbit"),
        (NEAR, 'network = {latency = "5ms"}', "unknown key 'arm.latency'"),
        (NEAR, 'network = "5ms"', "arm.network must be a table such as"),
        ("[[factor]]\n", 'delay = ["0ms", "2s"]', "must be from 0s to 1s"),
        ("[[factor]]\n", 'network.rate = ["fast"]', "rate must be a number"),
        ("[[factor]]\n", 'network = ["1ms"]', "write network.NAME = [...]"),
        ("[[factor]]\n", 'network.jitter = ["1ms"]', "unknown key"),
    ],
)
def test_a_wrong_line_or_level_is_told_with_its_place(table: str, given: str, message: str):
    with pytest.raises(PlanError) as caught:
        plan(f"{table}{given}\n")
    assert message in str(caught.value)
    assert ("p.toml:6" if table == NEAR else "p.toml:") in str(caught.value)


def test_a_manifest_and_a_confirming_plan_keep_the_line():
    made = plan('[load]\nnetwork = {rate = "1Gbit"}\n[[factor]]\ndelay = ["0ms", "1ms", "5ms"]\n')
    assert plan_from_dict(made.to_dict()) == made
    confirmed = confirming_plan(made, made.arms[0], made.arms[2], blocks=4)
    read = parse_plan(confirmed.toml, Path("c.toml"))
    assert [read.network_of(arm) for arm in read.arms] == [
        {"rate": "1Gbit", "delay": "0ms"},
        {"rate": "1Gbit", "delay": "5ms"},
    ]


def test_a_plan_of_an_earlier_version_has_no_line():
    old = asdict(plan(NEAR))
    del old["network"]
    for arm in old["arms"]:
        del arm["network"]
    assert plan_from_dict(old).network_of(plan_from_dict(old).arms[0]) == {}


@pytest.mark.parametrize(
    "rest", ['[load]\nnetwork = {delay = "1ms"}\n[[arm]]\nname = "a"\n', '[[factor]]\ndelay = ["0ms", "1ms"]\n']
)
def test_what_has_no_sessions_refuses_a_line(tmp_path: Path, rest: str):
    path = tmp_path / "plan.toml"
    path.write_text(mock_plan(rest))
    done = dbdyno("plan", "check", str(path))
    assert done.returncode == 2
    assert "it gives a network, but it has no sessions that could use one" in done.stderr


def test_the_lateness_of_lines_is_added_up_over_the_pieces_of_a_block():
    piece = {"started_ns": 1, "ended_ns": 2, "arms": [{"arm": 1, "transactions": 3}]}
    lines = [[{"arm": 1, "pieces": 10, "late_ns": 50, "late_max_ns": 9}], [{"arm": 1, "pieces": 5, "late_max_ns": 20}]]
    report = join_reports([{**piece, "lines": one} for one in lines])
    assert report["lines"] == [{"arm": 1, "pieces": 15, "late_ns": 50, "late_max_ns": 20}]
    assert report["arms"] == [{"arm": 1, "transactions": 6}]
