"""The linked page on traces, deep plans and trees in a terminal, and warnings that appear only once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from trace_batch import Batch, write_batch
from trace_evidence import Evidence
from trace_text import trace

from dbdyno.base.json_types import JsonObject
from dbdyno.cli.main import cli
from dbdyno.report.branches import fitting_branches, indent_step
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text
from dbdyno.trace.job import Options
from dbdyno.trace.page import merge_warnings
from dbdyno.trace.profile import profile_trace
from dbdyno.trace.report import Request, report_page
from dbdyno.trace.source import open_traces
from dbdyno.trace.tree import tree_of


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a batch below one PL/SQL call, with bind values for its updates."""
    path = write_batch(tmp_path_factory.mktemp("report") / "batch.trc", Batch(block=True, plan=9999, gets=200))
    bind = ["BINDS #102:", " Bind#0", "  oacdty=02 mxl=22(22)", "  value=4711"]
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("EXEC #102:") and bind[0] not in lines:
            lines += bind
        lines.append(line)
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.fixture(scope="module")
def model(batch: Path) -> JsonObject:
    with open_traces([str(batch)], Options(binds=True)) as traces:
        return json.loads(json.dumps(report_page(traces), allow_nan=False))


def test_the_report_of_a_run_that_is_a_trace_is_the_page_on_that_trace(batch: Path, tmp_path: Path):
    run = str(tmp_path / "run")
    runner = CliRunner()
    assert runner.invoke(cli, ["trace", "import", str(batch), "--out", run]).exit_code == 0
    given = runner.invoke(cli, ["report", run, "--format", "text"])
    assert given.exit_code == 0, given.output
    assert given.output == runner.invoke(cli, ["trace", "report", run, "--format", "table"]).output
    assert runner.invoke(cli, ["report", run]).output.strip() == f"{run}/report.html"
    assert "TABLE ACCESS FULL ORDER_LINES" in Path(run, "report.html").read_text()


def test_the_page_holds_what_each_command_shows(model: JsonObject):
    assert sum(row["total_ns"] for row in model["profile"]["rows"]) == model["facts"]["elapsed_ns"]
    query = next(entry for entry in model["statements"] if entry["statement"] == "s000000000101")
    assert query["plans"][0]["lines"][0]["operation"] == "TABLE ACCESS FULL ORDER_LINES"
    assert [wait["event"] for wait in query["longest"]] == ["db file sequential read"] * 5
    assert query["longest"][0]["elapsed_ns"] == max(wait["max_ns"] for wait in query["waits"])
    block = next(entry for entry in model["statements"] if entry["text"].startswith("begin"))
    assert block["tree"]["root"]["call"] is not None
    assert {child["statement"] for child in block["children"]} >= {"s000000000101", "s000000000102"}
    assert model["longest"][0]["elapsed_ns"] >= query["longest"][0]["elapsed_ns"]
    assert model["mostly"]["db file sequential read"] == {"statement": "s000000000101", "share": 1.0}


def test_the_statement_that_has_most_of_the_cpu_is_named_with_it(model: JsonObject):
    own = {entry["statement"]: entry["total"]["cpu_ns"] for entry in model["statements"]}
    most = max(own, key=lambda statement: own[statement])
    assert model["mostly"]["CPU"] == {"statement": most, "share": pytest.approx(own[most] / sum(own.values()))}
    [cpu] = [cause for cause in model["why"][0]["causes"] if cause["about"] == "CPU"]
    assert cpu["code"] == "line"
    text = next(entry["text"] for entry in model["statements"] if entry["statement"] == most)
    assert f"% of it in statement {most} ({text[:30]}" in cpu["sentence"], "an identifier alone tells nobody"


def test_binds_are_shown_where_they_were_kept_and_nowhere_else(model: JsonObject, batch: Path):
    update = next(entry for entry in model["statements"] if entry["statement"] == "s000000000102")
    assert update["binds"][0]["values"] == ["4711"]
    assert "Bind#0 = 4711" in render_html(model)
    with open_traces([str(batch)]) as traces:
        assert "4711" not in json.dumps(report_page(traces))


def test_every_link_of_the_page_leads_somewhere(model: JsonObject):
    page = render_html(model)
    places = set(re.findall(r' id="([^"]+)"', page))
    links = re.findall(r'href="#([^"]+)"', page)
    assert set(links) <= places
    assert sum(link.startswith("s-") for link in links) > 3 * len(model["statements"]) - 3, "overview, callers, callees"
    called = page[page.index("Called by") :]
    assert re.search(r'<a href="#s-\d+"><code>s000000000104', called), "called-by is a link"
    for words in ("Where the time went", "Statements by time", "The longest waits", "as a tree", "TABLE ACCESS FULL"):
        assert words in page


def test_the_page_is_text_and_rows_as_well(model: JsonObject):
    for width in (60, 100):
        text = render_text(model, width=width, color=False)
        assert max(map(len, text.splitlines())) <= width
        for words in ("Where the time went", "begin load_orders", "The longest waits"):
            assert words in text


