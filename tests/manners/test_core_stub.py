"""The stub of the Rust core lists exactly the names in the core."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_type_hints

import pytest

import dbdyno
from dbdyno import _core
from dbdyno.base import core_types
from dbdyno.base.errors import ModelError, PlanError

STUB = Path(dbdyno.__file__).with_name("_core.pyi")


def test_the_stub_is_current():
    tree = ast.parse(STUB.read_text())
    named = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert named == {name for name in dir(_core) if not name.startswith("_")}
    load = next(n for n in tree.body if isinstance(n, ast.ClassDef))
    methods = {n.name for n in load.body if isinstance(n, ast.FunctionDef)} - {"__init__"}
    assert methods == {name for name in dir(_core.Load) if not name.startswith("_")}


def test_what_the_core_reports_has_the_keys_of_its_types(tmp_path: Path) -> None:
    machine = _core.model_machine("sas-and-flash")
    assert _core.model_check(machine).keys() == get_type_hints(core_types.ModelMachine).keys()
    arm: core_types.ModelArm = {"name": "a", "sessions": 1, "workload": {"kind": "commit-loop"}}
    run = _core.ModelRun({"machine": machine, "seed": 1, "transactions": 2, "arms": [arm]})
    block = run.block(0, tmp_path)
    assert block.keys() == get_type_hints(core_types.ModelBlock).keys()
    assert block["report"].keys() == get_type_hints(core_types.ModelReport).keys()
    assert block["report"]["arms"][0].keys() == get_type_hints(core_types.ModelArmReport).keys()
    assert block["invariants"].keys() == get_type_hints(core_types.Invariants).keys()


def test_a_specification_of_another_shape_is_refused_by_its_key() -> None:
    with pytest.raises(PlanError, match="unknown field `arm`"):
        _core.Load({"seed": 1, "arm": []})  # type: ignore[typeddict-item,typeddict-unknown-key]
    with pytest.raises(PlanError, match="too large"):
        _core.Load({"seed": 1 << 70, "arms": []})
    with pytest.raises(ModelError, match="missing field"):
        _core.ModelRun({"seed": 1})  # type: ignore[typeddict-item]


def test_no_text_in_json_crosses() -> None:
    """What still does is the reader of traces."""
    text = STUB.read_text()
    assert "spec: str" not in text
    assert set(re.findall(r"(\w+)\([^)]*\b(?:request|options): str", text)) <= {"__init__", "profile", "profile_run"}
