"""Factors in plans: their syntax, the resulting arms, and rejected input."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Plan, plan_from_dict

HEAD = """\
title = "t"
%s
[workload]
scripts = [{name = "s", text = "select :rows;"}]
variables = {rows = "5"}
"""


def plan(factors: str, top: str = "") -> Plan:
    return parse_plan(HEAD % top + factors, Path("p.toml"))


def names(factors: str, top: str = "") -> list[str]:
    return [arm.name for arm in plan(factors, top).arms]


def test_levels_of_one_factor_are_the_arms_and_the_first_is_the_base():
    made = plan("[[factor]]\nsessions = [1, 2, 8]\n")
    assert [(arm.name, arm.sessions) for arm in made.arms] == [("1 session", 1), ("2 sessions", 2), ("8 sessions", 8)]
    assert [arm.levels for arm in made.arms] == [{"sessions": "1"}, {"sessions": "2"}, {"sessions": "8"}]
    assert (made.factors, made.kind) == (["sessions"], "sweep")


def test_a_bare_key_is_a_setting_and_tables_name_the_others():
    made = plan('[[factor]]\nwork_mem = ["4MB", "64MB"]\n[[factor]]\nvariables.rows = [1, 10]\n')
    last = made.arms[-1]
    assert (last.settings, last.variables) == ({"work_mem": "64MB"}, {"rows": "10"})
    assert last.name == "work_mem 64MB, rows 10"
    assert len(made.arms) == 4
    quoted = plan('[[factor]]\n"variables.rows" = [1, 10]\n').arms
    assert [arm.variables for arm in quoted] == [{"rows": "1"}, {"rows": "10"}], "it was taken for a setting"
    assert plan("[[factor]]\njit = [true, false]\n").arms[0].settings == {"jit": "on"}
    assert plan("[[factor]]\nrate_per_s = [10, 20.5]\n").arms[1].rate_per_s == 20.5
    assert plan('[[factor]]\nprotocol = ["simple", "prepared"]\n').arms[0].protocol == "simple"
    assert plan('[[factor]]\nparameters.redo_bytes = ["1KiB", "2KiB"]\n').arms[1].parameters == {"redo_bytes": "2KiB"}


def test_a_level_may_be_anything_that_an_arm_may_have():
    made = plan(
        '[[factor]]\nname = "form"\nlevels = [{name = "one", scripts = [{text = "select 1;"}]}, '
        '{name = "memory", settings = {work_mem = "8MB"}, before_sql = "analyze"}]\n'
    )
    assert made.arms[0].scripts[0].text == "select 1;"
    assert made.arms[1].before_sql == ["analyze"]
    assert made.arms[1].levels == {"form": "memory"}


def test_our_own_client_has_a_name_beside_the_others():
    """Studies take `--set client=dbdyno,jdbc`; a plan's factor said that there is no client 'dbdyno'."""
    own = plan('[[factor]]\nclient = ["dbdyno", "psycopg"]\n[[factor]]\nfetch_size = [1, 10]\n').arms
    assert [arm.client for arm in own] == [None, None, "psycopg", "psycopg"]
    assert [arm.name for arm in own] == ["dbdyno, 1 row", "dbdyno, 10 rows", "psycopg, 1 row", "psycopg, 10 rows"]
    (arm,) = plan('[[arm]]\nname = "ours"\nclient = "dbdyno"\n').arms
    assert arm.client is None


def test_one_at_a_time_is_the_base_and_each_other_level_alone():
    two = '[[factor]]\nsessions = [1, 2, 4]\n[[factor]]\nwork_mem = ["4MB", "64MB"]\n'
    assert names(two, 'design = "one-at-a-time"') == ["base", "2 sessions", "4 sessions", "work_mem 64MB"]
    made = plan(two, 'design = "one-at-a-time"')
    assert [arm.levels["sessions"] for arm in made.arms] == ["1", "2", "4", "1"]
    assert made.arms[3].sessions == 1


def test_arms_of_the_plan_are_a_factor_beside_the_others():
    made = plan('[[arm]]\nname = "a"\n[[arm]]\nname = "b"\nsettings = {jit = false}\n[[factor]]\nsessions = [1, 2]\n')
    assert [arm.name for arm in made.arms] == ["a, 1 session", "a, 2 sessions", "b, 1 session", "b, 2 sessions"]
    assert made.factors == ["arm", "sessions"]
    assert made.arms[3].settings == {"jit": "off"}


def test_a_manifest_gives_the_plan_back():
    made = plan("[[factor]]\nsessions = [1, 2]\n[[factor]]\nvariables.rows = [1, 10]\n")
    assert plan_from_dict(made.to_dict()) == made


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ("[[factor]]\nsessions = 4\n", "sessions must be a list of levels"),
        ("[[factor]]\nsessions = []\n", "sessions must be a list of levels"),
        ("[[factor]]\nsessions = [0, 1]\n", "must be from 1 to 10,000"),
        ('[[factor]]\nsessions = ["many"]\n', "must be a whole number"),
        ("[[factor]]\nsessions = [1, 1]\n", "'1 session' appears twice"),
        ('[[factor]]\nsessions = [1]\njit = ["on"]\n', "one key beside its name, found sessions, jit"),
        ('[[factor]]\nname = "x"\n', "one key beside its name, found none"),
        ("[[factor]]\nsessions = [1]\n[[factor]]\nsessions = [2]\n", "two factors are named 'sessions'"),
        ("[[factor]]\nvariables.a = [1]\nvariables.b = [2]\n", "write variables.NAME"),
        ("[[factor]]\nwork_mem = [[1]]\n", "a level of work_mem is a word or a number"),
        ("[[factor]]\nlevels = [{name = 'a'}]\n", "a factor's name is 1 to 60"),
        ("[[factor]]\nname = 'x'\nlevels = [4]\n", "a level is a table"),
        ("[[factor]]\nname = 'x'\nlevels = [{name = 'a', sesions = 4}]\n", "did you mean 'sessions'"),
        ("[[factor]]\nname = 'x'\nlevels = [{sessions = 4}]\n", "factor.name is missing"),
        ("[factor]\nsessions = [1]\n", "write [[factor]]"),
        (f"[[factor]]\nwork_mem = ['1MB', '{'x' * 80}']\n", "more than 60 characters"),
        ("[[arm]]\nname = 'a'\nagainst = 'a'\n[[factor]]\nsessions = [1]\n", "omit against"),
    ],
)
def test_what_is_written_wrong_is_named_with_its_line(factors: str, said: str):
    with pytest.raises(PlanError) as error:
        plan(factors)
    text = f"{error.value.message} {error.value.next_step}"
    assert said in text
    assert (error.value.where or "").startswith("p.toml:")


def test_too_many_arms_are_refused_with_the_way_out():
    nine = f"[[factor]]\nsessions = {list(range(1, 10))}\n[[factor]]\nvariables.rows = {list(range(1, 10))}\n"
    with pytest.raises(PlanError, match="the factors make 81 arms; a plan with factors has at most 64") as error:
        plan(nine)
    assert 'design = "one-at-a-time" makes 17 arms' in str(error.value.next_step)
    assert len(plan(nine, 'design = "one-at-a-time"').arms) == 17
    with pytest.raises(PlanError, match="65 arms"):
        plan(f"[[factor]]\nsessions = {list(range(1, 66))}\n")
