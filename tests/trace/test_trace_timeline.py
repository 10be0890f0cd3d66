"""The timeline: every interval is accounted for, and waits are split at the interval borders."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_evidence import START_NS, Evidence, order_entry

from dbdyno.base.errors import TraceError
from dbdyno.trace.source import Traces, open_traces
from dbdyno.trace.timeline import timeline_page


def test_the_classes_of_an_interval_add_up_to_it(traces: Traces):
    for session in timeline_page(traces)["sessions"]:
        for entry in session["bins"]:
            assert sum(entry["classes"].values()) == pytest.approx(entry["width_ns"])
        assert sum(e["width_ns"] for e in session["bins"]) == session["elapsed_ns"]


def test_the_classes_of_all_intervals_are_those_of_the_waits(traces: Traces):
    model = timeline_page(traces, every_ns=3_000_000)
    found = {row["class"]: row["time_ns"] for row in model["classes"]}
    given = traces.rows("select class, sum(elapsed_ns)::double as ns from waits group by class")
    assert {r["class"]: pytest.approx(r["ns"]) for r in given}.items() <= found.items()


def test_a_long_wait_is_divided_among_the_intervals_it_spans(tmp_path: Path):
    made = Evidence()
    made.wait("log file sync", "commit", end_us=2_500_000, elapsed_us=2_250_000)
    made.wait("latch free", "latch", end_us=3_000_000, elapsed_us=500_000)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        (session,) = timeline_page(opened, every_ns=1_000_000_000)["sessions"]
    assert START_NS % 1_000_000_000 == 0
    commits = [entry["classes"].get("commit") for entry in session["bins"]]
    assert commits == [750_000_000, 1_000_000_000, 500_000_000]


def test_thinking_is_idle(tmp_path: Path):
    made = Evidence()
    made.wait("SQL*Net message from client", "network", end_us=5_000_000, elapsed_us=5_000_000, think=True)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        model = timeline_page(opened)
    assert [row["class"] for row in model["classes"] if row["time_ns"]] == ["idle"]


def test_a_session_is_found_by_name_or_number(tmp_path: Path):
    with open_traces([str(order_entry(sessions=3).write(tmp_path / "run"))]) as opened:
        assert len(timeline_page(opened)["sessions"]) == 3
        for name in ("2.1", "2"):
            (session,) = timeline_page(opened, session=name)["sessions"]
            assert session["session"] == 2
        with pytest.raises(TraceError, match=r"no session '9\.9'"):
            timeline_page(opened, session="9.9")


def test_intervals_too_short_to_be_shown_are_refused(traces: Traces):
    with pytest.raises(TraceError, match="longer --every"):
        timeline_page(traces, every_ns=1_000)
