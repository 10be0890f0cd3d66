"""A real browser on the real server: choose by drag and keys, go back, share a link, follow what lands."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from asking import starlette  # noqa: F401 - skips where it is not installed
from laboratory import FIRST_S, MINUTES
from planted_day import Day

import chromium
from chromium import browser, running_browser  # noqa: F401 - fixtures
from soaked import first

pytestmark = chromium.needed
WINDOW = "window=2026-11-26T13:50:00..2026-11-26T14:14:00"
DEADLINE_S = 30.0


@dataclass
class Site:
    """A server of the pages: where it is, and its folders."""

    base: str
    token: str
    runs: Path
    store: Path

    def address(self, path: str) -> str:
        return f"{self.base}{path}{'&' if '?' in path else '?'}token={self.token}"


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    own = tmp_path_factory.mktemp("site")
    shutil.copytree(folder / "snaps", own / "snaps")
    (own / "runs").mkdir()
    words = ["ui", "--runs", own / "runs", "--store", own / "snaps", "--port", "0", "--no-browser"]
    command = [sys.executable, "-m", "dbdyno", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        base, _, token = server.stdout.readline().strip().partition("/?token=")
        yield Site(base, token, own / "runs", own / "snaps")
        server.terminate()
        server.wait(10)


def until(true: Callable[[], object]) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def drag(page: chromium.Page, low: float, high: float, *, shift: bool = False) -> None:
    """Drags over a part of the plot."""
    box = page.evaluate(
        "(() => { const it = [...document.querySelectorAll('.plot [data-left]')].find((one) => one.offsetParent);"
        " it.scrollIntoView({block: 'center'}); const b = it.getBoundingClientRect();"
        " return [b.left + b.width * it.dataset.left, b.width * it.dataset.width, b.top + b.height / 2]; })()"
    )
    held = {"modifiers": 8 if shift else 0, "button": "left", "y": box[2]}
    for kind, part in (("mousePressed", low), ("mouseMoved", high), ("mouseReleased", high)):
        page.call("Input.dispatchMouseEvent", type=kind, x=box[0] + part * box[1], clickCount=1, buttons=1, **held)


def query(page: chromium.Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.search)"))


def words(page: chromium.Page) -> str:
    return str(page.evaluate("(document.getElementById('content') || {}).innerText || ''"))


def test_a_drag_chooses_a_stretch_which_a_link_shows_to_others_and_back_undoes(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address(f"/server?{WINDOW}"))
    until(lambda: "Load profile" in words(page))
    before = words(page)
    assert "token" not in page.evaluate("location.href"), "the token is in no address that is shared"
    drag(page, 0.0, 0.25)
    until(lambda: "stretch=2026-11-26T13:50:00..2026-11-26T13:56:00" in query(page))
    until(lambda: "Load profile" in words(page) and page.evaluate("!document.querySelector('#content.loading')"))
    chosen = words(page)
    assert "13:56:00" in page.evaluate("document.querySelector('.stretch').innerText")
    assert chosen != before
    shared = page.evaluate("location.pathname + location.search")
    other = browser.open(site.address(shared))
    until(lambda: "Load profile" in words(other))
    assert words(other) == chosen
    page.evaluate("history.back()")
    until(lambda: "stretch" not in query(page) and "Load profile" in words(page))
    assert words(page) == before
    assert page.problems == [] and other.problems == []


def test_keys_choose_zoom_and_drop_and_a_second_stretch_is_compared(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address(f"/server?{WINDOW}&stretch=2026-11-26T13:52:00..2026-11-26T13:54:00"))

    def press(key: str, modifiers: int = 0) -> None:
        page.evaluate("document.querySelector('.plot').focus()")
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers)

    press("ArrowRight")
    press("ArrowRight", 8)
    press("Enter")
    until(lambda: "stretch=2026-11-26T13:52:24..2026-11-26T13:54:48" in query(page))
    press("Escape")
    until(lambda: "stretch" not in query(page))
    drag(page, 0.0, 0.2)
    until(lambda: "stretch" in query(page))
    drag(page, 0.6, 0.9, shift=True)
    until(lambda: page.evaluate("location.pathname + document.readyState") == "/periodscomplete")
    assert "against=2026-11-26T14:04:24..2026-11-26T14:11:36" in query(page)
    until(lambda: "What happened" in words(page))
    assert page.problems == []


PATHS = (f"/server?{WINDOW}", "/", "/runs", f"/blocking?{WINDOW}", "/statement?id=1002", "/sql")


@pytest.mark.parametrize("path", first(*PATHS))
def test_nothing_is_wider_than_the_window_and_nothing_complains(browser, site, path) -> None:  # noqa: F811
    page = browser.open(site.address(path))
    for width, scheme in ((2560, "light"), (400, "dark")):
        page.look(width=width, scheme=scheme)
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth"), width
    foreign = [one for one in page.requests if not one.startswith((site.base, "data:"))]
    assert page.problems == [] and foreign == []


def test_an_open_page_follows_what_lands(browser, site, folder) -> None:  # noqa: F811
    page = browser.open(site.address("/"))
    assert "No runs here" in words(page) and "14:14 UTC" in words(page)
    day = Day(site.store)
    day.step(FIRST_S + (MINUTES + 1) * 60)
    until(lambda: "14:15 UTC" in words(page))
    run = next((folder / "runs").iterdir())
    shutil.copytree(run, site.runs / f".{run.name}")
    (site.runs / f".{run.name}").rename(site.runs / run.name)
    until(lambda: "nightly sort" in words(page))
    history = browser.open(site.address("/server?window=1h"))
    until(lambda: "Load profile" in words(history))
    assert "14:15:00" in history.evaluate("document.querySelector('.stretch').innerText")
    day.step(FIRST_S + (MINUTES + 2) * 60)
    until(lambda: "14:16:00" in history.evaluate("document.querySelector('.stretch').innerText"))
    until(lambda: "Load profile" in words(history))
    assert page.problems == [] and history.problems == []


@pytest.mark.soak
def test_ten_viewers_at_once_are_all_answered(site) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from urllib.request import Request, urlopen

    def ask(at: int) -> int:
        path = f"/server?stretch=2026-11-26T13:5{at % 9}:00..2026-11-26T14:0{at % 9}:00"
        cookie = f"dbdyno-{site.base.rpartition(':')[2]}={site.token}"
        with urlopen(Request(site.base + path, headers={"Cookie": cookie}), timeout=60) as answer:
            return int(answer.status)

    with ThreadPoolExecutor(10) as viewers:
        assert list(viewers.map(ask, range(10))) == [200] * 10
