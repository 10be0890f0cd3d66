"""Ratchets: what is small stays small, arrows keep their direction, libraries do not print."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dbdyno"
PYTHON = sorted(PACKAGE.rglob("*.py"))
RUST = sorted((ROOT / "crates").glob("*/src/**/*.rs"))

MAY_IMPORT = {
    "evidence": {"evidence"},
    "stats": {"stats"},
    "bench": {"bench", "evidence", "cells", "model"},
    "trace": {"trace", "evidence", "stats"},
    "model": {"model", "evidence", "stats"},
    "snapshot": {"snapshot", "evidence", "stats", "bench"},
    "cells": {"cells", "evidence", "stats"},
    "rig": {"rig", "cells", "model"},
    "study": {"study", "evidence", "stats", "bench", "trace", "model", "cells"},
    "report": {"report"},
}
MAY_IMPORT["cli"] = {"cli", *MAY_IMPORT}
EVERYBODY = {"errors", "_core", "decisions", "dsn", "files", "processes", "signals", "visible"}
VALUES = {"bench": {"study.plan.plan", "study.plan.schedule", "study.plan.typed"}}
"""What a room may take of one above it: values that know nothing of who runs them."""
CRATES = {
    "dyno-evidence": set(),
    "dyno-script": set(),
    "dyno-stats": set(),
    "dyno-load": {"dyno-evidence", "dyno-script"},
    "dyno-trace": {"dyno-evidence", "dyno-stats"},
    "dyno-model": {"dyno-evidence", "dyno-stats"},
    "dyno-python": {
        "dyno-evidence",
        "dyno-script",
        "dyno-stats",
        "dyno-load",
        "dyno-model",
        "dyno-trace",
    },
}


def rel(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PYTHON + RUST, ids=rel)
def test_files_stay_short(path: Path):
    assert len(path.read_text().splitlines()) <= 420, "divide it"


@pytest.mark.parametrize("path", PYTHON, ids=rel)
def test_functions_stay_short(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 70, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", PYTHON, ids=rel)
def test_every_file_says_why_it_exists(path: Path):
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(ast.parse(text))


@pytest.mark.parametrize("path", PYTHON, ids=rel)
def test_imports_follow_the_arrows(path: Path):
    room = path.relative_to(PACKAGE).parts[0]
    if room not in MAY_IMPORT:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "dbdyno":
                modules = [f"dbdyno.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "dbdyno" and len(parts) > 1:
                allowed = parts[1] in MAY_IMPORT[room] | EVERYBODY or ".".join(parts[1:]) in VALUES.get(room, ())
                assert allowed, f"{room} imports {module}"


def test_crates_follow_the_arrows():
    for crate, allowed in CRATES.items():
        manifest = (ROOT / "crates" / crate / "Cargo.toml").read_text()
        used = {
            line.split(".")[0].split(" ")[0]
            for line in manifest.split("[dependencies]")[1].split("[")[0].splitlines()
            if line.startswith("dyno-")
        }
        assert used <= allowed, f"{crate} depends on {used - allowed}"


def test_only_the_binding_crate_knows_python():
    for path in (ROOT / "crates").glob("*/Cargo.toml"):
        if path.parent.name != "dyno-python":
            assert "pyo3" not in path.read_text()


@pytest.mark.parametrize("path", PYTHON, ids=rel)
def test_libraries_do_not_print(path: Path):
    if "cli" in path.parts or path.name == "progress.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print"
