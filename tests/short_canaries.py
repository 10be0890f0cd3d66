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
    """Shorten the canaries of runs in the test process: few wake-ups of an idle core, a tenth of the loop steps."""
    from dbdyno.bench import canary

    with mock.patch.multiple(canary, MESSAGES=MESSAGES, LOOP_STEPS=LOOP_STEPS):
        yield
