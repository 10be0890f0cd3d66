"""The source of the package as its tests look at it: each file is read and parsed once in a process."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dbdyno"
RIG = ROOT / "packages" / "dbdyno-rig" / "dbdyno_rig"
PYTHON = sorted([*PACKAGE.rglob("*.py"), *RIG.rglob("*.py")])


@cache
def text(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text()


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a module's source, the module first."""
    return tuple(ast.walk(ast.parse(source)))


def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file of the package, the module first."""
    _parse_all()
    return nodes(text(path))


@cache
def _parse_all() -> None:
    """Parse the package. Collections of garbage are left out: of a million nodes they take longer than parsing."""
    gc.disable()
    for path in PYTHON:
        nodes(text(path))
    gc.freeze()
    gc.enable()
