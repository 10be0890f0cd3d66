"""Two sets of traces: what became slower is found, and nothing else is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_evidence import Evidence, order_entry
from trace_text import write_set

from dbdyno.base.errors import TraceError
from dbdyno.report.flat import rows
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.study.analysis.traces.compare import compare_traces
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.trace.source import open_traces

NAMES = ("before", "after")


def compared(folder: Path, one: Evidence, two: Evidence, **question) -> dict:
    paths = [str(one.write(folder / "one")), str(two.write(folder / "two"))]
    with open_traces(paths[:1]) as base, open_traces(paths[1:]) as other:
        return compare_traces(base, other, ComparisonOptions(names=NAMES, **question))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Compare two sets of six sessions; commits of the second set take a fifth longer."""
    folder = tmp_path_factory.mktemp("slower")
    return compared(folder, order_entry(6, 150, 1.0, 1), order_entry(6, 150, 1.2, 2))


def line(model: dict, family: str, name: str) -> dict:
    return next(r for r in model["lines"] if (r["family"], r["name"]) == (family, name))


def metric(row: dict, name: str) -> dict:
    return next(m for m in row["metrics"] if m["metric"] == name)


def test_the_verdict_leads_with_response_and_database_time(slower: dict):
    assert slower["verdict"]["decision"] == "slower"
    assert "of response time. Database time: " in slower["verdict"]["headline"]
    assert "over 6 and 6 sessions" in slower["verdict"]["sentences"][-1]
    response, database = slower["metrics"][:2]
    assert (response["metric"], database["metric"]) == ("response", "database")
    assert response["label"] == "response time per execution"
    assert response["low"] < 1.058 < response["high"], "with the round trips"
    assert database["low"] < 1.123 < database["high"], "without them"


def test_a_session_that_executed_nothing_is_not_counted(tmp_path: Path):
    """Seven sessions, of which one only parsed: the verdict rests on six, and says so everywhere."""
    write_set(tmp_path / "one", 7)
    write_set(tmp_path / "two", 6, seed=2)
    idle = tmp_path / "one" / "made_ora_6.trc"
    parsed = [line for line in idle.read_text().splitlines(keepends=True) if not line.startswith(("EXEC", "WAIT"))]
    idle.write_text("".join(parsed))
    with open_traces([str(tmp_path / "one")]) as base, open_traces([str(tmp_path / "two")]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    assert "over 6 of 7 and 6 sessions" in model["verdict"]["sentences"][-1]
    assert any("Blocks are sessions: 6 of 7 in before, 6 in after." in said for said in model["method"]["sentences"])
    assert model["run"]["blocks_whole"] == 6


def test_a_session_without_any_call_is_told_of_beside_its_set(tmp_path: Path):
    """The set had "7 sessions", and six were compared."""
    for name in NAMES:
        write_set(tmp_path / name, 3)
    silent = tmp_path / "before" / "made_ora_2.trc"
    kept = [line for line in silent.read_text().splitlines(keepends=True) if line.startswith(("***", "WAIT"))]
    silent.write_text("".join(kept))
    with open_traces([str(tmp_path / "before")]) as base, open_traces([str(tmp_path / "after")]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=NAMES))
    assert "3 sessions, 1 of these without a call, " in model["arms"][0]["description"]
    assert "3 sessions, " in model["arms"][1]["description"] and "without" not in model["arms"][1]["description"]


def test_what_made_the_difference_is_named_and_adds_up(slower: dict):
    assert slower["figures"]["contributions"][0]["name"] == "log file sync"
    assert "a log file sync takes " in slower["verdict"]["sentences"][0]
    parts = sum(row["value_ns"] for row in slower["figures"]["contributions"])
    assert parts == pytest.approx(slower["account"]["response_ns"][1])


def test_line_by_line_only_the_commit_is_slower(slower: dict):
    found = {(row["family"], row["name"]): metric(row, "mean")["decision"] for row in slower["lines"]}
    assert found.pop(("event", "log file sync")) == "slower"
    assert set(found.values()) == {"same"}


def test_the_same_work_twice_is_no_difference(tmp_path: Path):
    model = compared(tmp_path, order_entry(6, 150, 1.0, 1), order_entry(6, 150, 1.0, 2))
    assert model["verdict"]["decision"] == "same"


@pytest.mark.soak
def test_an_event_can_be_the_question(tmp_path: Path):
    one, two = order_entry(6, 150, 1.0, 1), order_entry(6, 150, 0.8, 2)
    model = compared(tmp_path, one, two, event="log file sync")
    assert model["verdict"]["decision"] == "faster"
    assert model["metrics"][0]["label"] == "mean log file sync"
    assert model["arms"][0]["ops"] == 900


def test_few_sessions_are_cut_into_slices_and_it_is_said(tmp_path: Path):
    one, two = order_entry(1, 300, 1.0, 1), order_entry(1, 300, 1.5, 2)
    model = compared(tmp_path, one, two, event="log file sync")
    assert model["run"]["blocks_whole"] == 20
    assert model["verdict"]["decision"] == "slower"
    assert [w["code"] for w in model["warnings"]] == ["not interleaved", "few sessions"]


def test_a_line_in_one_set_only_is_told(tmp_path: Path):
    two = order_entry(6, 40, 1.0, 2)
    for session in range(6):
        two.wait("enq: TX - row lock contention", "lock", end_us=200_000, elapsed_us=5_000, session=session)
    model = compared(tmp_path, order_entry(6, 40, 1.0, 1), two)
    row = line(model, "event", "enq: TX - row lock contention")
    assert (row["only_in"], row["metrics"]) == (1, [])
    assert row["difference_ns"] > 0
    assert "only in after" in render_text(model, width=100, color=False)


@pytest.mark.soak
def test_the_tail_is_compared_apart(tmp_path: Path):
    one, two = order_entry(6, 200, 1.0, 1), order_entry(6, 200, 1.0, 2)
    for at, row in enumerate(r for r in two.rows["waits"] if r["class"] == "commit"):
        if at % 25 == 0:
            row["elapsed_ns"] *= 20
    tails = compared(tmp_path, one, two, event="log file sync")["tails"]
    assert tails["exceed"]["shares"][0] == pytest.approx(0.01, abs=0.002)
    assert tails["exceed"]["shares"][1] > 0.03
    assert tails["exceed"]["low"] > 0
    assert tails["longest"]["counts"][1] > 1.5 * tails["longest"]["expected"][1]


def test_an_event_that_a_set_lacks_is_an_error(tmp_path: Path):
    with pytest.raises(TraceError, match="no wait for 'latch free'"):
        compared(tmp_path, order_entry(2), order_entry(2), event="latch free")


def test_the_model_is_plain_json_and_every_renderer_takes_it(slower: dict):
    model = json.loads(json.dumps(slower, allow_nan=False))
    for width in (60, 80, 120):
        text = render_text(model, width=width, color=False)
        assert max(map(len, text.splitlines())) <= width
    page = render_html(model)
    assert "What made the difference" in page
    assert "Line by line" in page
    found = rows(model)
    assert {row["family"] for row in found} == {"whole", "event", "call", "statement"}
    assert all(list(row) == list(found[0]) for row in found)
