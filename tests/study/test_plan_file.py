"""A plan is read completely, or rejected with one error that names the file, the line and the allowed values."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbdyno.base.errors import PlanError
from dbdyno.study.plan import keys
from dbdyno.study.plan.durations import duration_ns
from dbdyno.study.plan.example import example_plan
from dbdyno.study.plan.file import parse_plan, read_plan
from dbdyno.study.plan.key import Key
from dbdyno.study.plan.plan import plan_from_dict

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
    assert not plan.is_open_loop


def test_values_of_settings_become_the_engines_words():
    assert parse(SMALL).arms[1].settings == {
        "work_mem": "64MB",
        "jit": "off",
        "random_page_cost": "1.1",
    }


def test_the_example_is_a_valid_plan_and_names_every_key():
    plan = parse(example_plan())
    assert len(plan.arms) == 2
    from dbdyno.study.plan import keys as plan_keys

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
    ("no toml", "title = \n", "p.toml:1", "is not valid TOML"),
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


def _limited() -> list[object]:
    tables = {**keys.TABLES, "arm": keys.ARM, "script": keys.SCRIPT}
    numbers = ("int", "float", "duration")
    return [
        pytest.param(key, id=f"{name}.{key.name}") for name, own in tables.items() for key in own if key.type in numbers
    ]


@pytest.mark.parametrize("key", _limited())
def test_every_number_of_a_plan_has_both_limits(key: Key):
    assert key.low is not None
    assert key.high is not None
    assert keys.limits(key)


def schedule(line: str, arms: int = 2) -> str:
    text = f'title = "t"\n[workload]\nscripts = [{{text = "select 1;"}}]\n[schedule]\n{line}\n'
    return text + "".join(f'[[arm]]\nname = "a{at}"\n' for at in range(arms))


@pytest.mark.parametrize("turn", ["99999999h", "10h", "61min", "0s", "1us"])
def test_a_turn_out_of_its_limits_is_refused_with_them(turn: str):
    with pytest.raises(PlanError, match="must be from 1ms to 1h") as caught:
        parse_plan(schedule(f'turn = "{turn}"'), Path("p.toml"))
    assert caught.value.where == "p.toml:5"


def test_no_settling_can_be_asked_for():
    assert parse_plan(schedule('settle = "0s"'), Path("p.toml")).schedule.settle_ns == 0


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e300"])
def test_a_threshold_that_is_no_number_is_refused(value: str):
    text = schedule("").replace("[[arm]]", f"[verdict]\nthreshold = {value}\n[[arm]]", 1)
    with pytest.raises(PlanError, match=r"verdict.threshold must be from 0.0001 to 10"):
        parse_plan(text, Path("p.toml"))


def test_more_slices_than_can_be_kept_apart_are_refused():
    with pytest.raises(PlanError, match="144,000 slices in a block; at most 100,000") as caught:
        parse_plan(schedule('turn = "1h"'), Path("p.toml"))
    assert "longer" in str(caught.value.next_step)
    assert parse_plan(schedule('turn = "1h"\nswitch = "turns"'), Path("p.toml"))


def test_more_arms_than_a_plan_may_have_are_refused():
    with pytest.raises(PlanError, match="at most 256"):
        parse_plan(schedule("", arms=257), Path("p.toml"))


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("sessions = 2", "[load] or [[arm]]"),
        ("threshold = 0.1", "[verdict]"),
        ('scripts = "x"', "[workload] or [[arm]]"),
        ('question = "why?"', "the top, before the first table"),
    ],
)
def test_a_misplaced_key_says_where_it_belongs(text: str, table: str):
    with pytest.raises(PlanError, match="is not a key of") as caught:
        parse_plan(schedule(text), Path("p.toml"))
    assert caught.value.next_step == f"move it to {table}"


def test_a_key_before_the_first_table_says_where_it_belongs():
    with pytest.raises(PlanError, match="'blocks' is not a key of the top") as caught:
        parse_plan("blocks = 3\n" + schedule(""), Path("p.toml"))
    assert caught.value.next_step == "move it to [schedule]"
