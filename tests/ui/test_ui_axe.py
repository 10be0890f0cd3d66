"""axe-core finds no barrier in any view: WCAG 2.1 AA and best practices, light and dark, narrow and wide."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import starlette  # noqa: F401 - skips where it is not installed
from run_kinds import recorded
from sites import Site, all_read, running_site

import chromium
from chromium import browser, running_browser  # noqa: F401 - fixtures

AXE = Path(__file__).resolve().parents[2] / "target" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    chromium.needed,
    pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not in target/axe: make setup-test (needs npm)"),
]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
QUEUE = "stretch=2026-11-26T14:02:00..2026-11-26T14:12:00"
WINDOW = "window=2026-11-26T13:50:00..2026-11-26T14:14:00"
FEW = ("/", f"/server?{WINDOW}&{QUEUE}&where=class%3Dlock", "/sql")
REST = (
    *("/runs", "/search?q=stock", "/compare", "/trend", "/advice?stretch=1d", "/run?id=nothing"),
    *(f"/statement?id=1002&{QUEUE}", f"/blocking?{WINDOW}&{QUEUE}", f"/report?{QUEUE}", "/experiment?id=1002"),
    f"/periods?{QUEUE}&against=2026-11-26T13:50:00..2026-11-26T14:00:00",
    "/sql?on=snap:/shop-db:5432&query=select+queryid,+calls+from+pg_stat_statements",
)
KINDS = (
    *("/run?id=orders", "/profile?id=orders&by=statement,event", "/tree?id=orders", "/statements?id=orders"),
    *("/waits?id=orders&event=log+file+sync", "/run?id=rack", "/cells?id=rack", "/saved?name=cuts.json"),
    *("/runs?target=model%3Aexadata-x2", "/tree?id=orders&call=-1"),
)
"""Addresses of views on the runs of `run_kinds`."""
LOOKS = ((1400, "light"), (400, "dark"))
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Script that waits until the page is painted; before that it can mix colours of both schemes."""


@pytest.fixture(scope="module")
def site(folder: Path, kinds: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run the pages on the planted day and on runs of every kind."""
    own = tmp_path_factory.mktemp("axe")
    shutil.copytree(folder / "snaps", own / "snaps")
    for runs in (folder / "runs", kinds / "runs"):
        shutil.copytree(runs, own / "runs", symlinks=True, dirs_exist_ok=True)
    recorded(own / "runs" / "rack")
    with running_site(own / "runs", own / "snaps") as running:
        yield running


def barriers(page: chromium.Page) -> list[tuple[str, list[str]]]:
    """Return the barriers that axe-core finds: the rule, and the places."""
    if not page.evaluate("typeof axe == 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "; true")
    options = json.dumps({"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": TAGS}})
    run = f"{DRAWN}.then(() => axe.run(document, {options})).then(found => found.violations)"
    answer = page.call("Runtime.evaluate", expression=run, awaitPromise=True, returnByValue=True)
    return [
        (one["id"], [f"{node['target']}: {node['html'][:120]}" for node in one["nodes"]][:4])
        for one in answer["result"]["value"]
    ]


def free_of_barriers(browser: chromium.Browser, site: Site, path: str, looks: object = LOOKS) -> None:  # noqa: F811
    page = browser.open(site.address(path))
    all_read(page)
    for width, scheme in looks:  # type: ignore[attr-defined]
        page.look(width=width, scheme=scheme)
        if barriers(page):
            time.sleep(1)  # a busy machine paints the new scheme later: what is a barrier is one still
        assert barriers(page) == [], (path, width, scheme)


@pytest.mark.parametrize("path", FEW)
def test_axe_finds_no_barrier(browser, site, path) -> None:  # noqa: F811
    free_of_barriers(browser, site, path)


@pytest.mark.soak
@pytest.mark.parametrize("path", (*FEW, *REST, *KINDS))
def test_axe_finds_no_barrier_in_any_view_at_any_width(browser, site, path) -> None:  # noqa: F811
    looks = [(width, scheme) for width in (400, 1400, 2560) for scheme in ("light", "dark")]
    free_of_barriers(browser, site, path, looks)


def test_axe_would_find_one(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address("/runs"))
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input type=text>')")
    assert "label" in [rule for rule, _ in barriers(page)]
