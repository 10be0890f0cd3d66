"""Every view shows what its command shows, in every format; a wrong address gets an explanation."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from asking import Browser, Seen, is_tame
from laboratory import FIRST_S, MINUTES

from command_line import dbdyno
from dbdyno.snapshot.sessions.report import HEADINGS
from dbdyno.ui.stretch import iso
from fresh_dice import fresh_dice
from soaked import first

pytestmark = pytest.mark.drawn(drawn=False)
QUEUE = "stretch=2026-11-26T14:02..2026-11-26T14:12"


def run_of(folder: Path, which: int = 0) -> str:
    return sorted(path.parent.name for path in (folder / "runs").glob("*/manifest.json"))[which]


def every(folder: Path) -> list[str]:
    one, other = run_of(folder), run_of(folder, 1)
    return [
        *("/", "/runs", "/search?q=stock", "/search", f"/run?id={one}", "/compare", f"/compare?a={one}&b={other}"),
        *("/trend", f"/trend?id={one}", "/server", f"/server?{QUEUE}", "/server?by=event&where=class%3Dlock"),
        *(f"/report?{QUEUE}", f"/statement?id=1002&{QUEUE}", f"/blocking?{QUEUE}"),
        f"/periods?{QUEUE}&against=2026-11-26T13:50..2026-11-26T14:00",
        *("/latest", f"/advice?{QUEUE}", f"/server?{QUEUE}&by=table", f"/server?{QUEUE}&by=index"),
        f"/experiment?id=1002&{QUEUE}",
        f"/sql?on=snap:/shop-db:5432&query=select+queryid,+calls+from+pg_stat_statements&{QUEUE}",
        *("/sql", f"/sql?run={one}&query=select+arm,+count(*)+n+from+calls+group+by+arm"),
    ]


def alike(one: object, other: object) -> bool:
    """Return True if two values are equal except for the last digits of sums, which threads add up in any order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def test_every_view_is_a_page_without_script_of_its_own_and_writes_nothing(browser_of: Browser, folder: Path) -> None:
    def files() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in (folder / "runs").rglob("*")}

    before = files()
    for address in every(folder):
        answer = browser_of.get(address)
        assert answer.status == 200, (address, answer.text[-1500:])
        is_tame(answer.text)
        seen = Seen(answer.text)
        assert sum(tag == "h1" for tag, _ in seen.tags) == 1, address
        assert answer.headers["content-type"].startswith("text/html")
    assert files() == before


@pytest.mark.soak
def test_every_link_of_every_view_leads_somewhere(browser_of: Browser, folder: Path) -> None:
    links = {one for address in every(folder) for one in Seen(browser_of.get(address).text).links}
    dead = {}
    for one in sorted(links):
        if one.startswith("#") or re.search(r"format=|/plans\?|against=|window=(30d|7d)|[?&]stretch=(7d|30d)", one):
            continue
        answer = browser_of.get(one)
        if answer.status != 200:
            dead[one] = Seen(answer.text).words[:300]
    assert dead == {}


def test_sessions_of_random_stretches_are_those_of_the_command(browser_of: Browser, folder: Path) -> None:
    dice = fresh_dice()
    for _ in range(2):
        low, high = sorted(dice.sample(range(MINUTES + 1), 2))
        by = dice.choice(tuple(HEADINGS))
        where = dice.choice((None, "class=lock", "application=web", "table=public.stock"))
        first, last = (FIRST_S + one * 60 for one in (low, high))
        query = {"stretch": f"{iso(first * 1e6)}..{iso(last * 1e6)}", "by": by, "format": "json"}
        query |= {"where": where} if where else {}
        shown = json.loads(browser_of.get(f"/server?{urlencode(query)}").body)
        words = ["snap", "sessions", low + 1, high + 1, "--by", by, "--top", 25, "--store", folder / "snaps"]
        words += ["--where", where] if where else []
        said = json.loads(dbdyno(*words, "--format", "json").stdout)
        assert alike(shown, said), (query, words)


@pytest.mark.parametrize("kind", first("report", "statement", "blocking", "advice", count=2))
def test_other_views_of_random_stretches_are_those_of_their_commands(
    browser_of: Browser, folder: Path, kind: str
) -> None:
    dice = fresh_dice()
    low, high = sorted(dice.sample(range(MINUTES + 1), 2))
    statement = dice.choice(("1001", "1002", "1003", "1004"))
    words: dict[str, list[object]] = {
        "report": ["snap", "report", low + 1, high + 1],
        "statement": ["snap", "statement", statement, low + 1, high + 1],
        "blocking": ["snap", "sessions", low + 1, high + 1, "--top", 10],
        "advice": ["advise", f"snap:{low + 1}..{high + 1}"],
    }
    first_us, last_us = ((FIRST_S + one * 60) * 1e6 for one in (low, high))
    query = {"stretch": f"{iso(first_us)}..{iso(last_us)}", "format": "json"}
    query |= {"id": statement} if kind == "statement" else {}
    shown = json.loads(browser_of.get(f"/{kind}?{urlencode(query)}").body)
    said = json.loads(dbdyno(*words[kind], "--store", folder / "snaps", "--format", "json").stdout)
    if kind == "blocking":
        shown, said = shown["sections"][0], said["sections"][1]
    assert alike(shown, said), (query, words[kind])


