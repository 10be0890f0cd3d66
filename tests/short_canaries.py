"""Canaries of live runs in tests: few messages to an idle core, few wake-ups of a thread, short computations.

Before each block, canaries kept the cores busy for 190 ms, which is as long as the turns of a small run last: 100 ms to
see where woken threads run, 40 ms to compare cores, 40 ms for messages to an idle core and 10 ms for the CPU loop. No
gate withholds a verdict because of these figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from short_command import SHORT


@pytest.fixture(autouse=True, scope="session")
def short_canaries() -> Iterator[None]:
    """Shorten the canaries of runs in the test process."""
    from dbdyno.bench import canary

    with mock.patch.multiple(canary, **SHORT):
        yield
