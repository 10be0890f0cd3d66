"""Whether the kernel lets this user time a server's waits."""

from __future__ import annotations

import pytest

from dbdyno import _core
from dbdyno.base.errors import TraceError


def require_probes() -> None:
    """Skip the test if no probe may be set."""
    try:
        _core.trap_cost_ns()
    except TraceError as error:
        pytest.skip(f"{error.message.splitlines()[0]}; `dbdyno doctor` says what would allow it")


def require_watchpoints() -> None:
    """Skip the test if no watchpoint may be set."""
    try:
        _core.watch_cost_ns()
    except TraceError as error:
        pytest.skip(f"{error.message.splitlines()[0]}; `dbdyno doctor` says what would allow it")
