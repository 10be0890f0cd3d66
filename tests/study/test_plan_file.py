"""A plan is read whole, or refused with one error that names file, line and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.errors import PlanError
from dbdyno.study.plan import plan_from_dict
from dbdyno.study.plan_file import duration_ns, parse_plan, read_plan
from dbdyno.study.plan_new import example_plan

SMALL = """\
title = "t"
[workload]
scripts = [{text = "select 1;"}]
[[arm]]
name = "a"
[[arm]]
name = "b"
settings = {work_mem = "64MB", jit = false, random_page_cost = 1.1}
"""


def parse(text: str):
    return parse_plan(text, Path("p.toml"))


def test_a_small_plan_takes_the_defaults():
    plan = parse(SMALL)
    assert [arm.name for arm in plan.arms] == ["a", "b"]
    assert plan.schedule.blocks == 20
    assert plan.schedule.slice_ns == 50_000_000
    assert plan.sessions_of(plan.arms[0]) == 1
    assert not plan.open_loop


def test_values_of_settings_become_the_engines_words():
    assert parse(SMALL).arms[1].settings == {
        "work_mem": "64MB",
        "jit": "off",
        "random_page_cost": "1.1",
    }


def test_the_example_is_a_valid_plan_and_names_every_key():
    plan = parse(example_plan())
    assert len(plan.arms) == 2
    from dbdyno.study import plan_keys

    for table in (*plan_keys.TABLES.values(), plan_keys.ARM, plan_keys.TOP):
        for key in table:
            assert f"{key.name} =" in example_plan()


def test_a_plan_survives_its_manifest():
    plan = parse(example_plan())
    assert plan_from_dict(plan.to_dict()) == plan


def test_script_files_are_relative_to_the_plan(tmp_path: Path):
    (tmp_path / "a.sql").write_text("select 2;")
    (tmp_path / "p.toml").write_text(
        'title = "t"\n[workload]\nscripts = [{file = "a.sql", weight = 3}]\n[[arm]]\nname = "a"\n'
    )
    script = read_plan(tmp_path / "p.toml").workload.scripts[0]
    assert (script.name, script.text, script.weight) == ("a.sql", "select 2;", 3)


def test_no_password_lands_in_a_manifest():
    plan = parse(SMALL.replace("[workload]", '[target]\ndsn = "postgresql://u:tiger@h/d"\n[workload]'))
    assert "tiger" not in str(plan.to_dict()["dsn"])


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("50ms", 50_000_000),
        ("1.5s", 1_500_000_000),
        ("2 min", 120 * 10**9),
        ("5", None),
        ("", None),
    ],
)
def test_durations(text: str, nanoseconds: int | None):
    assert duration_ns(text) == nanoseconds


HEAD = 'title = "t"\n'
WORK = '[workload]\nscripts = [{text = "select 1;"}]\n'
ARM = '[[arm]]\nname = "a"\n'

BAD = [
    ("no toml", "title = \n", "p.toml:1", "is no TOML"),
    ("no title", WORK + ARM, "p.toml", "title is missing"),
    ("no arm", HEAD + WORK, "p.toml", "no arm"),
    ("no scripts", HEAD + ARM, "p.toml", "needs scripts"),
    ("unknown table", HEAD + WORK + ARM + "[lod]\n", "p.toml:6", "'load'"),
    ("unknown key", HEAD + WORK + "[load]\nsesions = 2\n" + ARM, "p.toml:5", "'sessions'"),
    (
        "unknown arm key",
        HEAD + WORK + ARM + '[[arm]]\nname = "b"\nseting = {}\n',
        "p.toml:8",
        "'settings'",
    ),
    ("wrong type", HEAD + WORK + '[load]\nsessions = "two"\n' + ARM, "p.toml:5", "whole number"),
    ("bool is no int", HEAD + WORK + "[load]\nsessions = true\n" + ARM, "p.toml:5", "whole number"),
    ("too small", HEAD + WORK + "[schedule]\nblocks = 1\n" + ARM, "p.toml:5", "from 2"),
    ("no duration", HEAD + WORK + '[schedule]\nturn = "fast"\n' + ARM, "p.toml:5", "a duration"),
    (
        "two lengths",
        HEAD + WORK + '[schedule]\nturn = "1s"\nturn_transactions = 5\n' + ARM,
        "p.toml:5",
        "not both",
    ),
    ("no choice", HEAD + WORK + '[schedule]\nswitch = "abba"\n' + ARM, "p.toml:5", "one of auto"),
    ("two arms of a name", HEAD + WORK + ARM + ARM, "p.toml:7", "two arms"),
    ("nameless arm", HEAD + WORK + "[[arm]]\nsessions = 2\n", "p.toml:4", "arm.name is missing"),
    ("empty name", HEAD + WORK + '[[arm]]\nname = ""\n', "p.toml:5", "1 to 60"),
    ("arm is a table", HEAD + WORK + '[arm]\nname = "a"\n', "p.toml:4", "[[arm]]"),
    (
        "script missing",
        HEAD + '[workload]\nscripts = [{file = "none.sql"}]\n' + ARM,
        "p.toml:3",
        "cannot be read",
    ),
    (
        "script twice",
        HEAD + '[workload]\nscripts = [{file = "a", text = "b"}]\n' + ARM,
        "p.toml:3",
        "either file or text",
    ),
    (
        "script empty",
        HEAD + "[workload]\nscripts = [{weight = 1}]\n" + ARM,
        "p.toml:3",
        "either file or text",
    ),
    (
        "builtin and scripts",
        HEAD + WORK + 'builtin = "select-only"\n' + ARM,
        "p.toml:4",
        "not both",
    ),
    ("settings no table", HEAD + WORK + ARM + "settings = 5\n", "p.toml:6", "a table of settings"),
    ("load no table", HEAD + "load = 5\n" + WORK + ARM, "p.toml:2", "must be a table"),
]


@pytest.mark.parametrize(("text", "where", "says"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_a_bad_plan_gives_one_error_with_its_place(text: str, where: str, says: str):
    with pytest.raises(PlanError) as caught:
        parse(text)
    assert (caught.value.where or "") == where
    assert says in str(caught.value)


def test_a_plan_that_is_not_there_names_the_next_step(tmp_path: Path):
    with pytest.raises(PlanError, match="plan new"):
        read_plan(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"title = '\xe9'")
    with pytest.raises(PlanError, match="UTF-8"):
        read_plan(tmp_path / "latin.toml")
