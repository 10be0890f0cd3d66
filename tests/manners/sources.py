"""Source of the package for the tests that inspect it: each file is read and parsed once per process."""

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
    """Parse the package with garbage collection off, which would take longer than parsing a million nodes."""
    gc.disable()
    for path in PYTHON:
        nodes(text(path))
    gc.freeze()
    gc.enable()
