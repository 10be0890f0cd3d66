"""Report on the workers of a test run."""

from __future__ import annotations

import worker_times


def test_a_worker_that_waits_for_the_last_is_seen() -> None:
    told = worker_times.lines({"gw1": [(10.0, 13.0, "a"), (13.0, 14.0, "b")], "gw0": [(10.0, 30.0, "c")]})
    assert told == [
        "gw0: 20 of 20 s in tests, done 0 s before the last; longest 20 s: c",
        "gw1: 4 of 20 s in tests, done 16 s before the last; longest 3 s: a",
    ]


def test_without_workers_nothing_is_told() -> None:
    assert worker_times.lines({}) == []
