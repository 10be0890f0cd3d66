"""Only the bench room checks which kind of bench there is: not the study, not the command line, not evidence.

`Traits` and `Reads` define how kinds differ, and the table in `bench/kinds.py` what `--target` means. Only
`evidence/upgrade.py` distinguishes manifests of earlier versions.
"""

from __future__ import annotations

import ast
from pathlib import Path

from dbdyno.bench.kinds import ENGINE, KINDS

PACKAGE = Path(__file__).parents[2] / "python" / "dbdyno"
READERS = [PACKAGE / "evidence" / "upgrade.py"]
ROOMS = ("study", "evidence")
COMMANDS = [
    PACKAGE / "cli" / name
    for name in ("run.py", "plan.py", "report.py", "probe/redo.py", "runs/__init__.py", "client/check.py")
]
SIGNS = {"iorm", "machine", "machines"}
"""Manifest keys by which a kind was once recognised."""
RECORDINGS = "cells"
"""Also the kind of a recording of cells, which is not a run on a bench."""


def sources() -> list[Path]:
    return [p for room in ROOMS for p in sorted((PACKAGE / room).rglob("*.py")) if p not in READERS] + COMMANDS


def decides_on_a_kind(node: ast.AST) -> bool:
    """Return True if an expression compares something with a kind's name, the start of its targets, or a sign."""
    words = {*KINDS, ENGINE.name, *(kind.begins for kind in KINDS.values()), *SIGNS} - {RECORDINGS}
    inside = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    if isinstance(node, ast.Compare):
        return any(word in words for word in inside)
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith"
    return called and any(word in words for word in inside)


def test_nothing_but_the_bench_room_decides_on_a_kind_of_bench():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {ast.unparse(node)}"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Call) and decides_on_a_kind(node)
    ]
    assert not found, "\n".join(found)


def test_the_rule_sees_what_it_is_for():
    for text in ('target == "host"', '"iorm" in run.manifest', 'switch != "model"', 'dsn.startswith("model:")'):
        assert decides_on_a_kind(ast.parse(text, mode="eval").body), text


def test_each_kind_has_a_folder_of_its_own():
    folders = {path.parent.name for path in (PACKAGE / "bench").glob("*/bench.py")}
    assert folders == {*KINDS, ENGINE.name}
