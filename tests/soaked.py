"""Repeats of a dear test that are for the soak.

@pytest.mark.parametrize("form", first("json", "xml", "yaml"))     # xml and yaml: `make soak`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(*values: Any, count: int = 1) -> list[Any]:
    """The first of the values of a parameter as they are, the others marked: their code is that of the first."""
    return [*values[:count], *(_marked(value) for value in values[count:])]


def but(values: Iterable[str], *repeats: str) -> list[Any]:
    """The names as they are, the repeats among them marked."""
    names = list(values)
    assert set(repeats) <= set(names), "a repeat that is no value"
    return [_marked(name) if name in repeats else name for name in names]


def _marked(value: Any) -> Any:
    words = value if isinstance(value, tuple) else (value,)
    return pytest.param(*words, marks=pytest.mark.soak)
