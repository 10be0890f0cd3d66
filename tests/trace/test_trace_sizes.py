"""Realistic sizes, judged by operations instead of time: queries per page, parts per import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_text import trace

from dbdyno.base.json_types import TableRow
from dbdyno.trace.source import Traces, open_traces, read_trace
from dbdyno.trace.statements import Request, statements_page
from dbdyno.trace.waits import Request as WaitsRequest
from dbdyno.trace.waits import waits_page


def asked(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the queries that a page of all statements runs."""
    queries: list[str] = []
    original = Traces.rows

    def rows(self: Traces, query: str, parameters: Any = None) -> list[TableRow]:
        queries.append(query)
        return original(self, query, parameters)

    monkeypatch.setattr(Traces, "rows", rows)
    statements_page(traces, Request(top=0))
    monkeypatch.undo()
    return queries


def test_all_statements_are_asked_in_as_many_queries_as_a_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    numbers = []
    for orders in (5, 500):
        file = tmp_path / f"{orders}.trc"
        file.write_text(trace(orders))
        with open_traces([str(file)]) as traces:
            numbers.append(len(asked(traces, monkeypatch)))
    assert numbers[0] == numbers[1] < 20


def test_waits_plans_and_relatives_stay_with_their_statement(traces: Traces):
    model = statements_page(traces, Request(top=0))
    for entry in model["statements"]:
        one = statements_page(traces, Request(statement=entry["statement"]))["statements"][0]
        assert one == entry


def test_many_small_files_make_few_parts(tmp_path: Path):
    """Each part is a file that every question opens."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for number in range(200):
        (folder / f"made_ora_{number}.trc").write_text(trace(2, session=f"{number}.1", seed=number))
    run = read_trace(folder, tmp_path / "run")
    assert len(list((run.path / "calls").iterdir())) == len(list((run.path / "waits").iterdir())) == 4
    with open_traces([str(run.path)]) as traces:
        assert traces.rows("select count(*) as n, count(distinct file) as files from calls") == [
            {"n": 800, "files": 200}
        ]
        assert waits_page(traces, WaitsRequest())["events"][0]["count"] == 400


def test_close_stands_apart_from_the_total_as_in_tkprof(tmp_path: Path):
    file = tmp_path / "closed.trc"
    line = "{}:c={c},e={e},p=0,cr=2,cu=0,mis=0,r=1,dep=0,og=1,plh=7,tim={tim}"
    file.write_text(
        "\n".join(
            [
                line.format("EXEC #5", c=10, e=40, tim=1_000),
                line.format("FETCH #5", c=20, e=50, tim=1_100),
                "CLOSE #5:c=3,e=7,dep=0,type=0,tim=1200",
                "",
            ]
        )
    )
    with open_traces([str(file)]) as traces:
        model = statements_page(traces, Request())
    (entry,) = model["statements"]
    assert (entry["total"]["calls"], entry["total"]["elapsed_ns"], entry["total"]["cpu_ns"]) == (2, 90_000, 30_000)
    assert (entry["total"]["close_calls"], entry["total"]["close_elapsed_ns"]) == (1, 7_000)
    assert model["totals"]["client"]["total"]["calls"] == 2
    assert [step["step"] for step in entry["steps"]] == ["execute", "fetch", "close"]


def test_thousands_of_statements_are_a_line_each_beyond_the_first_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from dbdyno.pages import trace_statements as sql
    from dbdyno.report.terminal import render_text

    monkeypatch.setattr(sql, "CARDS_MOST", 3)
    file = tmp_path / "many.trc"
    file.write_text(trace(40))
    with open_traces([str(file)]) as traces:
        text = render_text(statements_page(traces, Request(top=0)), width=80, color=False)
    assert text.count("Waits inside its calls") == 3
    assert all(f"{number}. " in text for number in range(1, 41))
    assert max(map(len, text.splitlines())) <= 80


def test_a_terminal_makes_no_part_that_only_a_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of ten thousand statements it made all the tables, and showed those of two hundred."""
    from dbdyno.pages import trace_statements as sql
    from dbdyno.report.html import render_html
    from dbdyno.report.terminal import render_text

    made, statement = [], sql._statement
    monkeypatch.setattr(sql, "CARDS_MOST", 3)
    monkeypatch.setattr(sql, "_statement", lambda at, *rest: made.append(at) or statement(at, *rest))
    file = tmp_path / "many.trc"
    file.write_text(trace(40))
    with open_traces([str(file)]) as traces:
        model = statements_page(traces, Request(top=0))
    render_text(model, width=80, color=False)
    assert made == [1, 2, 3]
    assert all(f'id="s-{number}"' in render_html(model) for number in (1, 3, 4, 40))
