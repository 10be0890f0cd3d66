"""The schema of plans accepts what the reader accepts, and rejects a misspelt key, a wrong type or a wrong value."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan import keys
from dbdyno.study.plan.example import example_plan
from dbdyno.study.plan.schema import plan_schema

ROOT = Path(__file__).parents[2]
PLANS = sorted(ROOT.glob("examples/**/*.toml"))
ARMS = '\n[[arm]]\nname = "a"\n[[arm]]\nname = "b"\n'


def valid(plan: JsonObject) -> bool:
    return jsonschema.Draft202012Validator(plan_schema()).is_valid(plan)


def test_the_schema_itself_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    assert json.loads(dbdyno("plan", "schema").stdout) == plan_schema()


def test_the_example_plan_and_every_example_fit() -> None:
    assert valid(tomllib.loads(example_plan()))
    assert PLANS
    for path in PLANS:
        plan = tomllib.loads(path.read_text())
        if "arm" in plan or "factor" in plan:
            jsonschema.Draft202012Validator(plan_schema()).validate(plan)


@pytest.mark.parametrize(
    "wrong",
    [
        "titel = 'x'",
        "title = 5",
        "title = 'x'\n[load]\nsessions = 'many'",
        "title = 'x'\n[load]\nsessions = 0",
        "title = 'x'\n[schedule]\nslice = '5 parsecs'",
        "title = 'x'\n[workload]\nscripts = [{fille = 'a.sql'}]",
        "question = 'no title'",
    ],
)
def test_what_the_reader_refuses_does_not_fit(wrong: str) -> None:
    assert not valid(tomllib.loads(wrong + ARMS))


def test_every_key_of_the_reader_is_in_the_schema() -> None:
    properties = plan_schema()["properties"]
    for name, own in keys.TABLES.items():
        table = properties[name] if name != "target" else properties[name]["anyOf"][1]
        assert set(table["properties"]) == {key.name for key in own}
    assert set(properties["arm"]["items"]["properties"]) == {key.name for key in keys.ARM}
