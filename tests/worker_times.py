"""Use of each worker's time in a test run: a worker that finishes long before the others leaves a core idle.

gw0: 612 of 655 s in tests, done 2 s before the last; longest 14 s: tests/manners/test_install.py::test_…
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

Phase = tuple[float, float, str]
"""Start and end of a part of a test, and the test's name."""


class WorkerTimes:
    """Plugin that listens in the process that distributes the tests."""

    def __init__(self) -> None:
        self._phases: dict[str, list[Phase]] = defaultdict(list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a part of a test: its setup, its call or its teardown."""
        node: Any = getattr(report, "node", None)
        if node is not None:
            self._phases[node.gateway.id].append((report.start, report.stop, report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line for each worker."""
        for line in lines(self._phases):
            terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin only in the distributing process, because workers do not know each other."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(WorkerTimes())


def lines(phases: Mapping[str, Sequence[Phase]]) -> list[str]:
    """Return the report on the workers, in their order."""
    begun = min((begin for own in phases.values() for begin, _, _ in own), default=0.0)
    ended = max((end for own in phases.values() for _, end, _ in own), default=0.0)
    found = []
    for worker, own in sorted(phases.items()):
        busy = sum(end - begin for begin, end, _ in own)
        done = max(end for _, end, _ in own)
        begin, end, name = max(own, key=lambda phase: phase[1] - phase[0])
        found.append(
            f"{worker}: {busy:.0f} of {ended - begun:.0f} s in tests, done {ended - done:.0f} s before the last; "
            f"longest {end - begin:.0f} s: {name}"
        )
    return found
