"""Repetitions of expensive tests that run in the soak only.

@pytest.mark.parametrize("form", first("json", "xml", "yaml"))     # xml and yaml: `make soak`
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(*values: Any, count: int = 1) -> list[Any]:
    """Return the first values of a parameter unchanged, and mark the others, which run the same code, for the soak."""
    return [*values[:count], *(_marked(value) for value in values[count:])]


def but(values: Iterable[str], *repeats: str) -> list[Any]:
    """Return the names, with the repetitions among them marked for the soak."""
    names = list(values)
    assert set(repeats) <= set(names), "a repeat that is no value"
    return [_marked(name) if name in repeats else name for name in names]


def _marked(value: Any) -> Any:
    words = value if isinstance(value, tuple) else (value,)
    return pytest.param(*words, marks=pytest.mark.soak)
