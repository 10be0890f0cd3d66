"""Waits of one event: exact quantiles, buckets that lose nothing, and the longest waits with their places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trace_evidence import Evidence

from dbdyno.base.errors import TraceError
from dbdyno.trace.conditions import restrict
from dbdyno.trace.source import Traces, open_traces
from dbdyno.trace.waits import Request, nice_interval, waits_page


def sync(traces: Traces, **more) -> dict:
    return waits_page(traces, Request(events=("log file sync",), **more))


def values(traces: Traces) -> np.ndarray:
    rows = traces.rows("select elapsed_ns from waits where event = 'log file sync'")
    return np.array([row["elapsed_ns"] for row in rows])


def test_summary_and_quantiles_are_those_of_the_values(traces: Traces):
    model, given = sync(traces), values(traces)
    assert model["summary"]["count"] == given.size == 40
    assert model["summary"]["total_ns"] == given.sum()
    assert model["summary"]["mean_ns"] == pytest.approx(given.mean())
    assert model["quantiles"][0]["value_ns"] == pytest.approx(np.quantile(given, 0.5))
    assert model["quantiles"][0]["low_ns"] <= model["quantiles"][0]["value_ns"]


def test_a_quantile_beyond_the_data_is_not_made_up(traces: Traces):
    far = sync(traces)["quantiles"][-1]
    assert (far["q"], far["value_ns"], far["needs"]) == (0.9999, None, 100_000)


def test_the_page_says_that_waits_depend_on_each_other(traces: Traces):
    assert "depend on each other" in sync(traces)["note"]


def test_every_wait_is_in_one_bucket(traces: Traces):
    histogram = sync(traces)["histogram"]
    assert sum(histogram["count"]) == 40
    assert sum(histogram["total_ns"]) == values(traces).sum()


def test_waits_of_no_time_and_of_an_hour_have_a_bucket(tmp_path: Path):
    made = Evidence()
    for length in (0, 1, 1_000, 3_600_000_000):
        made.wait("x", "other", end_us=4_000_000_000, elapsed_us=length)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        model = waits_page(opened, Request(events=("x",)))
    histogram = model["histogram"]
    assert sum(histogram["count"]) == 4
    at = [i for i, low in enumerate(histogram["low_ns"]) if abs(low - 1e6) < 1]
    assert histogram["count"][at[0]] == 1, "a wait of exactly 1 ms begins the bucket of 1 ms"


def test_the_longest_come_first_with_file_and_line(traces: Traces):
    longest = sync(traces, longest=5)["longest"]
    assert [row["elapsed_ns"] for row in longest] == sorted(values(traces))[::-1][:5]
    assert longest[0]["file"] == "orcl_ora_4000.trc"
    assert longest[0]["line"] > 20


def test_the_series_loses_no_wait(traces: Traces):
    series = sync(traces, every_ns=10_000_000)["series"]
    assert sum(row["count"] for row in series["rows"]) == 40
    assert all(row["at_ns"] % 10_000_000 == 0 for row in series["rows"])


def test_without_an_event_all_events_are_listed(traces: Traces):
    model = waits_page(traces, Request())
    assert model["page"] == "events"
    assert model["events"][0]["event"] == "SQL*Net message from client"
    assert sum(row["share"] for row in model["events"]) == pytest.approx(1)


def test_a_star_stands_for_anything_and_nothing_else_is_special(traces: Traces):
    assert waits_page(traces, Request(events=("log*",)))["summary"]["count"] == 40
    with pytest.raises(TraceError):
        waits_page(traces, Request(events=("log file syn?",)))


def test_an_event_that_is_not_there_names_those_that_are(traces: Traces):
    with pytest.raises(TraceError, match="no wait for 'log file snyc'") as caught:
        waits_page(traces, Request(events=("log file snyc",)))
    assert "'log file sync'" in str(caught.value)


def test_a_condition_that_fits_no_wait_is_not_taken_for_a_trace_without_waits(traces: Traces):
    restrict(traces, where="elapsed_us > 1000000000")
    with pytest.raises(TraceError, match="no wait matches the condition"):
        waits_page(traces, Request())


@pytest.mark.parametrize(
    ("span_ns", "every_ns"),
    [(0, 1_000), (60_000, 1_000), (61_000, 2_000), (6e9, 100_000_000), (3_600e9, 60_000_000_000)],
)
def test_intervals_are_round(span_ns: float, every_ns: int):
    assert nice_interval(int(span_ns)) == every_ns
