"""Expressions over typed columns: `--by`, `--where`, `--sum`, `--buckets`, and recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_text import ROOT, trace

from command_line import dbdyno
from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.report.terminal import render_text
from dbdyno.trace.columns import COLUMNS, CORE
from dbdyno.trace.expression import compile_condition, compile_value, split_expressions
from dbdyno.trace.profile import DIMENSIONS, Request, profile_page
from dbdyno.trace.recipes import recipe, recipes

EXAMPLE = ROOT / "examples" / "orders.trc"


def rows(by: str = "event", where: str | None = None, file: Path = EXAMPLE, **more: Any) -> list[dict[str, Any]]:
    page = profile_page([str(file)], Request(tuple(split_expressions(by)), where, **more))
    return list(page["profile"]["rows"])


def by_name(found: list[TableRow]) -> dict[str, JsonObject]:
    return {row["name"]: row for row in found}


def fetches(tmp_path: Path) -> Path:
    """Fetches of 1, 10 and 100 rows, each with a wait inside; a buffer busy wait of class 4."""
    lines, tim = [], 1_000_000
    for rows_each, read in ((1, 50), (1, 60), (10, 500), (100, 2_000)):
        tim += read + 100
        lines += [
            f"WAIT #5: nam='db file sequential read' ela= {read} file#=4 block#={rows_each} blocks=1 obj#=7"
            f" tim={tim - 20}",
            f"FETCH #5:c=30,e={read + 60},p=1,cr={2 * rows_each},cu=0,mis=0,r={rows_each},dep=0,og=1,plh=7,tim={tim}",
        ]
    lines.append(f"WAIT #5: nam='buffer busy waits' ela= 77 file#=4 block#=9 class#=4 obj#=7 tim={tim + 200}")
    path = tmp_path / "fetches.trc"
    path.write_text("\n".join([*lines, ""]))
    return path


def test_rows_of_a_call_group_its_time_and_that_of_its_waits(tmp_path: Path):
    found = {row["key"]["bucket(rows, 10)"]: row for row in rows("bucket(rows, 10)", "kind = fetch", fetches(tmp_path))}
    assert set(found) == {1, 10, 100}
    assert (found[1]["count"], found[1]["waits"]) == (2, 2)
    assert found[100]["total_ns"] == 2_060_000


def test_powers_of_two_hold_what_they_say():
    for row in rows("bucket(elapsed_us, 2)", "event = 'log file sync'"):
        low = row["key"]["bucket(elapsed_us, 2)"]
        assert low & (low - 1) == 0
        assert low * 1000 <= row["min_ns"] <= row["max_ns"] < 2000 * low


@pytest.mark.parametrize("name", ["block_class", "class#", "param('class#')"])
def test_a_wait_parameter_has_its_name(tmp_path: Path, name: str):
    found = rows(name, "event = 'buffer busy waits'", fetches(tmp_path))
    assert [row["key"][name] for row in found] == [4]
    assert rows("event", f"{name} = 4", fetches(tmp_path))[0]["name"] == "buffer busy waits"


def test_arithmetic_and_division_by_zero(tmp_path: Path):
    file = fetches(tmp_path)
    assert {row["count"] for row in rows("kind", "consistent_reads / rows = 2", file)} == {4}
    assert rows("kind", "rows / (p1 - 4) > 0", file) == []
    assert by_name(rows("event", "(rows + 1) * 2 >= 22 and (elapsed_us > 1)", file))["CPU"]["count"] == 2


def test_sums_count_each_block_once(tmp_path: Path):
    found = rows("kind", file=fetches(tmp_path), sums=("consistent_reads", "rows", "consistent_reads / 2"))
    fetch = next(row for row in found if row["key"]["kind"] == "fetch")
    assert fetch["sums"] == {"consistent_reads": 224, "rows": 112, "consistent_reads / 2": 112}


def test_count_counts_what_is_named_not_cpu_pieces_and_waits_together():
    """30 executions of an insert, each with its CPU, what nothing explains, and no wait."""
    one, two = (
        next(row for row in found if row["key"]["statement"] == "8hx1y4b9s2d3n")
        for found in (rows("statement"), rows("statement", sums=("rows",)))
    )
    for row in (one, two):
        assert (row["count"], row["waits"]) == (30, 0)
        assert (row["mean_ns"], row["p50_ns"], row["p99_ns"], row["max_ns"]) == (None, None, None, None)


def test_a_line_of_waits_alone_keeps_its_quantiles():
    (row,) = rows("module", "class = commit")
    assert (row["count"], row["waits"]) == (30, 30)
    assert row["p50_ns"] > 0


def test_expressions_and_the_core_agree_on_every_line():
    for by in ("event", "class", "kind", "statement,event", "module,session"):
        core, asked = (
            {str(sorted(row["key"].items())): (row["count"], row["total_ns"]) for row in found}
            for found in (rows(by), rows(by, sums=("rows",)))
        )
        assert asked == core


def test_all_lines_of_an_expression_add_up_to_the_sessions_time():
    page = profile_page([str(EXAMPLE)], Request(("bucket(elapsed_us, 2)", "event")))
    assert sum(row["total_ns"] for row in page["profile"]["rows"]) == page["facts"]["elapsed_ns"]


def test_finer_buckets_split_the_decades():
    one, four = (by_name(rows(buckets=n, where="elapsed_us >= 0"))["log file sync"]["histogram"] for n in (1, 4))
    assert sum(bucket[2] for bucket in one) == sum(bucket[2] for bucket in four) == 30
    assert len(four) > len(one)


def test_a_profile_with_sums_fits_the_terminal():
    page = profile_page([str(EXAMPLE)], Request(("statement",), sums=("consistent_reads", "current_reads", "rows")))
    text = render_text(page, width=100, color=False)
    assert max(map(len, text.splitlines())) <= 100
    assert "waits" in text and "rows" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bucket(elapsed_us, 1)", "does not fit bucket"),
        ("bucket(elapsed_us)", "comma"),
        ("bucket(event, 2)", "does not fit"),
        ("elapsed_us +", "name or a value"),
        ("event + 1", "needs a number on each side"),
        ("elapsed", "is not a name"),
        ("(rows", "bracket"),
        ("rows) or 1=1 --", "operator or the end"),
        ("param(rows)", "does not fit param"),
        ("(" * 100 + "rows" + ")" * 100, "too many nested brackets"),
        ("'open", "quote"),
    ],
)
def test_an_expression_that_cannot_be_says_where(text: str, words: str):
    with pytest.raises(TraceError, match="--by") as raised:
        compile_value(text, "waits")
    assert words in str(raised.value) and "^" in str(raised.value)


def test_brackets_within_brackets_are_read_once_each():
    """Without a look at what follows the bracket this took a time of two to the depth."""
    deep = "(" * 40 + "rows" + ")" * 40
    assert compile_condition(f"{deep} = 1", "calls").sql.count("t.rows") == 1
    assert compile_condition("(" * 40 + "rows = 1" + ")" * 40, "calls").sql.count("t.rows") == 1


def test_the_core_is_asked_where_it_knows_everything():
    assert set(DIMENSIONS) <= set(CORE) | {"p1", "p2", "p3"} and set(CORE) <= set(COLUMNS)
    assert Request(("module", "event"), "class = commit and elapsed_us > 5").is_core()
    for request in (Request(("rows",)), Request(where="rows > 1"), Request(sums=("rows",)), Request(buckets=2)):
        assert not request.is_core()


def test_every_recipe_of_ours_runs():
    for name, given in recipes().items():
        request = Request(
            tuple(given["by"]), given.get("where"), top=given.get("top"), sums=tuple(given.get("sum", ()))
        )
        assert profile_page([str(EXAMPLE)], request)["page"] == "profile", name
        assert given["about"]


def test_a_recipe_of_a_file_by_its_name_and_its_mistakes(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text("[a]\nby = ['rows']\n[b]\nby = ['kind']\n")
    assert recipe(f"{file}:b") == {"by": ["kind"]}
    with pytest.raises(TraceError, match="2 recipes"):
        recipe(str(file))
    with pytest.raises(TraceError, match="no recipe 'c'"):
        recipe(f"{file}:c")
    with pytest.raises(TraceError, match="fetch-size"):
        recipe("fetch-sise")
    file.write_text("[a]\nby = 'rows'\n")
    with pytest.raises(TraceError, match="expected a list of texts"):
        recipe(str(file))
    file.write_text("[a]\nwhre = 'rows > 1'\n")
    with pytest.raises(TraceError, match="unknown key 'whre'"):
        recipe(str(file))


def test_recipes_and_sums_on_the_command_line(tmp_path: Path):
    file = tmp_path / "made.trc"
    file.write_text(trace())
    done = dbdyno("trace", "profile", file, "--recipe", "commit-latency", "--sum", "rows", "--format", "json")
    page = json.loads(done.stdout)
    assert page["profile"]["by"] == ["floor(elapsed_us, 1000)"]
    listed = dbdyno("trace", "profile", "--recipe", "list")
    assert "fetch-size" in listed.stdout
