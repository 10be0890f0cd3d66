"""Canaries of live runs in tests: each takes a tenth of its usual time.

Canaries before each block kept a core busy for 40 ms (wake-ups of an idle core), 10 ms (CPU loop), 100 ms (choice of
processor) and 40 ms (busy hyperthread): a quarter of what a small run costs. The CPU loop makes warnings only, and no
gate looks at the others; what they say of the processors is tested with their usual length in the Rust tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

MESSAGES = 5
LOOP_STEPS = 5_000
STEPS = 20_000
WAKE_UPS = 4


@pytest.fixture(autouse=True, scope="session")
def short_canaries() -> Iterator[None]:
    """Shorten the canaries of runs in the test process."""
    from dbdyno.bench import canary

    short = {"MESSAGES": MESSAGES, "LOOP_STEPS": LOOP_STEPS, "STEPS": STEPS, "WAKE_UPS": WAKE_UPS}
    with mock.patch.multiple(canary, **short):
        yield
