"""Contents of a period in tabs: tables and indexes too; combined filters; its advice, plans and experiments."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlencode

import pytest
from asking import Browser, Seen
from planted_day import BEGIN_S, DAY_S, LOGGED_S, ORDERS, TARGET, Day, keep_plans

from command_line import dbdyno, succeeded
from dbdyno.study.plan.file import parse_plan
from dbdyno.ui.stretch import iso

pytestmark = pytest.mark.drawn(drawn=False)
QUEUE = "stretch=2026-11-26T14:02..2026-11-26T14:12"
TABS = (
    *("Statements", "Waits", "Wait classes", "Sessions", "Users", "Databases"),
    *("Applications", "Clients", "Tables", "Indexes"),
)


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Snapshots around the drop of the index, with the log of that time."""
    made = tmp_path_factory.mktemp("dropped")
    day = Day(made / "snaps")
    day.make(BEGIN_S + DAY_S + 10 * 3600, BEGIN_S + DAY_S + 10 * 3600 + 1500)
    keep_plans(day.store, made)
    return made


@pytest.fixture(scope="module")
def of_dropped(dropped: Path) -> Browser:
    return Browser(dropped / "runs", dropped / "snaps")


def table_of(browser: Browser, by: str, *where: str) -> list[dict[str, object]]:
    query = [("stretch", QUEUE.partition("=")[2]), ("by", by), ("format", "json"), *(("where", one) for one in where)]
    model = json.loads(browser.get(f"/server?{urlencode(query)}").body)
    tables = [one for one in model["sections"][0]["tables"] if one["title"].startswith("By ")]
    return list(tables[0]["rows"]) if tables else []


def test_a_stretch_has_a_tab_for_everything_it_holds(browser_of: Browser) -> None:
    page = browser_of.get(f"/server?{QUEUE}").text
    tabs = re.search(r'<nav class="tabs".*?</nav>', page, re.S)
    assert tabs and tuple(re.findall(r">([^<]+)</a>", tabs[0])) == TABS


def test_tables_have_their_sessions_and_their_counters(browser_of: Browser) -> None:
    rows = {row["name"]: row for row in table_of(browser_of, "table")}
    statements = {row["name"]: row for row in table_of(browser_of, "statement")}
    stock = rows["public.stock"]
    named = sum(float(str(row["aas"])) for row in statements.values() if "stock" in str(row["text"]))
    assert stock["aas"] == pytest.approx(named)
    assert int(str(stock["updated"])) > 0 and rows["public.order_lines"]["updated"] == 0
    assert next(iter(rows)) == "public.stock", "the table with most sessions is first"


def test_a_table_filters_sessions_and_combines_with_other_filters(browser_of: Browser) -> None:
    every = {row["name"] for row in table_of(browser_of, "statement")}
    kept = {row["name"] for row in table_of(browser_of, "statement", "table=public.stock")}
    assert "1002" in kept and "1003" in every - kept
    assert table_of(browser_of, "event", "table=public.stock", "class=log write") == []
    assert [row["name"] for row in table_of(browser_of, "class", "table=public.stock", "class=lock")] == ["lock"]
    assert {row["table"] for row in table_of(browser_of, "index", "table=public.stock")} == {"public.stock"}


def test_a_click_on_a_table_or_an_index_filters_by_the_table(browser_of: Browser) -> None:
    for by in ("table", "index"):
        page = Seen(browser_of.get(f"/server?{QUEUE}&by={by}").text)
        link = next(one for one in page.links if "where=table%3Dpublic.stock" in one)
        assert "table: public.stock ×" in browser_of.get(link).text


def test_the_command_names_tables_as_the_page_does(browser_of: Browser, folder: Path) -> None:
    page = browser_of.get(f"/server?{QUEUE}&by=table&where=table%3Dpublic.stock").text
    words = shlex.split(re.findall(r"<code>(dbdyno [^<]*)</code>", page)[-1])
    assert words[5:7] == ["--by", "table"] and "table=public.stock" in words
    rows = json.loads(dbdyno(*words[1:], "--format", "json").stdout)["sections"][0]["tables"][0]["rows"]
    assert [row["name"] for row in rows] == ["public.stock"]
    refused = dbdyno("snap", "sessions", 1, 2, "--where", "index=x", "--store", folder / "snaps")
    assert refused.returncode == 2 and "NAME=VALUE" in refused.stderr


def test_both_plans_stand_side_by_side_with_rows_time_and_what_was_estimated(
    of_dropped: Browser, dropped: Path
) -> None:
    model = json.loads(of_dropped.get(f"/statement?id={ORDERS}&format=json").body)
    (trees,) = (one for one in model["sections"] if one["name"] == "trees")
    old, new = (one["rows"] for one in trees["tables"])
    assert [row["tree"] for row in old] == ["Limit", "Sort", "Index Scan using orders_customer_id_idx"]
    assert [row["depth"] for row in new] == [0, 1, 2]
    scan = new[-1]
    assert (scan["tree"], scan["verdict"], scan["rows"], scan["planned"]) == (
        "Seq Scan on orders",
        "only here",
        410,
        31,
    )
    assert scan["off"] == pytest.approx(410 / 31)
    assert sum(row["own"] for row in new) == pytest.approx(168.910e6), "own times add up to the execution's"
    assert scan["own"] == pytest.approx(168.2e6)
    said = dbdyno("snap", "statement", ORDERS, 1, "last", "--store", dropped / "snaps", "--format", "table").stdout
    assert "PLANS SIDE BY SIDE" in said and "Seq Scan on orders" in said
    page = of_dropped.get(f"/statement?id={ORDERS}").text
    assert page.count('<article class="statement"') >= 2