def test_the_command_writes_each_form_by_its_suffix(batch: Path, tmp_path: Path):
    for suffix, words in (
        ("html", "<!doctype html>"),
        ("json", '"page": "report"'),
        ("csv", "statement"),
        ("txt", "p"),
    ):
        out = tmp_path / f"r.{suffix}"
        done = CliRunner().invoke(cli, ["trace", "report", str(batch), "-o", str(out), "--top", "3"])
        assert done.exit_code == 0, done.output
        assert words in out.read_text()


def test_merged_literals_and_the_request_are_heard(tmp_path: Path):
    path = write_batch(tmp_path / "literals.trc", Batch(literals=True))
    with open_traces([str(path)]) as traces:
        found = report_page(traces, Request(top=2, merge_literals=True, longest=3))
    assert len(found["statements"]) == 2
    assert len(found["statements"][0]["variants"]) == 60
    assert len(found["longest"]) == 3


def test_deep_steps_of_a_plan_keep_their_indent():
    """They used to fold to the left margin."""
    words = "TABLE ACCESS BY INDEX ROWID BATCHED A_TABLE_WITH_A_LONG_NAME PARTITION: 1 28"
    lines = indent_step(words, 8, 9, 40).split("\n")
    assert len(lines) > 1
    assert all(line.startswith(" " * 8) and len(line) <= 40 for line in lines)
    deep = indent_step(words, 60, 60, 40).split("\n")
    assert deep[0].lstrip().startswith("60› TABLE")
    assert all(len(line) <= 40 for line in deep)
    assert indent_step("SORT", 2, 3, 60) == "    SORT"


def test_deep_branches_of_a_tree_stay_within_their_half():
    assert fitting_branches("│  └─ ", 2, 60) == "│  └─ "
    deep = fitting_branches("│  " * 40 + "└─ ", 41, 60)
    assert deep.startswith("41… ")
    assert deep.endswith("└─ ")
    assert len(deep) <= 30


def deep_tree() -> Evidence:
    """Return a call with one large child and thirty small ones, each with its own child."""
    made = Evidence()
    made.statement("top", "begin everything; end;")
    small = []
    for at in range(30):
        inner = made.call("exec", f"inner{at}", end_us=1_000 + at * 10, elapsed_us=3, depth=2)
        small.append(made.call("exec", f"small{at}", end_us=1_002 + at * 10, elapsed_us=8, depth=1, self_us=5))
        made.adopt(small[-1], inner)
    large = made.call("exec", "large", end_us=90_000, elapsed_us=80_000, depth=1)
    top = made.call("exec", "top", end_us=100_000, elapsed_us=100_000, self_us=100_000 - 80_000 - 240)
    made.adopt(top, large, *small)
    return made


def test_branches_below_a_share_are_folded_and_the_tree_still_adds_up(tmp_path: Path):
    path = deep_tree().write(tmp_path / "run")
    with open_traces([str(path)]) as traces:
        row = traces.connection.execute("select call from calls where depth = 0").fetchone()
        assert row is not None
        folded, whole = tree_of(traces, row[0]), tree_of(traces, row[0], share=0)
    assert len(whole["nodes"]) == 62
    assert [node["folded"] for node in folded["nodes"]] == [0, 0, 30]
    assert folded["nodes"][2]["calls"] == 60
    for tree in (folded, whole):
        assert sum(node["self_elapsed_ns"] for node in tree["nodes"]) == whole["root"]["elapsed_ns"]


def test_sixteen_warnings_of_one_kind_are_one_with_a_count():
    found = [{"code": "trace", "text": f"f{at}.trc: {at} lines are torn", "next": ""} for at in range(16)]
    other = {"code": "unread", "text": "1 piece was not read.", "next": ""}
    one, two = merge_warnings([*found, other])
    assert one["text"] == "f0.trc, f1.trc, f2.trc and 13 more: 0 lines are torn (the first of 16 like it)"
    assert (one["count"], two) == (16, other)
    same = merge_warnings([{"code": "trace", "text": f"f{at}.trc: no WAIT in it", "next": ""} for at in range(2)])
    assert [warning["text"] for warning in same] == ["f0.trc, f1.trc: no WAIT in it"]


def test_one_stretch_and_several_are_told_in_the_right_number_and_together(tmp_path: Path):
    text = trace(orders=2)
    torn = "EXEC #1:c=1,e=\n"
    (tmp_path / "a.trc").write_text(text + torn)
    (tmp_path / "b.trc").write_text(text + torn + text + torn)
    alone, both = (profile_trace(files)["warnings"] for files in (tmp_path / "a.trc", tmp_path))
    assert [one["text"] for one in alone] == ["a.trc: 1 stretch could not be read: `trace check` shows where"]
    assert [(one["text"], one["count"]) for one in both] == [
        ("a.trc, b.trc: 1 stretch could not be read: `trace check` shows where (the first of 2 like it)", 2)
    ]


def test_warnings_never_fill_the_page(model: JsonObject):
    many = [{"code": str(at), "text": f"{'word ' * 200}{at}", "next": ""} for at in range(17)]
    lines = render_text({**model, "warnings": many}, width=80, color=False).splitlines()
    assert sum("word word" in line for line in lines) <= 12
    assert "13 more warnings" in "\n".join(lines)
