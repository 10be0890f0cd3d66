"""Statements: exclusive figures, waits inside and between, plans, relatives, literals."""

from __future__ import annotations

from pathlib import Path

import pytest
from trace_evidence import Evidence

from dbdyno.base.errors import TraceError
from dbdyno.trace.source import Traces, open_traces
from dbdyno.trace.statements import Request, statements_page


def entry(model: dict, key: str) -> dict:
    return next(e for e in model["statements"] if e["statement"] == key)


def test_figures_are_exclusive_and_add_up_to_the_calls(traces: Traces):
    model = statements_page(traces, Request(top=0))
    total = sum(e["total"]["elapsed_ns"] for e in model["statements"])
    roots = traces.rows("select sum(elapsed_ns)::bigint as ns from calls where depth = 0")[0]["ns"]
    assert total == roots
    insert = entry(model, "ins")["total"]
    assert (insert["elapsed_ns"], insert["inclusive_ns"]) == (40 * 150_000, 40 * 300_000)
    assert insert["executions"] == 40


def test_waits_inside_and_between_calls_stand_apart(traces: Traces):
    model = statements_page(traces, Request(top=0))
    inside = [(w["event"], w["inside"]) for w in entry(model, "seq")["waits"]]
    between = [(w["event"], w["inside"]) for w in entry(model, "lit0")["waits"]]
    assert inside == [("db file sequential read", True)]
    assert between == [("SQL*Net message from client", False)]


def test_parents_and_children_know_each_other(traces: Traces):
    model = statements_page(traces, Request(top=0))
    assert [c["statement"] for c in entry(model, "ins")["children"]] == ["seq"]
    assert [p["statement"] for p in entry(model, "seq")["parents"]] == ["ins"]
    assert entry(model, "seq")["parents"][0]["calls"] == 40


def test_totals_part_the_clients_statements_from_the_recursive_ones(traces: Traces):
    totals = statements_page(traces, Request())["totals"]
    assert (totals["client"]["statements"], totals["recursive"]["statements"]) == (4, 1)
    assert totals["recursive"]["total"]["elapsed_ns"] == 40 * 150_000


def test_literals_are_merged_and_named_as_missing_binds(traces: Traces):
    apart = statements_page(traces, Request(top=0))
    merged = statements_page(traces, Request(top=0, merge_literals=True))
    assert (len(apart["statements"]), len(merged["statements"])) == (5, 3)
    one = next(e for e in merged["statements"] if len(e["variants"]) == 3)
    assert one["text"] == "SELECT * FROM ITEMS WHERE ID = :n"
    assert one["total"]["executions"] == 40
    finding = merged["findings"][0]
    assert finding["sentence"].startswith("3 statements differ only in literals: 40 executions")
    assert finding["examples"][0] == "select * from items where id = 0"
    assert apart["findings"] == merged["findings"]


def test_white_space_and_case_are_no_literals(tmp_path: Path):
    made = Evidence()
    for key, text in (("a", "select 1 from t"), ("b", "SELECT  1\nFROM t")):
        made.statement(key, text, force_key="same", force_match="SELECT :n FROM T")
        made.call("exec", key, end_us=100, elapsed_us=10)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        assert statements_page(opened, Request())["findings"] == []


def test_a_statement_without_literals_keeps_its_name_when_merging(traces: Traces):
    merged = statements_page(traces, Request(top=0, merge_literals=True))
    assert {"ins", "seq"} <= {e["statement"] for e in merged["statements"]}


def test_top_leaves_out_and_says_how_much(traces: Traces):
    model = statements_page(traces, Request(top=2))
    assert len(model["statements"]) == 2
    assert model["left_out"]["statements"] == 3
    whole = statements_page(traces, Request(top=0))
    assert model["left_out"]["elapsed_ns"] + sum(e["total"]["elapsed_ns"] for e in model["statements"]) == sum(
        e["total"]["elapsed_ns"] for e in whole["statements"]
    )


def test_sys_own_recursive_statements_can_be_left_out(traces: Traces):
    model = statements_page(traces, Request(top=0, recursive=False))
    assert "seq" not in {e["statement"] for e in model["statements"]}


def test_an_unknown_statement_or_order_says_what_there_is(traces: Traces):
    with pytest.raises(TraceError, match="no statement 'nope'"):
        statements_page(traces, Request(statement="nope"))
    with pytest.raises(TraceError, match="elapsed, cpu"):
        statements_page(traces, Request(sort="beauty"))


def test_plans_of_one_shape_are_laid_together(traces: Traces):
    (plan,) = entry(statements_page(traces, Request(top=0)), "ins")["plans"]
    assert plan["seen"] == 1
    assert [(line["level"], line["operation"]) for line in plan["lines"]] == [
        (0, "LOAD TABLE CONVENTIONAL ORDERS"),
        (1, "SEQUENCE ORDER_SEQ"),
    ]
    assert [line["self_time_us"] for line in plan["lines"]] == [100, 100]


def test_rows_of_several_plans_are_first_mean_and_most(tmp_path: Path):
    made = Evidence()
    made.statement("q", "select 1 from dual")
    made.call("exec", "q", end_us=100, elapsed_us=50)
    for at, rows in enumerate((3, 9)):
        made.rows["plans"].append(
            {
                "file": 0,
                "line": 10 + at,
                "cursor": 7,
                "statement": "q",
                "id": 1,
                "parent": 0,
                "rows": rows,
                "operation": "TABLE ACCESS FULL T",
                "time_us": 5,
            }
        )
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        (plan,) = statements_page(opened, Request())["statements"][0]["plans"]
    line = plan["lines"][0]
    assert plan["seen"] == 2
    assert (line["rows_first"], line["rows_mean"], line["rows_max"]) == (3, 6, 9)


def test_a_statement_whose_text_is_not_in_the_trace_is_not_dropped(tmp_path: Path):
    made = Evidence()
    made.call("exec", "unknown:140", end_us=100, elapsed_us=50)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        (found,) = statements_page(opened, Request())["statements"]
    assert (found["statement"], found["text"]) == ("unknown:140", None)


def test_a_trace_without_waits_says_what_that_means(tmp_path: Path):
    made = Evidence()
    made.call("exec", "unknown:140", end_us=100, elapsed_us=50)
    with open_traces([str(made.write(tmp_path / "run"))]) as opened:
        warnings = statements_page(opened, Request())["warnings"]
    assert "20 to 50 % of the time remains unexplained" in warnings[0]["text"]
