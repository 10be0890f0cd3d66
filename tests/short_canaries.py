"""Canaries of live runs in tests: the mean of the cost to start an idle core is of few messages.

A canary before each block kept a core busy for 40 ms, a tenth of what a small run costs. No gate looks at this figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

MESSAGES = 5


@pytest.fixture(autouse=True, scope="session")
def short_canaries() -> Iterator[None]:
    """Each canary of a run in the process of the tests wakes an idle core a few times."""
    from dbdyno.bench import canary

    with mock.patch.object(canary, "MESSAGES", MESSAGES):
        yield
