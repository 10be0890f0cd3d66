"""Rates by object and sub-interval: what a comparison of periods tests."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from made_store import MadeServer

from dbdyno.judge import snapshots
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.causes.what_happened import change_point
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.reading.rates import rates

CALLS = {"calls a second": ("calls",)}


@pytest.fixture
def server(tmp_path: Path) -> MadeServer:
    return MadeServer(tmp_path / "snaps")


def test_a_value_is_a_rate_and_zero_where_nothing_was_counted(server: MadeServer):
    taken = []
    for calls in (1, 60, 0, 120):
        server.call(1, calls, 5.0)
        server.call(2, 6 * calls, 5.0 if calls else 0)
        taken.append(server.step())
    with Interval(server.store, taken[0], taken[-1]) as interval:
        found = rates(interval, "pg_stat_statements", ("queryid",), CALLS)
        assert found is not None
        assert found.seconds == [60.0, 60.0, 60.0]
        assert found.means["calls a second"] == {"1": pytest.approx(1.0), "2": pytest.approx(6.0)}
        assert found.values("calls a second", ["2", "nobody", "1"]).tolist() == [[6, 0, 12], [0, 0, 0], [1, 0, 2]]


def test_a_sub_interval_whose_counters_were_lost_gives_no_value(server: MadeServer):
    taken = []
    for at in range(5):
        if at == 2:
            server.statements.clear()
            server.statements_reset_us = 1_800_000_200_000_000
        server.call(1, 60, 5.0)
        taken.append(server.step())
    with Interval(server.store, taken[0], taken[-1]) as interval:
        found = rates(interval, "pg_stat_statements", ("queryid",), CALLS)
        assert found is not None
        assert found.values("calls a second", ["1"]).tolist() == [[1.0, 1.0, 1.0]]


def test_what_the_view_has_not_is_not_measured(server: MadeServer):
    server.call(1, 1, 1.0)
    first, last = server.step(), server.step()
    with Interval(server.store, first, last) as interval:
        assert rates(interval, "pg_stat_wal", ("queryid",), CALLS) is None
        assert rates(interval, "pg_stat_statements", ("no_column",), CALLS) is None
        assert rates(interval, "pg_stat_statements", ("queryid",), {"x": ("no_column",)}) is None


def test_hours_count_what_their_good_sub_intervals_count(server: MadeServer):
    """Whole hours come from their kept sums; the one with a reset, the first and the last from each sub-interval."""
    server.every_s, lost = 1200, 8
    dice, taken, hours = random.Random(11), [], {}
    for at in range(20):
        if at == lost:
            server.statements.clear()
            server.statements_reset_us = 1_800_000_200_000_000 + at * 1_200_000_000
        calls = dice.randrange(1, 4000)
        server.call(1, calls, 5.0)
        taken.append(server.step())
        if at > 1 and at != lost:
            hours.setdefault(taken[-1].at_ns // (3600 * 10**9), []).append(calls / 1200)
    with Interval(server.store, taken[1], taken[-1]) as interval:
        found = rates(interval, "pg_stat_statements", ("queryid",), CALLS, hourly=True)
        assert found is not None
        told = found.values("calls a second", ["1"])[0].tolist()
    assert sum(len(one) == 3 for one in hours.values()) >= 4
    assert told == pytest.approx([sum(one) / len(one) for one in hours.values()])


def test_long_periods_are_compared_by_hour(server: MadeServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshots, "LONG_S", 5 * 3600)
    server.every_s = 1800
    for at in range(25):
        server.call(1, 1800 * (2 if at % 2 else 4), 1000.0)
        server.call(2, 1800 * (1 if at < 13 else 8), 1000.0)
        server.step()
    model = compare(server.store, *(period(server.store, name) for name in ("snap:1..13", "snap:13..25")))
    found = {one["name"]: one for one in model["sections"]}
    assert found["metrics"]["about"].startswith("1..13: 6 hours, 13..25: 6.")
    shown = {(row["object"], row["measure"]): row for one in found["objects"]["tables"] for row in one["rows"]}
    eight = shown["2", "calls a second"]
    assert (eight["a"], eight["b"]) == (pytest.approx(1.0), pytest.approx(8.0))
    assert ("1", "calls a second") not in shown, "its halves of an hour take turns, its hours are alike"


def test_the_change_point_is_where_the_means_differ_most() -> None:
    """Against the sums recreated for each point, over drawn series; the seed is in the name of the draw."""
    for seed in range(30):
        dice = random.Random(seed)
        step = dice.randrange(2, 38)
        rates = [dice.lognormvariate(0, 0.3) * (1 if at < step else dice.choice((1, 4))) for at in range(40)]
        logs = [math.log(rate + 0.02 * sum(rates) / 40) for rate in rates]
        weights = [
            abs(sum(logs[at:]) / (40 - at) - sum(logs[:at]) / at) * math.sqrt(at * (40 - at)) for at in range(2, 39)
        ]
        assert weights[change_point(rates) - 2] == pytest.approx(max(weights), rel=1e-9), f"seed {seed}"
