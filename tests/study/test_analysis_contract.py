"""analysis.json has the fields and types that are declared, and pages are built from these types."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
import report_model_runs
import report_models

from dbdyno.study.analysis.contract import declarations as contract
from dbdyno.study.analysis.contract import rows

MODELS = {
    "experiment": report_models.experiment,
    "aa": report_models.aa,
    "curve": report_models.curve,
    "correlation": report_models.correlation,
    "traces": report_models.traces,
    "sweep": report_model_runs.sweep,
    "flash log": report_model_runs.flash_log,
    "aborted": report_models.aborted,
}


def test_the_page_is_made_of_the_types():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "analysis.md").read_text()
    assert contract.table() in page, "python -m dbdyno.study.analysis.contract prints it"


@pytest.mark.parametrize("name", MODELS)
def test_no_key_is_undeclared(name: str):
    assert list(contract.undeclared_keys(MODELS[name]())) == []


def test_an_undeclared_key_is_named_with_its_place():
    assert list(contract.undeclared_keys({"run": {"colour": 1}, "arms": [{"x": 1}]})) == ["run.colour", "arms.x"]


def test_an_older_file_is_read_and_what_a_newer_one_added_is_left_out():
    older = {"schema": 1, "kind": "aa", "run": {"id": "a"}, "arms": [{"index": 0, "from_the_future": 1}]}
    found = contract.read(json.loads(json.dumps(older)))
    assert found.run is not None and found.run.id == "a" and found.run.seed is None
    assert found.arms is not None and found.arms[0].index == 0
    assert found.verdict is None


WRITTEN = {
    contract.Analysis: rows.Model,
    contract.RunFacts: rows.RunRow,
    contract.Verdict: rows.VerdictRow,
    contract.WithheldArm: rows.WithheldRow,
    contract.Arm: rows.ArmRow,
    contract.Metric: rows.MetricRow,
    contract.ClassicalTest: rows.TestRow,
    contract.Database: rows.DatabaseRow,
    contract.Device: rows.DeviceRow,
    contract.Gate: rows.GateRow,
    contract.Caution: rows.Caution,
    contract.Method: rows.MethodRow,
}


@pytest.mark.parametrize("declared", WRITTEN, ids=lambda declared: declared.__name__)
def test_what_is_written_has_the_keys_that_are_declared(declared: type):
    assert set(get_type_hints(WRITTEN[declared])) == {one.name for one in fields(declared)}
