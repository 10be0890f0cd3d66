"""A real browser on the real server: select by drag and keys, go back, share a link, follow new snapshots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import starlette  # noqa: F401 - skips where it is not installed
from laboratory import FIRST_S, MINUTES
from planted_day import Day
from sites import Site, all_read, running_site, until, words

import chromium
from chromium import browser, running_browser  # noqa: F401 - fixtures
from soaked import first

pytestmark = chromium.needed
WINDOW = "window=2026-11-26T13:50:00..2026-11-26T14:14:00"


@pytest.fixture(scope="module")
def site(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    own = tmp_path_factory.mktemp("site")
    shutil.copytree(folder / "snaps", own / "snaps")
    (own / "runs").mkdir()
    with running_site(own / "runs", own / "snaps") as running:
        yield running


def drag(page: chromium.Page, low: float, high: float, *, shift: bool = False) -> None:
    """Drag over a part of the plot."""
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


PATHS = (
    *(f"/server?{WINDOW}", "/", "/runs", f"/blocking?{WINDOW}", "/statement?id=1002", "/sql"),
    *(f"/server?{WINDOW}&by=table", "/advice?stretch=1d", "/experiment?id=1002", "/search?q=stock", "/trend"),
)


@pytest.mark.parametrize("path", first(*PATHS))
def test_nothing_is_wider_than_the_window_and_nothing_complains(browser, site, path) -> None:  # noqa: F811
    page = browser.open(site.address(path))
    all_read(page)
    for width, scheme in ((2560, "light"), (400, "dark")):
        page.look(width=width, scheme=scheme)
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth"), width
    foreign = [one for one in page.requests if not one.startswith((site.base, "data:"))]
    assert page.problems == [] and foreign == []


def test_lists_are_cards_on_a_phone_that_nobody_has_to_push_aside(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address("/"), width=400)
    all_read(page)
    pushed = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).length"
    assert page.evaluate("document.querySelectorAll('.scroll .loose').length") >= 1
    assert page.evaluate(pushed) == 0
    label = "getComputedStyle(document.querySelector('.loose td[data-label]'), '::before').content"
    assert page.evaluate(label) == '"engine"'


def test_the_interval_is_shaded_within_the_plot_and_leaves_legend_and_axis_readable(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address(f"/server?{WINDOW}&stretch=2026-11-26T14:02:00..2026-11-26T14:08:00"))
    shade, picture = (
        page.evaluate(f"(() => {{ const box = {one}.getBoundingClientRect(); return [box.top, box.bottom]; }})()")
        for one in ("document.querySelector('.shade')", "document.querySelector('.plot svg')")
    )
    assert picture[0] + 20 < shade[0] < shade[1] < picture[1] - 20


def test_an_open_page_follows_what_lands(browser, site, folder) -> None:  # noqa: F811
    page = browser.open(site.address("/"))
    assert "There are no runs here" in words(page) and "14:14 UTC" in words(page)
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


def test_a_server_that_was_started_anew_is_said_and_the_page_stays(browser, folder, tmp_path) -> None:  # noqa: F811
    shutil.copytree(folder / "snaps", tmp_path / "snaps")
    with running_site(tmp_path / "runs", tmp_path / "snaps") as first:
        page = browser.open(first.address(f"/server?{WINDOW}"))
        all_read(page)
        before = words(page)
        port = int(first.base.rpartition(":")[2])
    with running_site(tmp_path / "runs", tmp_path / "snaps", port) as second:
        page.evaluate("document.querySelector('.tabs:not(.bar-row) a:last-child').click()")
        until(lambda: "restarted" in page.evaluate("(document.querySelector('.news') || {}).innerText || ''"))
        assert words(page) == before
        again = browser.open(second.address(f"/server?{WINDOW}"))
        all_read(again)
        assert words(again) == before


def test_names_are_offered_in_the_console_and_taken_by_a_key(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address("/sql"))
    page.evaluate("document.querySelector('textarea').focus()")
    page.call("Input.insertText", text="select quer")
    until(lambda: page.evaluate("[...document.querySelectorAll('.names li')].map(one => one.innerText)") != [])
    assert "queryid" in page.evaluate("[...document.querySelectorAll('.names li')].map(one => one.innerText)")
    for _ in range(
        page.evaluate("[...document.querySelectorAll('.names li')].findIndex(o => o.innerText == 'queryid')")
    ):
        page.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowDown")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Tab")
    assert page.evaluate("document.querySelector('textarea').value") == "select queryid"
    page.call("Input.insertText", text=" from pg_stat_statements")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", modifiers=2)
    until(lambda: "rows" in words(page))
    assert "1002" in words(page) and page.problems == []


def test_the_switch_shows_times_in_the_browser_s_zone(browser, site) -> None:  # noqa: F811
    page = browser.open(site.address(f"/server?{WINDOW}"))
    page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    page.call("Page.reload")
    until(lambda: page.evaluate("[...document.querySelectorAll('[data-zone] option')].length") == 3)
    change = "s.value = 'Asia/Tokyo'; s.dispatchEvent(new Event('change'))"
    page.evaluate(f"(() => {{ const s = document.querySelector('[data-zone]'); {change} }})()")
    until(lambda: "22:50:00" in page.evaluate("(document.querySelector('.stretch') || {}).innerText || ''"))
    assert "Asia/Tokyo" in page.evaluate("document.querySelector('.plot').textContent")
    assert "2026-11-26T13:50:00" in query(page), "the address stays in UTC"
    page.evaluate("document.cookie = 'dbdyno-zone=; Path=/; Max-Age=0'")
    assert page.problems == []
