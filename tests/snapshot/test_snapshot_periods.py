"""Two periods: a real difference is found, none is invented, and changed settings are reported."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dbdyno.base.errors import SnapshotError
from dbdyno.judge.metric_tests import compare_metrics, decision
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.periods import baselines, delete_baseline, period, save_baseline
from dbdyno.snapshot.store.folder import Store

KEY = Column("datid", "key", "count", "BIGINT")
COUNTERS = (
    "xact_commit",
    "xact_rollback",
    "blks_hit",
    "blks_read",
    "tup_returned",
    "tup_fetched",
    "tup_inserted",
    "tup_updated",
    "tup_deleted",
    "temp_bytes",
    "deadlocks",
)


class Made:
    """Synthetic store whose snapshots have counters that grow at given rates."""

    def __init__(self, folder: Path, seed: int) -> None:
        print("seed", seed)
        self.store = Store(folder)
        self.dice = random.Random(seed)
        self.at_s = 1_800_000_000
        self.target = "db:1"
        self.sums = dict.fromkeys(COUNTERS, 10)

    def grow(self, rate: float, count: int, *, work_mem: str = "4MB") -> str:
        """`count` sub-intervals of a minute at about this rate; returns the period's name."""
        first = self._take(work_mem)
        for _ in range(count):
            self.at_s += 60
            for name in COUNTERS:
                quiet = name in ("deadlocks", "temp_bytes")
                grown = rate * 60 * self.dice.lognormvariate(0, 0.1)
                self.sums[name] += 0 if quiet else round(grown)
            last = self._take(work_mem)
        return f"snap:{first}..{last}"

    def _take(self, work_mem: str) -> int:
        columns = (
            KEY,
            Column("datname", "text", "text", "VARCHAR"),
            Column("stats_reset", "gauge", "us", "BIGINT"),
            *(Column(name, "counter", "count", "BIGINT") for name in COUNTERS),
        )
        setting = (Column("name", "key", "text", "VARCHAR"), Column("setting", "text", "text", "VARCHAR"))
        views = [
            View(
                "pg_stat_database",
                "database",
                columns,
                [(5, "app", None, *self.sums.values())],
                "datid",
            ),
            View("pg_settings", "now", setting, [("work_mem", work_mem)]),
        ]
        self.at_s += 1
        return self.store.add(
            views,
            engine="postgres",
            target=self.target,
            at_ns=self.at_s * 1_000_000_000,
            facts={"version": "16.1", "databases": ["app"]},
        ).number


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "snaps", 20261121)


def metrics(model) -> dict:
    return next(one for one in model["sections"] if one["name"] == "metrics")


def decisions(model) -> dict[str, str]:
    return {row["name"]: row["decision"] for row in metrics(model)["tables"][0]["rows"]}


def judged(made: Made, a: str, b: str, **more):
    return compare(made.store, period(made.store, a), period(made.store, b), **more)


def test_a_halved_rate_is_found_and_is_no_verdict_but_offered_load(made: Made):
    model = judged(made, made.grow(100, 20), made.grow(50, 20))
    assert decisions(model)["tps"] == decisions(model)["rows"] == "less"
    (row,) = [r for r in metrics(model)["tables"][0]["rows"] if r["name"] == "tps"]
    assert row["low"] < 0.5 < row["high"]
    assert row["ratio"] == pytest.approx(0.5, rel=0.1)
    assert row["chance"] == 0
    assert row["a_low"] < row["a"] < row["a_high"]
    assert model["verdict"]["word"] == "cannot tell"
    assert "pg_stat_statements was not read" in model["verdict"]["title"]
    assert "Create the extension" in model["verdict"]["next"]


def test_throughput_of_a_closed_loop_is_an_answer_of_the_server(made: Made):
    full, half = made.grow(100, 20), made.grow(50, 20)
    assert judged(made, full, half, closed_loop=True)["verdict"]["word"] == "worse"
    assert judged(made, half, full, closed_loop=True)["verdict"]["word"] != "worse"


def test_equal_periods_are_not_called_different(made: Made):
    found = decisions(judged(made, made.grow(100, 20), made.grow(100, 20)))
    assert set(found.values()) <= {"cannot tell", "same", "none in either", "not measured"}
    assert found["deadlocks"] == "none in either"


@pytest.mark.soak
def test_what_is_usually_0_in_both_is_neither_better_nor_worse(made: Made):
    """The first minutes read blocks into an empty cache: "blocks read better", from a median of 0 to one of 0."""
    a, b = made.grow(100, 20), made.grow(100, 20)
    metric = Metric("reads", "blocks read", "count", False)
    before = [*(5.0 + at for at in range(9)), *(0.0 for _ in range(11))]
    (row,) = compare_metrics([(metric, before, [0.0] * 20)])
    assert (row["a"], row["b"]) == (0, 0)
    assert row["p"] < 0.01
    assert decision(row, row["p"], 0.02) == "cannot tell"
    assert decisions(judged(made, a, b))["deadlocks"] == "none in either"


def test_other_settings_are_a_candidate_cause_and_no_reason_to_refuse(made: Made):
    """ "not comparable: settings, versions or databases differ" was the answer to somebody who changed one setting."""
    model = judged(made, made.grow(100, 12), made.grow(200, 12, work_mem="8MB"))
    assert model["verdict"]["word"] != "not comparable"
    assert decisions(model)["tps"] == "more"
    (row,) = model["sections"][-1]["tables"][0]["rows"]
    assert (row["what"], row["first"], row["second"]) == ("work_mem", "4MB", "8MB")


def test_two_servers_are_not_comparable_and_it_is_said_what_may_be_read(made: Made):
    here = made.grow(100, 12)
    made.target = "db:2"
    there = made.grow(200, 12)
    model = judged(made, here, there)
    assert model["verdict"]["title"] == "Not comparable: db:1 and db:2 are two servers"
    assert "Metrics of both are shown" in model["verdict"]["sentences"][0]
    assert decisions(model)["tps"] == "not comparable"
    assert decisions(judged(made, here, there, decide=True))["tps"] == "more"


def test_few_sub_intervals_are_told_and_decide_nothing(made: Made):
    model = judged(made, made.grow(100, 2), made.grow(300, 2))
    assert decisions(model)["tps"] == "cannot tell"
    assert "too few" in model["warnings"][0]["text"]


def test_a_reset_inside_a_period_is_a_missing_value_not_a_zero(made: Made):
    a = made.grow(100, 8)
    first = made._take("4MB")
    for n in range(8):
        made.at_s += 60
        for name in COUNTERS:
            made.sums[name] = 5 if n == 3 else made.sums[name] + 6000
        last = made._take("4MB")
    model = judged(made, a, f"snap:{first}..{last}")
    assert "7" in metrics(model)["about"]
    (row,) = [r for r in metrics(model)["tables"][0]["rows"] if r["name"] == "tps"]
    assert row["b"] == pytest.approx(6000 / 61)


def test_a_baseline_is_a_period_with_a_name(made: Made):
    kept = save_baseline(made.store, "monday", period(made.store, made.grow(100, 6)))
    assert kept["snapshots"] == 7
    assert [one["name"] for one in baselines(made.store)] == ["monday"]
    assert len(period(made.store, "snap:monday").chain) == 7
    delete_baseline(made.store, "monday")
    with pytest.raises(SnapshotError, match="is not a period"):
        period(made.store, "snap:monday")
    with pytest.raises(SnapshotError, match="is not a valid name of a baseline"):
        save_baseline(made.store, "../x", period(made.store, "1..3"))
    with pytest.raises(SnapshotError, match="no baseline"):
        delete_baseline(made.store, "other")
