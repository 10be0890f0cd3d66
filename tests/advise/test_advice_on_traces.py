"""Advice on Oracle traces: commits for each row, parses for each execution, small fetches, sorts on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno, succeeded
from dbdyno.advise.facts import Facts
from dbdyno.advise.judge import choose_rules, judge
from dbdyno.advise.traces import Traced, TracedEvent, TracedStatement

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders.trc"


def test_a_trace_that_commits_each_row_is_told_with_what_it_waited(tmp_path: Path) -> None:
    done = succeeded("advise", EXAMPLE, "--format", "json", cwd=tmp_path)
    model = json.loads(done.stdout)
    found = {one["rule"]: one for one in model["findings"]}
    figures = {one["what"]: one["value"] for one in found["commit_each_row"]["evidence"]}
    profile = json.loads(dbdyno("trace", "profile", EXAMPLE, "--format", "json", cwd=tmp_path).stdout)
    waited = next(row for row in profile["profile"]["rows"] if row["name"] == "log file sync")
    assert figures["log file sync"] == waited["total_ns"], "the same as the profile says"
    assert figures["commits"] == figures["changed rows"] == 30
    rules = {"commit_each_row", "parse_each_execution", "fetch_size", "sorts_on_disk"}
    assert found.keys() | set(model["clean"]) == rules
    assert dbdyno("advise", EXAMPLE, "--fail-on", "warning", cwd=tmp_path).returncode == 1


def statement(**more: int) -> TracedStatement:
    known = {"parses": 1, "hard_parses": 1, "executions": 100, "fetches": 100, "rows": 100}
    times = {"ns": 10**9, "parse_ns": 10**6, "fetch_ns": 10**8, "round_trip_ns": 4 * 10**8, "spill_ns": 0}
    return TracedStatement("5", "select note from orders where id = :1", **{**known, **times, **more})


def fired(one: TracedStatement, *events: TracedEvent, **more: Any) -> dict[str, Any]:
    whole = Traced(**{"response_ns": 2 * 10**9, "commits": 1, "changed_rows": 50, "executions": 100, **more})
    rows: dict[type, Any] = {Traced: [whole], TracedEvent: list(events), TracedStatement: [one]}
    found = judge(Facts("a.trc", "trace", rows), choose_rules())["findings"]
    return {each["rule"]: each for each in found}


def test_a_sound_trace_has_no_advice():
    assert fired(statement()) == {}


def test_a_parse_for_each_execution_saves_its_calls_and_round_trips():
    found = fired(statement(parses=100, parse_ns=10**8))["parse_each_execution"]
    assert found["stake"] == pytest.approx((1e8 + 4e8 / 3) / 2e9)


def test_small_fetches_save_the_round_trips_of_larger_ones():
    found = fired(statement(executions=1, fetches=500, rows=5000))["fetch_size"]
    trips, calls = 4e8 * (500 / 502), 1e8
    assert found["stake"] == pytest.approx((1 - 50 / 500) * (trips + calls) / 2e9), "and visits of blocks, at most"
    assert "17.9 % of the response time for saved round trips" in found["expected"]
    assert "10 rows at a time; an execution returns 5,000" in found["sentence"]
    assert "fetch_size" not in fired(statement(executions=1, fetches=50, rows=5000)), "a hundred at a time"
    assert "fetch_size" not in fired(statement(executions=500, fetches=500, rows=500)), "one row each is a look-up"


def test_sorts_on_disk_and_commits_need_their_time():
    spill = TracedEvent("direct path read temp", 40, 10**8)
    assert fired(statement(), spill)["sorts_on_disk"]["stake"] == pytest.approx(0.05)
    found = fired(statement(spill_ns=10**8), spill)["sorts_on_disk"]
    assert found["stake"] == pytest.approx(0.5), "the passes over what was spilled are part of the statement's time"
    assert "these 5 % of the response time" in found["expected"] and "that spill take 50 %" in found["expected"]
    assert "sorts_on_disk" not in fired(statement(), TracedEvent("direct path read temp", 1, 10**6))
    sync = TracedEvent("log file sync", 100, 5 * 10**8)
    assert fired(statement(), sync, commits=50, changed_rows=50)["commit_each_row"]["stake"] == pytest.approx(0.25)
    assert "commit_each_row" not in fired(statement(), sync, commits=50, changed_rows=5000), "a hundred rows each"
