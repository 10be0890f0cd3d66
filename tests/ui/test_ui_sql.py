"""SQL on snapshots: the same in the console and on a terminal; restricted; with saved queries of the user."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
from asking import Browser, Seen
from laboratory import FIRST_S, MINUTES

from command_line import dbdyno, succeeded
from dbdyno.evidence.query_model import answer_model
from dbdyno.evidence.saved_queries import queries_file, save_query, saved_queries
from dbdyno.ui.stretch import iso

pytestmark = pytest.mark.drawn(drawn=False)
ON = "snap:/shop-db:5432"
WHOLE = f"{iso(FIRST_S * 1e6)}..{iso((FIRST_S + MINUTES * 60) * 1e6)}"
BY_MINUTE = "select time, sum(calls)::bigint as calls from pg_stat_statements_by_snapshot group by time order by time"


def ask(browser: Browser, query: str, form: str = "") -> str:
    values = {"on": ON, "stretch": WHOLE, "query": query, **({"format": form} if form else {})}
    return browser.get(f"/sql?{urlencode(values)}").text


@pytest.mark.parametrize(
    "query",
    (
        "select queryid, calls, verdict from pg_stat_statements order by queryid",
        BY_MINUTE,
        "select class, count(*) as seen from sessions group by class order by class",
        "select count(*) as n, min(time) as first from snapshots",
        "select name, setting from pg_settings order by name",
    ),
)
def test_the_console_over_snapshots_answers_as_the_command_does(browser_of: Browser, folder: Path, query: str) -> None:
    said = succeeded("sql", query, "--run", f"snap:1..{MINUTES + 1}", "--store", folder / "snaps", "--format", "csv")
    assert ask(browser_of, query, "csv") == said.stdout
    assert len(said.stdout.splitlines()) > 1


def test_differences_over_time_add_up_to_those_of_the_stretch(browser_of: Browser) -> None:
    parts = json.loads(ask(browser_of, "select sum(calls)::bigint as n from pg_stat_statements_by_snapshot", "json"))
    whole = json.loads(ask(browser_of, "select sum(calls)::bigint as n from pg_stat_statements", "json"))
    assert parts["rows"] == whole["rows"] and parts["rows"][0][0] > 0


@pytest.mark.parametrize(
    "bad",
    (
        "delete from snapshots",
        "copy snapshots to '/tmp/x'",
        "select * from read_csv('/etc/passwd')",
        "select 1; select 2",
        "attach '/tmp/x.db'",
        "select * from nothing_here",
    ),
)
def test_nothing_else_is_answered(browser_of: Browser, bad: str) -> None:
    page = ask(browser_of, bad)
    assert "This query was not answered" in page and "root:" not in page


def test_names_of_tables_and_columns_are_offered(browser_of: Browser) -> None:
    (area,) = (given for tag, given in Seen(ask(browser_of, "")).tags if tag == "textarea")
    offered = str(area["data-complete"]).split()
    assert {"pg_stat_statements", "pg_stat_statements_by_snapshot", "sessions", "total_exec_time", "time"} <= set(
        offered
    )


@pytest.mark.drawn
def test_an_answer_over_time_is_a_line_and_a_list_is_bars(browser_of: Browser) -> None:
    assert "<svg" in ask(browser_of, BY_MINUTE)
    assert ask(browser_of, BY_MINUTE, "svg").startswith("<svg")
    assert "<svg" in ask(browser_of, "select queryid::varchar as q, calls from pg_stat_statements")


def test_what_is_drawn_follows_from_the_columns() -> None:
    assert answer_model(["a", "n"], [("x", 1), ("y", 2)])["form"] == "bars"
    assert answer_model(["x", "n"], [(1, 1), (2, 5)])["form"] == "line"
    assert answer_model(["x", "n"], [(2, 1), (1, 5)])["form"] == "bars", "a line does not go back"
    lines = answer_model(["x", "who", "n"], [(1, "a", 1), (1, "b", 2), (2, "a", 3), (2, "b", 4)])
    assert (lines["form"], [one["name"] for one in lines["points"]]) == ("line", ["a", "b", "a", "b"])
    assert answer_model(["a"], [("x",)])["points"] == []


def test_a_saved_query_is_in_a_file_of_the_user_s_and_nothing_in_it_is_lost(
    browser_of: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBDYNO_STATE", str(tmp_path))
    own = "-- my own words\n\n-- name: mine\nselect 1 as one -- why\n;\n"
    queries_file().write_text(own)
    where = ("--run", f"snap:1..{MINUTES + 1}", "--store", folder / "snaps")
    assert dbdyno("sql", "select 42 as answer", *where, "--save", "the answer").returncode == 0
    save_query("mine", "select 2 as two;")
    assert saved_queries() == {"mine": "select 2 as two", "the answer": "select 42 as answer"}
    assert queries_file().read_text().startswith("-- my own words\n\n-- name: mine\nselect 2 as two;\n")
    assert dbdyno("sql", "@the answer", *where, "--format", "csv").stdout == "answer\n42\n"
    page = ask(browser_of, "")
    assert "select 42 as answer" in page and "the answer" in page
    missing = dbdyno("sql", "@nothing", *where)
    assert missing.returncode == 2 and "the answer" in missing.stderr
    bad = dbdyno("sql", "select 1", *where, "--save", "../x")
    assert bad.returncode == 2 and "is not a valid name of a query" in bad.stderr
    queries_file().write_bytes(b"\xff\xfe")
    assert dbdyno("sql", "select 1", *where, "--save", "x").returncode == 2
    assert queries_file().read_bytes() == b"\xff\xfe", "what cannot be read is not written over"
