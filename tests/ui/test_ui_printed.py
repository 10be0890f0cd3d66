"""Every page shows the equivalent command for a terminal: `dbdyno ui --page` if there is no other."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path

import pytest
from asking import Browser

from command_line import dbdyno, succeeded


def command_of(page: str) -> list[str]:
    """Return the arguments of the command at the foot of a page."""
    return shlex.split(html.unescape(re.findall(r"<code>(dbdyno .*?)</code>", page)[-1]))


@pytest.mark.parametrize("address", ("/", "/latest", "/search?q=stock", "/compare", "/trend", "/cells?id=nothing"))
def test_a_page_without_a_command_of_its_own_names_the_one_that_prints_it(browser_of: Browser, address: str) -> None:
    answer = browser_of.get(address)
    if answer.status == 404:
        assert "On a terminal" not in answer.text
        return
    assert command_of(answer.text)[:2] == ["dbdyno", "ui"]
    assert command_of(answer.text)[-2:] == ["--page", address]


def test_the_command_of_a_search_gives_its_rows(browser_of: Browser) -> None:
    words = command_of(browser_of.get("/search?q=stock").text)
    said = succeeded(*words[1:], "--format", "csv")
    assert said.stdout == browser_of.get("/search?q=stock&format=csv").text
    assert "update stock set" in dbdyno(*words[1:]).stdout


def test_a_page_is_written_as_a_picture_and_a_mistake_names_the_pages(folder: Path, tmp_path: Path) -> None:
    where = ("ui", "--runs", folder / "runs", "--store", folder / "snaps")
    succeeded(*where, "--page", "/runs", "-o", tmp_path / "runs.svg")
    assert "nightly sort" in (tmp_path / "runs.svg").read_text()
    wrong = dbdyno(*where, "--page", "/nowhere")
    assert wrong.returncode != 0 and "/search" in wrong.stderr
    assert "--page" in dbdyno(*where, "--format", "csv").stderr


@pytest.mark.parametrize("address", ("/", "/search?q=stock", "/runs"))
def test_a_page_without_a_figure_has_a_picture_of_its_tables(browser_of: Browser, address: str) -> None:
    drawn = browser_of.get(address + ("&" if "?" in address else "?") + "format=svg")
    assert drawn.status == 200 and drawn.headers["content-type"].startswith("image/svg+xml")
    assert drawn.text.startswith("<svg") and (
        "stock" in drawn.text or "shop-db" in drawn.text or "nightly" in drawn.text
    )


@pytest.mark.drawn
def test_a_picture_of_tables_is_a_png_too(browser_of: Browser) -> None:
    assert browser_of.get("/search?q=stock&format=png").body.startswith(b"\x89PNG")


def test_a_search_finds_what_is_inside_runs_and_traces(folder: Path, tmp_path: Path) -> None:
    orders = Path(__file__).resolve().parents[2] / "examples" / "orders.trc"
    assert dbdyno("trace", "import", orders, "--out", tmp_path / "runs" / "orders").returncode == 0
    there = Browser(tmp_path / "runs", tmp_path / "snaps")
    found = json.loads(there.get("/search?q=update+SEQ&format=json").body)
    assert {one["section"] for one in found} == {"inside"}
    assert any(str(one["value"]).lower().startswith("update seq") for one in found if one["column"] == "text"), found
    page = there.get("/search?q=update+SEQ").text
    link = html.unescape(re.findall(r'href="(/profile\?id=orders[^"]*where[^"]*)"', page)[0])
    assert there.get(link).status == 200
    runs = Browser(folder / "runs", folder / "snaps")
    assert "arms.2.name" in runs.get("/search?q=64MB").text or "64MB" in runs.get("/search?q=64MB").text


def test_a_folder_that_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    done = dbdyno("ui", "--page", "/", "--runs", tmp_path / "rnus", "--store", folder / "snaps")
    assert done.returncode == 0 and "shop-db" in done.stdout
    said = " ".join(done.stderr.split())
    assert f"note: --runs: folder {tmp_path / 'rnus'} does not exist; its pages are empty" in said
    assert "--store" not in done.stderr
