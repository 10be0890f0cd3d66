"""Examples in docstrings give the results that they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "python"
WITH_EXAMPLES = sorted(path for path in (ROOT / "dbdyno").rglob("*.py") if ">>> " in path.read_text())
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_of(path: Path) -> str:
    """Return the dotted name of a module's file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_of)
def test_examples_of_a_module_hold(path: Path) -> None:
    tried = doctest.testmod(importlib.import_module(module_of(path)), optionflags=FLAGS)
    assert tried.failed == 0


def test_there_are_examples() -> None:
    assert len(WITH_EXAMPLES) > 20
