"""The page in a real browser: no errors, no requests, no horizontal scrolling, and tooltips that work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import rendered
import report_model_runs

import chromium
from soaked import but

pytestmark = chromium.needed

MODELS = ("experiment", "four_arms", "aa", "curve", "aborted", "hollow", "nulls", "hostile")
MODELS += ("hostile_curve", "traces", "hostile_traces")


@pytest.fixture(scope="module")
def shared_page(running_browser: chromium.Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    """Open the page of one experiment, which stays open for all tests."""
    folder = tmp_path_factory.mktemp("experiment")
    yield running_browser.open(rendered.written(report_model_runs.MODELS["experiment"](), folder / "page.html"))
    running_browser.close_pages()


@pytest.fixture
def page(shared_page: chromium.Page) -> chromium.Page:
    """Return that page as a desktop window by day."""
    shared_page.look()
    return shared_page


@pytest.mark.parametrize("name", but(MODELS, "four_arms", "aa", "aborted", "hostile_curve"))
def test_it_opens_quietly_and_fits(browser, name, tmp_path):
    page = chromium.opened_quietly(browser, rendered.written(report_model_runs.MODELS[name](), tmp_path / "page.html"))
    assert page.screenshot(tmp_path / "page.png", whole=False).stat().st_size > 5_000


def test_a_complaint_would_be_heard(browser, tmp_path):
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='missing.png'><script>console.error('x'); null.y</script>")
    page = browser.open(bad)
    assert len(page.problems) >= 2
    assert len(page.requests) == 2


def test_a_wide_page_shows_the_wide_figures_and_a_phone_the_narrow_ones(page):
    seen = "[...document.querySelectorAll('%s')].filter(it => it.offsetParent !== null).length"
    assert (page.evaluate(seen % ".wide"), page.evaluate(seen % ".narrow")) == (7, 0)
    page.look(width=360)
    assert (page.evaluate(seen % ".wide"), page.evaluate(seen % ".narrow")) == (0, 7)


def test_dark_mode_exchanges_the_colours_of_the_figures(page):
    colour = "getComputedStyle(document.querySelector('.wide svg text')).fill"
    light = page.evaluate(colour)
    page.look(scheme="dark")
    assert page.evaluate(colour) != light


def test_the_policy_stops_a_script_that_is_not_ours(page):
    page.evaluate(
        "{const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s)}"
    )
    assert page.evaluate("window.hit === undefined")


def test_a_mark_says_its_value_under_the_pointer(page):
    page.evaluate("document.querySelector('#figure-tail').scrollIntoView({behavior: 'instant'})")
    page.settle()
    x, y = page.evaluate(
        "(() => {const b = document.querySelector('#figure-tail .wide [data-tip]')"
        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]})()"
    )
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.evaluate("document.getElementById('tip').textContent").startswith("work_mem 64 MB: p50")
    assert page.evaluate("document.getElementById('tip').hidden") is False


def test_what_is_folded_opens_for_print(page, tmp_path):
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
