"""The stub of the Rust core names what is there, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import dbdyno
from dbdyno import _core

STUB = Path(dbdyno.__file__).with_name("_core.pyi")


def test_the_stub_is_current():
    tree = ast.parse(STUB.read_text())
    named = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    assert named == {name for name in dir(_core) if not name.startswith("_")}
    load = next(n for n in tree.body if isinstance(n, ast.ClassDef))
    methods = {n.name for n in load.body if isinstance(n, ast.FunctionDef)} - {"__init__"}
    assert methods == {name for name in dir(_core.Load) if not name.startswith("_")}