@pytest.mark.parametrize("place", first("run", "report", "statement", "periods", "server", count=2))
def test_a_view_names_the_command_that_gives_the_same(browser_of: Browser, folder: Path, place: str) -> None:
    import shlex

    address = next(one for one in every(folder) if one.startswith(f"/{place}?"))
    page = browser_of.get(address).text
    command = re.findall(r"<code>(dbdyno [^<]*)</code>", page)[-1].replace("&#39;", "'")
    words = shlex.split(command)[1:]
    if words[-2:] == ["--format", "text"]:
        del words[-2:]
    said = json.loads(dbdyno(*words, "--format", "json").stdout)
    shown = json.loads(browser_of.get(f"{address}&format=json").body)
    assert alike(shown, said)


@pytest.mark.drawn
def test_a_view_has_its_rows_and_its_picture(browser_of: Browser) -> None:
    rows = browser_of.get(f"/server?{QUEUE}&format=csv")
    assert rows.headers["content-type"].startswith("text/csv")
    assert "attachment" in rows.headers["content-disposition"]
    assert "update stock set available" in rows.text
    picture = browser_of.get(f"/server?{QUEUE}&format=svg")
    assert (picture.headers["content-type"], picture.body[:4]) == ("image/svg+xml", b"<svg")
    assert "script" not in picture.headers["content-security-policy"]
    assert browser_of.get(f"/server?{QUEUE}&format=png").body[:4] == b"\x89PNG"


def test_rows_as_arrow_are_those_of_csv(browser_of: Browser) -> None:
    ipc = pytest.importorskip("pyarrow.ipc", reason="pyarrow is not installed")
    table = ipc.open_stream(browser_of.get("/runs?format=arrow").body).read_all()
    assert table.column("status").to_pylist() == ["complete", "complete"]


def test_a_cell_of_a_file_is_no_formula(folder: Path) -> None:
    from dbdyno.ui.answers import encoded_rows

    assert encoded_rows([{"name": "=cmd|' /C calc'!A0"}], "csv") == b"name\n'=cmd|' /C calc'!A0\n"


def test_the_list_of_runs_is_filtered_by_the_address(browser_of: Browser, folder: Path) -> None:
    one = run_of(folder)
    assert one in browser_of.get("/runs?q=NIGHTLY+sort&status=complete").text
    for query in ("q=nothing+like+it", "status=aborted", "kind=cells"):
        page = browser_of.get(f"/runs?{query}").text
        assert one not in page and "There are no runs here" in page


def test_a_click_on_a_value_filters_and_keeps_stretch_and_dimension(browser_of: Browser) -> None:
    page = browser_of.get(f"/server?{QUEUE}&by=class&where=application%3Dweb").text
    link = next(one for one in Seen(page).links if "class%3Dlock" in one)
    assert "stretch=2026-11-26T14%3A02%3A00" in link and "application%3Dweb" in link
    kept = browser_of.get(link).text
    assert "class: lock ×" in kept and "application: web ×" in kept


def test_a_statement_leads_to_its_page_and_back(browser_of: Browser) -> None:
    page = Seen(browser_of.get(f"/server?{QUEUE}").text)
    link = next(one for one in page.links if one.startswith("/statement?") and "1002" in one)
    words = Seen(browser_of.get(link).text).words
    assert "update stock set available" in words and "By event" in words
    assert "transactionid" in words


def test_a_search_finds_statements_tables_settings_and_runs(browser_of: Browser) -> None:
    words = Seen(browser_of.get("/search?q=stock").text).words
    assert "public.stock" in words and "update stock set" in words and "stock_pkey" in words
    assert "shared_buffers" in browser_of.get("/search?q=shared+BUFF").text
    assert "nightly sort" in browser_of.get("/search?q=nightly").text
    assert "Nothing for zzz" in browser_of.get("/search?q=zzz").text


@pytest.mark.parametrize(
    ("address", "words"),
    (
        ("/run?id=nothing", "there is no run 'nothing'"),
        ("/server?stretch=yesterday", "is not an interval"),
        ("/server?stretch=2026-11-26T15:00..2026-11-26T14:00", "is not an interval"),
        ("/server?target=other", "there is no such server"),
        ("/statement?id=1", "does not occur in this interval"),
        ("/periods?against=yesterday", "there are no snapshots of yesterday"),
        ("/plans", "no plans of"),
        ("/runs?format=exe", "is not a format"),
        ("/nowhere", "there is no page"),
    ),
)
def test_a_mistake_is_answered_with_what_where_and_next(browser_of: Browser, address: str, words: str) -> None:
    answer = browser_of.get(address)
    assert answer.status == 404
    seen = Seen(answer.text)
    assert words in seen.words and "Next:" in seen.words
    is_tame(answer.text)