def test_a_statement_of_whose_plans_nothing_is_kept_has_no_trees(browser_of: Browser) -> None:
    model = json.loads(browser_of.get(f"/statement?id=1002&{QUEUE}&format=json").body)
    assert "trees" not in [one["name"] for one in model["sections"]]


def test_an_older_kept_log_without_numbers_still_has_its_trees(dropped: Path, tmp_path: Path) -> None:
    import shutil

    import duckdb

    from dbdyno.evidence.files import read_json, write_json
    from dbdyno.snapshot.store.parquet import file_checksum

    shutil.copytree(dropped / "snaps", tmp_path / "snaps")
    (path,) = (tmp_path / "snaps" / "plans").glob("*/log_plans.parquet")
    duckdb.sql(f"copy (select * exclude (nodes, nodes_us) from '{path}') to '{path}.new' (format parquet)")
    path.with_name(path.name + ".new").replace(path)
    manifest = read_json(path.with_name("manifest.json"))
    manifest["sums"]["log_plans"] = file_checksum(path)
    write_json(path.with_name("manifest.json"), manifest)
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    model = json.loads(there.get(f"/statement?id={ORDERS}&format=json").body)
    (trees,) = (one for one in model["sections"] if one["name"] == "trees")
    assert [one["rows"][-1]["tree"] for one in trees["tables"]][-1] == "Seq Scan on orders"
    assert "log_analyze" in str(trees["not_measured"])


def test_advice_on_a_stretch_is_that_of_the_command(of_dropped: Browser, dropped: Path) -> None:
    page = of_dropped.get("/advice?stretch=1d").text
    words = shlex.split(re.findall(r"<code>(dbdyno advise [^<]*)</code>", page)[-1])
    said = json.loads(dbdyno(*words[1:], "--format", "json").stdout)
    assert json.loads(of_dropped.get("/advice?stretch=1d&format=json").body) == said
    assert said["findings"], "the estimate that was wrong is found"


def test_home_and_a_statement_s_page_show_their_advice(of_dropped: Browser) -> None:
    home = Seen(of_dropped.get("/latest?part=1").text)
    assert TARGET in home.words and any(one.startswith("/advice?") and "#advice-1" in one for one in home.links)
    assert "orders_customer_id_idx" in home.words, "and what happened"
    assert 'data-later="/latest?part=1"' in of_dropped.get("/").text
    page = of_dropped.get(f"/statement?id={ORDERS}").text
    assert f"statement={ORDERS}&amp;part=1" in page
    mine = of_dropped.get(f"/advice?stretch=1d&statement={ORDERS}&part=1").text
    assert "logged" in mine or "estimate" in mine
    other = of_dropped.get("/advice?stretch=1d&statement=1003&part=1").text
    assert "No rule has found anything" in other and "<html" not in other


def test_an_experiment_of_a_statement_is_a_plan_that_parses_and_the_command_s(
    of_dropped: Browser, dropped: Path
) -> None:
    page = Seen(of_dropped.get(f"/statement?id={ORDERS}").text)
    link = next(one for one in page.links if one.startswith("/experiment?"))
    shown = of_dropped.get(link).text
    said = succeeded("snap", "statement", ORDERS, 1, "last", "--experiment", "--store", dropped / "snaps")
    plan = parse_plan(said.stdout, dropped / "plan.toml")
    assert [arm.name for arm in plan.arms] == ["as it is", "changed"]
    assert "where customer_id = :v1 order by placed_at desc limit :v2;" in said.stdout
    assert "customer_id = :v1" in shown and "as it is" in shown
    rows = of_dropped.get(f"{link}&format=json").text
    assert said.stdout in json.loads(rows)[0]["plan"]


@pytest.mark.parametrize(
    ("address", "words"),
    (
        ("/experiment?id=77", "is not known"),
        ("/experiment?finding=99", "there is no finding"),
        ("/advice?target=other", "there is no such server"),
        ("/saved?name=x.json", "there is no saved page"),
    ),
)
def test_a_mistake_is_answered_in_words(of_dropped: Browser, address: str, words: str) -> None:
    answer = of_dropped.get(address)
    assert answer.status == 404 and words in Seen(answer.text).words
    part = of_dropped.get(f"{address}&part=1")
    assert part.status == 404 and words in part.text and "<html" not in part.text


def test_the_log_of_the_day_lies_within_it() -> None:
    assert iso(LOGGED_S[0] * 1e6) == "2026-11-26T09:30:00"
