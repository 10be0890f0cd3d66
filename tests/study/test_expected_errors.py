"""Errors that a plan expects: their names, and that they count as outcomes of the load, not as failures."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from command_line import checked, dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.study.analysis.measured.failures import Failures, differing_failures
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures
from dbdyno.study.plan.conditions import class_of, is_state, meaning, names, resolve_codes, states
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import plan_from_dict
from mock_plans import mock_plan

PLAN = """\
title = "t"
[workload]
scripts = [{name = "s", text = "select 1;"}]
expected_errors = %s
[[arm]]
name = "a"
"""


def expected(given: str) -> list[str]:
    made = parse_plan(PLAN % given, Path("p.toml"))
    assert plan_from_dict(made.to_dict()) == made
    return made.workload.expected_errors


def test_codes_and_names_are_taken_each_once():
    assert expected('["23505", "P0001", "unique_violation", "Check_Violation"]') == ["23505", "P0001", "23514"]
    assert expected('"raise_exception"') == ["P0001"]
    assert expected('["45000", "U0001"]') == ["45000", "U0001"], "one's own are as good"
    assert expected('["ER_DUP_ENTRY", "er_lock_deadlock", "1062"]') == ["1062", "1213"], "MariaDB's go by number"
    assert expected("[]") == []


def test_a_script_has_its_own_beside_those_of_the_workload():
    script = 'scripts = [{name = "s", text = "select 1;", expected_errors = ["45000", "unique_violation"]}]'
    text = PLAN.replace('scripts = [{name = "s", text = "select 1;"}]', script)
    made = parse_plan(text % '["23505"]', Path("p.toml"))
    assert plan_from_dict(made.to_dict()) == made
    assert (made.workload.expected_errors, made.workload.scripts[0].expected_errors) == (["23505"], ["45000", "23505"])
    with pytest.raises(PlanError, match="neither the SQLSTATE"):
        parse_plan(text.replace("45000", "x500") % "[]", Path("p.toml"))


def test_where_nothing_fails_nothing_can_be_expected(tmp_path: Path):
    text = PLAN.replace('scripts = [{name = "s", text = "select 1;"}]', 'kind = "commit-loop"') % '["23505"]'
    (tmp_path / "p.toml").write_text(text)
    done = dbdyno("run", "p.toml", "--target", "model:one-disk", "--dry-run", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected_errors" in done.stderr and "never returns an error" in done.stderr


def test_a_name_of_several_states_stands_for_all_of_them():
    assert resolve_codes(["string_data_right_truncation"]) == (["01004", "22001"], None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('["unique_violatoin"]', "did you mean 'unique_violation'?"),
        ('["2350"]', "write five characters such as 23505"),
        ('["p0001"]', "neither the SQLSTATE of an error nor the name of a condition"),
        ('["00000"]', "neither"),
        ('["successful_completion"]', "neither"),
        ("[23505]", "must be a string or a list of strings"),
    ],
)
def test_what_is_neither_is_told_with_its_place(given: str, message: str):
    with pytest.raises(PlanError) as caught:
        expected(given)
    assert message in str(caught.value)
    assert "p.toml:4" in str(caught.value)


def test_the_table_holds_states_and_names_of_one_form():
    assert len(names()) > 250
    assert all(is_state(state) for state in names())
    assert all(name == name.lower() and name.isidentifier() for name in states())


def test_a_state_has_a_meaning_and_a_class_where_an_engine_has_one():
    assert (meaning("23505"), class_of("23505")) == ("unique violation", "integrity constraint violation")
    assert (meaning("P0001"), class_of("P0001")) == ("raise exception", "plpgsql error")
    assert (meaning("U0001"), class_of("U0001")) == ("", "")


def measures(*transactions: int) -> Measures:
    values = [{"transactions": np.array([float(count)]), "failed": np.array([0.0])} for count in transactions]
    arms = [ArmMeasures(f"arm {at}", f"arm {at}", 1, [], [], own, number=at) for at, own in enumerate(values)]
    return Measures(arms, [])


@pytest.mark.soak
def test_arms_with_other_shares_of_an_expected_error_are_told():
    both = Failures([], [{}, {}], [{"23505": 500}, {"23505": 300, "P0001": 200}])
    (found,) = differing_failures(measures(1000, 1000), both, 0.02)
    assert "30.0 % of arm 1's transactions ended in 23505, 50.0 % of arm 0's" in found["text"]
    assert "20.0 % of arm 1's transactions ended in P0001, 0 % of arm 0's" in found["text"]


def test_alike_shares_and_few_errors_are_not_told():
    assert (
        differing_failures(measures(1000, 1000), Failures([], [{}, {}], [{"23505": 500}, {"23505": 505}]), 0.02) == []
    )
    assert differing_failures(measures(10, 10), Failures([], [{}, {}], [{"23505": 1}, {}]), 0.02) == []
    assert differing_failures(measures(10, 10), Failures([], [{}, {}], [{}, {}]), 0.02) == []


ONE_FAILS = """\
[[arm]]
name = "base"
[[arm]]
name = "refuses"
parameters = {errors = 0.5}
"""


def on_mock(folder: Path, rest: str, codes: str, *command: str) -> subprocess.CompletedProcess[str]:
    text = mock_plan(rest + '[verdict]\naccept = ["work"]\n').replace(
        'kind = "mock"', f'kind = "mock"\nexpected_errors = {codes}'
    )
    (folder / "p.toml").write_text(text)
    return dbdyno(*command, "p.toml", "--seed", "3", cwd=folder)


@pytest.mark.parametrize(("codes", "expected"), [('["serialization_failure"]', True), ('["23505"]', False)])
def test_an_expected_error_counts_in_every_number_of_its_arm(tmp_path: Path, codes: str, expected: bool):
    done = on_mock(tmp_path, ONE_FAILS, codes, "run")
    (run,) = (tmp_path / "runs").iterdir()
    model = json.loads((run / "analysis.json").read_text())
    base, refuses = model["arms"]
    assert (model["verdict"]["decision"] == "no verdict") is not expected
    assert (refuses["errors"] == 0) is expected
    assert (refuses["ops"] > 0.9 * base["ops"]) is expected
    assert ("Expected errors" in done.stdout) is expected
    (row,) = model["errors"]
    assert (row["sqlstate"], row["expected"]) == ("40001", expected)
    assert refuses.get("expected_codes", {}) == ({"40001": row["failed"]} if expected else {})
    assert [warning["code"] for warning in model["warnings"]].count("expected errors") == int(expected)


def test_a_race_does_not_drop_an_arm_for_an_expected_error(tmp_path: Path):
    quick = '{name = "2", parameters = {mean_us = 500, errors = 0.5}}'
    levels = f'[[factor]]\nname = "memory"\nlevels = [{{name = "1"}}, {quick}]\n'
    done = checked(on_mock(tmp_path, levels, '["40001"]', "tune"))
    assert "2 is best of 2" in done.stdout or "2 is ahead of 2" in done.stdout
    assert "dropped: it failed" not in done.stdout