def test_an_empty_laboratory_says_how_to_begin(tmp_path: Path) -> None:
    words = Seen(Browser(tmp_path / "runs", tmp_path / "snaps").get("/").text).words
    assert "dbdyno snap watch" in words and "dbdyno run" in words


def test_the_console_answers_one_select_and_nothing_else(browser_of: Browser, folder: Path) -> None:
    run = run_of(folder)
    query = "select arm, count(*) as n from calls group by arm order by arm"
    answer = browser_of.get(f"/sql?run={run}&format=csv&query={quote(query)}")
    said = dbdyno("sql", query, "--run", run, "--runs", folder / "runs", "--format", "csv").stdout
    assert answer.text == said
    for bad in (
        "delete from calls",
        "copy calls to '/tmp/x'",
        "select * from read_csv('/etc/passwd')",
        "select 1; select 2",
    ):
        page = browser_of.get(f"/sql?run={run}&query={quote(bad)}")
        assert "This query was not answered" in page.text, bad
        assert "root:" not in page.text


def test_a_link_of_another_site_fills_the_console_and_asks_nothing(browser_of: Browser, folder: Path) -> None:
    address = f"/sql?run={run_of(folder)}&query={quote('select 41 + 1 as answer')}"
    came = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    assert "select 41 + 1" in browser_of.get(address, *came).text
    assert ">42<" not in browser_of.get(address, *came).text
    assert ">42<" in browser_of.get(address, ("sec-fetch-site", "same-origin")).text


def test_the_console_can_be_left_out(folder: Path) -> None:
    without = Browser(folder / "runs", folder / "snaps", sql=False)
    assert without.get("/sql?query=select+1").status == 404


def test_a_query_that_takes_too_long_is_stopped(
    browser_of: Browser, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.ui.routes.console.SECONDS", 0.05)
    slow = "select max(a.range * b.range) from range(1000000) a, range(1000000) b"
    assert "This query was not answered" in browser_of.get(f"/sql?run={run_of(folder)}&query={quote(slow)}").text


def test_a_store_that_grows_is_seen(folder: Path, tmp_path: Path) -> None:
    from planted_day import Day

    day = Day(tmp_path / "snaps")
    day.make(FIRST_S, FIRST_S + 180)
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert "13:53 UTC" in there.get("/").text
    day.step(FIRST_S + 240)
    assert "13:54 UTC" in there.get("/").text


def test_a_snapshot_that_was_half_there_when_the_store_was_read_is_seen_once_it_has_landed(tmp_path: Path) -> None:
    """The manifest lands last and changes no folder, so that an index of the moment before was taken for 20 s."""
    from planted_day import Day

    Day(tmp_path / "snaps").make(FIRST_S, FIRST_S + 180)
    manifest = tmp_path / "snaps" / "000004" / "manifest.json"
    manifest.rename(manifest.with_suffix(".aside"))
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert "13:52 UTC" in there.get("/").text
    manifest.with_suffix(".aside").rename(manifest)
    assert "13:53 UTC" in there.get("/").text


def test_a_database_server_that_was_restarted_is_said_on_its_page(tmp_path: Path) -> None:
    from planted_day import Day

    day = Day(tmp_path / "snaps")
    day.make(FIRST_S, FIRST_S + 180)
    day.started_us = (FIRST_S + 200) * 10**6
    for minute in (4, 5, 6):
        day.step(FIRST_S + minute * 60)
    page = Seen(Browser(tmp_path / "runs", tmp_path / "snaps").get("/server").text).words
    assert "restart" in page or "crash" in page


def test_a_torn_file_of_a_snapshot_costs_only_its_view(tmp_path: Path) -> None:
    from planted_day import Day

    Day(tmp_path / "snaps").make(FIRST_S, FIRST_S + 240)
    for path in (tmp_path / "snaps").rglob("pg_stat_statements.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    for address in ("/", "/server", "/report?stretch=1d", "/search?q=stock", "/server?by=table"):
        answer = there.get(address)
        assert answer.status == 200, (address, Seen(answer.text).words[:400])


def test_a_torn_snapshot_is_left_out_and_the_rest_shown(tmp_path: Path) -> None:
    from planted_day import Day

    Day(tmp_path / "snaps").make(FIRST_S, FIRST_S + 240)
    (tmp_path / "snaps" / "000003" / "manifest.json").write_text("{")
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    assert there.get("/").status == 200
    assert there.get("/server").status == 200
