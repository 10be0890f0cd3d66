"""Canaries of live runs in tests: the cost to start an idle core is the mean of few messages, the CPU loop is short.

Canaries before each block kept a core busy for 40 ms and 10 ms, a tenth of what a small run costs. No gate looks at the
first figure, and none withholds a verdict because of the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

MESSAGES = 5
LOOP_STEPS = 5_000


@pytest.fixture(autouse=True, scope="session")
def short_canaries() -> Iterator[None]:
    """Each canary of a run in the process of the tests wakes an idle core a few times, and counts a tenth as far."""
    from dbdyno.bench import canary

    with mock.patch.multiple(canary, MESSAGES=MESSAGES, LOOP_STEPS=LOOP_STEPS):
        yield
