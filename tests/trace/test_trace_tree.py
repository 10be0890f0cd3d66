"""The recursion tree: exclusive times add up, siblings are folded, and places link to calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_evidence import Evidence

from dbdyno.base.errors import TraceError
from dbdyno.trace.source import Traces, open_traces
from dbdyno.trace.tree import Request, tree_page


def nested(folder: Path) -> Path:
    """Write a block that executes a statement three times, which in turn executes another one once."""
    made = Evidence()
    made.statement("top", "begin p; end;")
    made.statement("mid", "insert into t values (:1)", depth=1)
    made.statement("low", "select 1 from seq$", depth=2)
    t, children = 0, []
    for number in range(3):
        t += 100
        if number == 1:
            read = made.wait("db file sequential read", "data read", end_us=t + 20, elapsed_us=10)
            low = made.call("fetch", "low", end_us=t + 30, elapsed_us=25, depth=2)
            made.adopt(low, read)
            mid = made.call("exec", "mid", end_us=t + 40, elapsed_us=40, depth=1, self_us=15)
            made.adopt(mid, low)
        else:
            mid = made.call("exec", "mid", end_us=t + 40, elapsed_us=40, depth=1)
        children.append(mid)
    top = made.call("exec", "top", end_us=1_000, elapsed_us=950, self_us=950 - 120)
    made.adopt(top, *children)
    made.call("exec", "mid", end_us=1_100, elapsed_us=60)
    return made.write(folder)


def test_the_default_is_the_clients_longest_call(tmp_path: Path):
    with open_traces([str(nested(tmp_path / "run"))]) as opened:
        model = tree_page(opened, Request())
    assert [(n["level"], n["statement"], n["calls"]) for n in model["nodes"]] == [
        (0, "top", 1),
        (1, "mid", 3),
        (2, "low", 1),
    ]
    assert model["root"]["calls"] == 5


def test_exclusive_times_add_up_to_the_root(tmp_path: Path):
    with open_traces([str(nested(tmp_path / "run"))]) as opened:
        for request in (Request(), Request(calls=True)):
            nodes = tree_page(opened, request)["nodes"]
            assert sum(n["self_elapsed_ns"] for n in nodes) == nodes[0]["elapsed_ns"] == 950_000


def test_each_call_by_itself_when_asked(tmp_path: Path):
    with open_traces([str(nested(tmp_path / "run"))]) as opened:
        nodes = tree_page(opened, Request(calls=True))["nodes"]
    assert [n["level"] for n in nodes] == [0, 1, 1, 2, 1]


def test_waits_are_folded_into_their_call(tmp_path: Path):
    with open_traces([str(nested(tmp_path / "run"))]) as opened:
        nodes = tree_page(opened, Request())["nodes"]
    assert [w["event"] for w in nodes[2]["waits"]] == ["db file sequential read"]
    assert nodes[0]["waits"] == []


def test_a_statement_a_number_or_a_line_names_the_root(tmp_path: Path):
    with open_traces([str(nested(tmp_path / "run"))]) as opened:
        assert tree_page(opened, Request(statement="low"))["root"]["elapsed_ns"] == 25_000
        number = opened.rows("select call from calls where statement = 'low'")[0]["call"]
        assert tree_page(opened, Request(call=number))["nodes"][0]["statement"] == "low"
        assert tree_page(opened, Request(place="ora_4000.trc:22"))["nodes"][0]["statement"] == "low"


@pytest.mark.parametrize(
    "request_",
    [Request(call=7), Request(statement="x"), Request(place="a.trc:9999"), Request(place="no line")],
)
def test_what_is_not_there_is_an_error(traces: Traces, request_: Request):
    with pytest.raises(TraceError):
        tree_page(traces, request_)
