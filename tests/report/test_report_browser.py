"""The page in a real browser: no complaint, no request, no horizontal scrolling, tips that work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import chromium
import pytest
import rendered
import report_models

pytestmark = pytest.mark.skipif(chromium.find() is None, reason=f"no browser found: {', '.join(chromium.NAMES)}")

MODELS = {
    "experiment": report_models.experiment,
    "four_arms": report_models.four_arms,
    "aa": report_models.aa,
    "curve": report_models.curve,
    "aborted": report_models.aborted,
    "hollow": report_models.hollow,
    "nulls": report_models.nulls,
    "hostile": report_models.hostile,
    "hostile_curve": lambda: report_models.hostile("curve"),
    "traces": report_models.traces,
    "hostile_traces": lambda: report_models.hostile("traces"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    with chromium.Browser() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {name: rendered.written(make(), folder / f"{name}.html") for name, make in MODELS.items()}


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
@pytest.mark.parametrize("name", MODELS)
def test_it_opens_quietly_and_fits(browser, pages, name, width, scheme, tmp_path):
    page = browser.open(pages[name], width=width, scheme=scheme)
    assert page.problems == []
    assert page.requests == [pages[name].as_uri()]
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.screenshot(tmp_path / "page.png").stat().st_size > 5_000


def test_a_complaint_would_be_heard(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='missing.png'><script>console.error('x'); null.y</script>")
    page = browser.open(bad)
    assert len(page.problems) >= 2
    assert len(page.requests) == 2


def test_a_wide_page_shows_the_wide_figures_and_a_phone_the_narrow_ones(browser, pages):
    seen = "[...document.querySelectorAll('%s')].filter(it => it.offsetParent !== null).length"
    wide, narrow = browser.open(pages["experiment"]), browser.open(pages["experiment"], width=360)
    assert (wide.evaluate(seen % ".wide"), wide.evaluate(seen % ".narrow")) == (7, 0)
    assert (narrow.evaluate(seen % ".wide"), narrow.evaluate(seen % ".narrow")) == (0, 7)


def test_dark_mode_exchanges_the_colours_of_the_figures(browser, pages):
    colour = "getComputedStyle(document.querySelector('.wide svg text')).fill"
    light, dark = (browser.open(pages["experiment"], scheme=s).evaluate(colour) for s in ("light", "dark"))
    assert light != dark


def test_the_policy_stops_a_script_that_is_not_ours(browser, pages):
    page = browser.open(pages["experiment"])
    page.evaluate(
        "{const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s)}"
    )
    assert page.evaluate("window.hit === undefined")


def test_a_mark_says_its_value_under_the_pointer(browser, pages):
    page = browser.open(pages["experiment"])
    page.evaluate("document.querySelector('#figure-tail').scrollIntoView({behavior: 'instant'})")
    page.settle()
    x, y = page.evaluate(
        "(() => {const b = document.querySelector('#figure-tail .wide [data-tip]')"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.evaluate("document.getElementById('tip').textContent").startswith("work_mem 64 MB: p50")
    assert page.evaluate("document.getElementById('tip').hidden") is False


def test_what_is_folded_opens_for_print(browser, pages, tmp_path):
    page = browser.open(pages["experiment"])
    page.evaluate("window.open_at_print = 0")
    page.evaluate(
        "matchMedia('print').addEventListener('change', () => 0);"
        "addEventListener('beforeprint', () => { window.open_at_print ="
        " document.querySelectorAll('details[open]').length; })"
    )
    printed = page.pdf(tmp_path / "page.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert page.evaluate("window.open_at_print") == 2
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
