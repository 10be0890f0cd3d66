"""Ratchets: small things stay small, imports keep their direction, libraries do not print."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import arrows
import pytest
from sources import PACKAGE, PYTHON, RIG, ROOT, nodes_of, text

pytestmark = pytest.mark.sources
RUST = sorted((ROOT / "crates").glob("*/src/**/*.rs"))

MAY_IMPORT = {room: {room, *allowed} for room, allowed in arrows.MAY_IMPORT.items()}
MAY_IMPORT["cli"] = {"cli", *MAY_IMPORT}
MAY_IMPORT["rig"] = {"cells", "model"}
EVERYBODY = arrows.EVERYBODY
CRATES = {
    "dyno-cpu": set(),
    "dyno-evidence": {"dyno-cpu"},
    "dyno-ring": set(),
    "dyno-script": set(),
    "dyno-stats": set(),
    "dyno-load": {"dyno-evidence", "dyno-script"},
    "dyno-move": {"dyno-load"},
    "dyno-proxy": {"dyno-evidence", "dyno-load"},
    "dyno-record": {"dyno-evidence"},
    "dyno-trace": {"dyno-cpu", "dyno-evidence", "dyno-stats"},
    "dyno-entry": {"dyno-evidence", "dyno-trace"},
    "dyno-model": {"dyno-evidence", "dyno-stats"},
    "dyno-device": {"dyno-model", "dyno-ring", "dyno-stats"},
    "dyno-python": {
        "dyno-device",
        "dyno-evidence",
        "dyno-script",
        "dyno-stats",
        "dyno-load",
        "dyno-model",
        "dyno-move",
        "dyno-proxy",
        "dyno-record",
        "dyno-trace",
    },
}


def rel(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module(path: Path) -> ast.Module:
    found = nodes_of(path)[0]
    assert isinstance(found, ast.Module)
    return found


def modules(path: Path) -> Iterator[str]:
    """The modules that a file imports."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "dbdyno":
            yield from (f"dbdyno.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def documented(node: ast.AST) -> int:
    """Return the number of lines of a docstring, because explanations do not count as code."""
    body = getattr(node, "body", None) or [None]
    first = body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return 0
    return (first.end_lineno or 0) - first.lineno + 1


def test_files_stay_short():
    lengths = {rel(path): len(text(path).splitlines()) for path in PYTHON + RUST}
    for path in PYTHON:
        lengths[rel(path)] -= sum(
            documented(node)
            for node in nodes_of(path)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )
    assert {name: length for name, length in lengths.items() if length > 420} == {}, "divide them"


def test_functions_stay_short():
    lengths = {
        f"{rel(path)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1 - documented(node)
        for path in PYTHON
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > 70} == {}, "divide them"


def test_every_file_says_why_it_exists():
    silent = [rel(path) for path in PYTHON if text(path).strip() and not ast.get_docstring(module(path))]
    assert silent == []


def test_imports_follow_the_arrows():
    against = []
    for path in PYTHON:
        room = "rig" if path.is_relative_to(RIG) else path.relative_to(PACKAGE).parts[0]
        if room not in MAY_IMPORT:
            continue
        for module in modules(path):
            parts = module.split(".")
            if parts[0] != "dbdyno" or len(parts) < 2 or parts[1] in MAY_IMPORT[room] | EVERYBODY:
                continue
            if ".".join(parts[1:]) not in arrows.VALUES.get(room, ()):
                against.append(f"{rel(path)} imports {module}")
    assert against == []


def test_the_map_of_rooms_is_made_of_the_table_and_of_the_heads_of_rooms():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert page == arrows.written(page), "python tests/manners/arrows.py writes it"
    lines = page.splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 120] == []


def test_crates_follow_the_arrows():
    for crate, allowed in CRATES.items():
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        tables = [manifest, *manifest.get("target", {}).values()]
        used = {name for table in tables for name in table.get("dependencies", {}) if name.startswith("dyno-")}
        assert used <= allowed, f"{crate} depends on {used - allowed}"


def test_unsafe_is_forbidden_but_in_three_crates():
    """The recorder, memory shared with the kernel, and what is compiled twice or compares many bytes at once."""
    manifests = {path.parent.name: path.read_text() for path in (ROOT / "crates").glob("*/Cargo.toml")}
    free = {crate for crate, manifest in manifests.items() if "[lints]\nworkspace = true" not in manifest}
    assert free == {"dyno-cpu", "dyno-record", "dyno-ring"}
    assert 'unsafe_code = "deny"' in manifests["dyno-cpu"]
    source = (ROOT / "crates" / "dyno-cpu" / "src" / "lib.rs").read_text()
    assert source.count("unsafe {") == source.count("// SAFETY: ") == 2, "two places, each with its reason beside it"


def test_only_the_binding_crate_knows_python():
    for path in (ROOT / "crates").glob("*/Cargo.toml"):
        if path.parent.name != "dyno-python":
            assert "pyo3" not in path.read_text()


def test_libraries_do_not_print():
    printing = [
        f"{rel(path)}:{node.lineno}"
        for path in PYTHON
        if "cli" not in path.parts and path.name not in ("progress.py", "command.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_the_formatter_has_the_last_word():
    folders = (PACKAGE, RIG, ROOT / "tests", ROOT / "benches")
    mark = "# fmt: " + "skip"
    skipped = [rel(path) for folder in folders for path in sorted(folder.rglob("*.py")) if mark in text(path)]
    assert not skipped, skipped


def test_mappings_of_anything_stay_rare():
    """A dataclass, a TypedDict, `Mapping`, or one of the names of base/json_types.py says what it is."""
    uses = sum(text(path).count("dict[str, Any]") for path in PYTHON)
    assert uses <= 25, f"{uses} times dict[str, Any]"
