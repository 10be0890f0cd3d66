"""Every kind of evidence has its pages: traces by any expression, cells over time, sweeps of a model, saved pages."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from urllib.parse import quote

import pytest
from asking import Browser, Seen, is_tame
from run_kinds import ORDERS, recorded

from command_line import dbdyno

pytestmark = pytest.mark.drawn(drawn=False)


@pytest.fixture(scope="module")
def there(kinds: Path) -> Browser:
    return Browser(kinds / "runs", kinds / "snaps")


def test_a_trace_is_grouped_by_any_expression_as_on_a_terminal(there: Browser) -> None:
    report = Seen(there.get("/run?id=orders").text)
    assert any(one.startswith("/profile?id=orders") for one in report.links)
    by, where = "statement,event", "elapsed_us > 1"
    address = f"/profile?id=orders&by={quote(by)}&where={quote(where)}"
    page = there.get(address)
    assert page.status == 200, Seen(page.text).words
    is_tame(page.text)
    words = shlex.split(html.unescape(re.findall(r"<code>(dbdyno trace profile .*?)</code>", page.text)[-1]))
    said = json.loads(dbdyno(*words[1:], "--format", "json").stdout)
    assert json.loads(there.get(f"{address}&format=json").body) == said and said["profile"]["rows"]


@pytest.mark.parametrize(
    ("address", "page", "holds"),
    (
        ("/tree?id=orders", "tree", "nodes"),
        ("/tree?id=orders&line=orders.trc%3A100&calls=1", "tree", "nodes"),
        ("/waits?id=orders", "waits", "longest"),
        ("/waits?id=orders&event=log+file*&where=elapsed_us+%3E+1000", "waits", "longest"),
        ("/statements?id=orders&sort=cpu", "sql", "statements"),
    ),
)
def test_a_trace_shows_its_tree_waits_and_statements_as_on_a_terminal(
    there: Browser, address: str, page: str, holds: str
) -> None:
    report = Seen(there.get("/run?id=orders").text)
    assert address.partition("=")[0] + "=orders" in report.links
    answer = there.get(address)
    assert answer.status == 200, Seen(answer.text).words
    is_tame(answer.text)
    words = shlex.split(html.unescape(re.findall(rf"<code>(dbdyno trace {page} .*?)</code>", answer.text)[-1]))
    said = json.loads(dbdyno(*words[1:], "--format", "json").stdout)
    assert json.loads(there.get(f"{address}&format=json").body) == said and said[holds]
    assert len(there.get(f"{address}&format=csv").text.splitlines()) > 1


def test_the_longest_waits_have_their_place_in_the_file(there: Browser) -> None:
    words = Seen(there.get("/waits?id=orders&event=log+file+sync").text).words
    place = re.search(r"orders\.trc:(\d+)", words)
    assert place and "nam='log file sync'" in ORDERS.read_text().splitlines()[int(place[1]) - 1]


@pytest.mark.parametrize(
    "asked",
    (
        *("/tree?id=orders&call=-1", "/tree?id=orders&call=nine", "/tree?id=orders&call=1&statement=x"),
        *("/tree?id=orders&line=nowhere", "/waits?id=orders&event=none", "/statements?id=orders&sort=colour"),
    ),
)
def test_what_a_trace_does_not_hold_is_refused_in_words(there: Browser, asked: str) -> None:
    answer = there.get(asked)
    assert answer.status == 404 and "This could not be shown" in answer.text


@pytest.mark.parametrize("by", ("nonsense(", "'; drop table x", "no_such_column"))
def test_an_expression_that_is_none_is_refused_in_words(there: Browser, by: str) -> None:
    answer = there.get(f"/profile?id=orders&by={quote(by)}")
    assert answer.status == 404 and "This could not be shown" in answer.text


def test_runs_on_a_model_are_listed_together(there: Browser) -> None:
    page = Seen(there.get("/runs?target=model%3Aexadata-x2").text)
    links = [one for one in page.links if one.startswith("/run?id=")]
    assert len(links) == 1 and "commits by sessions on exadata-x2" in page.words
    run = Seen(there.get(links[0]).text)
    assert "/runs?target=model%3Aexadata-x2" in run.links


def test_a_saved_page_of_power_cuts_is_shown_and_what_is_no_page_is_not(there: Browser) -> None:
    home = Seen(there.get("/").text)
    assert "/saved?name=cuts.json" in home.links and "survived" in home.words
    assert not {"notes.json", "torn.json", "link.json"} & set(re.findall(r"\w+\.json", home.words))
    page = Seen(there.get("/saved?name=cuts.json").text).words
    assert "Power cuts" in page and "1 power cuts" in page
    for name in ("link.json", "../kinds/runs/cuts.json", "torn.json"):
        assert there.get(f"/saved?name={quote(name)}").status == 404
    assert "cuts.json" in there.get("/search?q=cuts").text


@pytest.mark.drawn
def test_cells_are_a_heat_map_over_time(tmp_path: Path) -> None:
    run = recorded(tmp_path / "runs" / "rack")
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert f"/cells?id={run.id}" in Seen(there.get(f"/run?id={run.id}").text).links
    page = there.get(f"/cells?id={run.id}")
    assert page.status == 200, Seen(page.text).words
    assert "FL_IO_W" in page.text and "<svg" in page.text and "cel01" in page.text
    rows = there.get(f"/cells?id={run.id}&format=csv").text.splitlines()
    assert rows[0] == "cell,from_s,to_s,value,unit" and len(rows) == 1 + 2 * 5
    assert there.get(f"/cells?id={run.id}&format=svg").body.startswith(b"<svg")
    assert there.get("/cells?id=nothing").status == 404
