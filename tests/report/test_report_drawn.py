"""Every kind of page at three widths: labels do not overlap, nothing is clipped or broken, and a table wider than the
window shows that it scrolls.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import rendered
import report_models
from pinned_pages import RUNS
from test_report_cells import MODELS as CELLS

import chromium
import drawn
from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.report.typography import add_no_break_spaces
from soaked import but

PAGES: dict[str, Callable[[], JsonObject]] = {
    **RUNS,
    **{f"cells: {name}": make for name, make in CELLS.items() if "hostile" not in name},
}


ROOT = Path(__file__).parents[2]
SHORT = ["--file-size", "4MiB", "--sync", "dsync", "--round", "20ms", "--rounds", "2"]
COMMANDS: dict[str, tuple[list[str], ...]] = {
    "advice: a stack": (["advise", str(ROOT / "examples" / "stacks" / "san.toml"), "-o", "page.html"],),
    "advice: this host": (["advise", "host", "-o", "page.html"],),
    "trace": (["trace", "report", str(ROOT / "examples" / "orders.trc"), "-o", "page.html"],),
    "flash": (["probe", "flash", ".", *SHORT], ["report", "last", "-o", "page.html"]),
}
"""Kinds of page for which no run gives a model; the commands themselves write these pages."""


@chromium.needed
@pytest.mark.parametrize("name", but(PAGES, "four arms", "aa", "aborted", "cells: skew"))
def test_nothing_collides_is_clipped_or_torn(browser, tmp_path: Path, name: str):
    assert drawn.faults(browser, rendered.written(PAGES[name](), tmp_path / "page.html")) == []


@chromium.needed
@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_torn_on_a_page_that_a_command_writes(browser, tmp_path: Path, name: str):
    """The paths of a host's settings were torn in the middle of a name on a telephone."""
    for words in COMMANDS[name]:
        done = dbdyno(*words, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
    assert drawn.faults(browser, tmp_path / "page.html") == []


@pytest.mark.soak
@chromium.needed
def test_the_slow_quantiles_of_a_short_tail_do_not_lie_over_one_another(browser, tmp_path: Path):
    model = report_models.experiment()
    for arm in model["arms"]:
        top = arm["quantiles_ns"]["p99"]
        arm["quantiles_ns"]["p99.9"] = top * 1.01
        arm["max_ns"] = top * 1.02
    path = rendered.written(model, tmp_path / "page.html")
    assert drawn.faults(browser, path) == []
    labels = "[...document.querySelectorAll('#figure-distribution .wide text')].map(it => it.textContent)"
    assert "p99, p99.9, max" in browser.open(path).evaluate(labels)


@chromium.needed
def test_the_measure_sees_each_kind_of_fault(browser, tmp_path: Path):
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<main><svg width=200 height=40><text x=10 y=20>over</text><text x=14 y=20>lapping</text>"
        "<text x=180 y=20>clipped</text></svg>"
        "<p style='width: 1.7em'>7.6 % of it</p>"
        "<table><tr><td style='width: 4em; max-width: 4em'>2026-11-23</table>"
        "<div class=scroll style='width: 90px; overflow-x: auto'><table><tr><td style='white-space: nowrap'>"
        "a table that is wider than its place</table></div>"
        "<div style='width: 4000px'>wide</div></main>"
    )
    kinds = {fault.split(": ")[1] for fault in drawn.faults(browser, bad)}
    assert kinds >= {
        "page wider than the window",
        "labels collide",
        "label clipped",
        "number torn",
        "date torn",
        "table scrolls without a sign",
        "off the screen",
    }


@pytest.mark.parametrize(
    ("page", "whole"),
    [
        ("<p>7.6 % of -3 ms</p>", "<p>7.6\u00a0% of \u22123\u00a0ms</p>"),
        ("<p>44 671 operations in 30 s</p>", "<p>44\u00a0671 operations in 30\u00a0s</p>"),
        ("<code>where a = -1 and b < 5 %</code>", "<code>where a = -1 and b < 5 %</code>"),
        ("<p>15.18-0+deb12 is whole</p>", "<p>15.18-0+deb12 is whole</p>"),
        ("<td>by 2026-11-22 10:15</td>", '<td>by <span class="whole">2026-11-22</span> 10:15</td>'),
        ("<td>runs/2026-11-22T10-15-11Z-a-7f3a</td>", "<td>runs/2026-11-22T10-15-11Z-a-7f3a</td>"),
        ("<p>4 sessions</p>", "<p>4 sessions</p>"),
        ("<td>/proc/vmstat:numa_miss</td>", "<td>/proc/<wbr>vmstat:<wbr>numa_miss</td>"),
        ("<td>a/b, 1/s and https://x/y</td>", "<td>a/b, 1/s and https://x/y</td>"),
        ("<code>/proc/sys/vm</code>", "<code>/proc/sys/vm</code>"),
        ("<td>-4838682823314902447</td>", '<td><span class="whole">-4838682823314902447</span></td>'),
        ("<th>effective_io_concurrency: 1</th>", "<th>effective_<wbr>io_<wbr>concurrency: 1</th>"),
        ("<th>shop.orders.orders_cust</th>", "<th>shop.<wbr>orders.<wbr>orders_<wbr>cust</th>"),
        ("<th>12345678901.123456789012</th>", "<th>12345678901.123456789012</th>"),
        ("<th>work_mem</th>", "<th>work_mem</th>"),
    ],
)
def test_numbers_and_units_stay_together_but_code_is_left_as_it_is(page: str, whole: str):
    assert add_no_break_spaces(page) == whole
