"""Documentation site: its contents list every page, and a displayed page loads nothing from the network."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

import chromium
import dbdyno
from dbdyno.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
MADE = "reference/cli.md"
"""Page that is generated from the commands when the site is built."""
LOADED = {
    "apple-touch-icon",
    "dns-prefetch",
    "icon",
    "manifest",
    "modulepreload",
    "preconnect",
    "preload",
    "stylesheet",
}
"""Kinds of link in a page's head whose targets a browser requests by itself."""
ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
STYLED = re.compile(r"@import\s+(?:url\()?\s*[\"']?([^\"')\s;]+)|url\(\s*[\"']?([^\"')]+)", re.IGNORECASE)


class Asked(HTMLParser):
    """Addresses that a browser requests when it opens a page, and the page's anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        self.classes.update(given.get("class", "").split())
        self.addresses += [given[name] for name in ("src", "srcset", "poster") if name in given]
        self.addresses += styled(given.get("style", ""))
        if tag == "link" and LOADED & set(given.get("rel", "").lower().split()):
            self.addresses.append(given.get("href", ""))
        elif tag == "object":
            self.addresses.append(given.get("data", ""))


def styled(text: str) -> list[str]:
    """Return the addresses in a style sheet."""
    return [imported or shown for imported, shown in STYLED.findall(text)]


def contents() -> list[tuple[str, str]]:
    """Title and file of each entry of the contents."""
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    return re.findall(r'^ +- "?(.+?)"?: (\S+\.md)$', nav, re.MULTILINE)


def test_each_page_is_in_the_contents_once():
    pages = Counter(path.relative_to(DOCS).as_posix() for path in PAGES)
    assert Counter(file for _, file in contents()) == pages + Counter([MADE])


def test_no_two_pages_have_one_title():
    assert [title for title, count in Counter(title for title, _ in contents()).items() if count > 1] == []


def test_the_page_of_python_has_every_name_once():
    shown = re.findall(r"^::: dbdyno\.(\w+)$", (DOCS / "reference" / "python.md").read_text(), re.MULTILINE)
    assert Counter(shown) == Counter(dbdyno.__all__)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_what_goes_on_in_an_item_is_indented_by_four(path: Path) -> None:
    """A code host takes two for a further paragraph of an item; the site takes it out of the list."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"\n\n( {1,3}[^ \n].*)", text) == []


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link href="//fonts.example/a.css" rel="stylesheet">',
        '<img src="http://example/x.png">',
        '<p style="background: url(https://example/x.png)">',
    ],
)
def test_what_is_loaded_from_elsewhere_would_be_found(page: str) -> None:
    assert any(map(ELSEWHERE.match, Asked(page).addresses))


def test_a_link_to_elsewhere_loads_nothing():
    assert Asked('<a href="https://example/">x</a><link rel="canonical" href="https://example/">').addresses == []
    assert styled("@import 'a.css'; b { background: url(data:x) }") == ["a.css", "data:x"]


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="mkdocs is not installed: make docs installs it")
def test_the_site_is_built_and_loads_nothing_from_the_network(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    pages = {path.relative_to(tmp_path).as_posix(): Asked(path.read_text()) for path in tmp_path.rglob("*.html")}
    assert len(pages) > len(PAGES)
    asked = {(name, address) for name, page in pages.items() for address in page.addresses}
    for path in tmp_path.rglob("*.css"):
        asked |= {(path.name, address) for address in styled(path.read_text())}
    assert len(asked) > len(pages)
    assert {one for one in asked if ELSEWHERE.match(one[1])} == set()
    # The theme would fetch a program for drawings of this kind.
    assert [name for name, page in pages.items() if "mermaid" in page.classes] == []

    commands = pages["reference/cli.html"].anchors
    assert {f"dbdyno-{name}" for name in COMMANDS} <= commands
    assert {"dbdyno-move-source", "dbdyno-snap-take", "dbdyno-model-cells"} <= commands
    assert {f"dbdyno.{name}" for name in dbdyno.__all__} <= pages["reference/python.html"].anchors

    if chromium.find():
        page = request.getfixturevalue("browser").open(tmp_path / "index.html")
        assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
