"""Pages about storage cells: every page in every format, safe, without browser errors, and with visible gaps."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import rendered

import chromium
from dbdyno.base.json_types import JsonObject
from dbdyno.pages import page_of, reading
from dbdyno.report import figures, flat, svg, terminal
from dbdyno.report.figures import cells_rounds, cells_series, shades, theme
from soaked import but
from vega_lite import accepted

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e\n"


def recording(cells: int = 3, name: str = "exa1cel{:02}.example.com") -> JsonObject:
    """Return a report of this many cells: steps with a gap, disks with missing data, and a sibling that differs."""
    names = [name.format(at + 1) for at in range(cells)]
    steps = [
        {"cell": one, "from_s": [0, 60, 180], "to_s": [60, 120, 240], "value": [10.0 + at, 11.0, 9]}
        for at, one in enumerate(names)
    ]
    panels = [
        {"name": "FL_IO_W", "unit": "1/s", "meaning": "redo writes", "cells": steps},
        {"name": "flash first", "unit": "ratio", "meaning": "share", "cells": steps},
    ]
    table = {
        "title": "Means",
        "left_out": 0,
        "columns": [
            {"name": "metric", "label": "metric", "unit": "text"},
            {"name": "all", "label": "all", "unit": "quantity"},
            {"name": "meaning", "label": "meaning", "unit": "text", "page_only": True},
        ],
        "rows": [
            {"metric": "FL_IO_W", "unit": "1/s", "all": 30.0, "meaning": "redo writes"},
            {"metric": "FL_IO_TM_W_RQ", "unit": "ns", "all": None, "meaning": "latency"},
        ],
    }
    sibling = {
        "metric": "CD_IO_TM_R_SM_RQ",
        "siblings": "hard disks",
        "name": f"{names[0]} CD_01",
        "n_siblings": 12,
        "rounds": 9,
        "ratio": 3.0,
        "low": 2.5,
        "high": 3.6,
        "p": 0.0,
        "q": 0.001,
        "differs": True,
    }
    return {
        "schema": 1,
        "kind": "cells",
        "page": "report",
        "facts": {
            "title": "before",
            "cells": names,
            "rounds": 5,
            "every_s": 60.0,
            "began": "2026-11-21T10:00:00+00:00",
            "ended": "2026-11-21T10:04:00+00:00",
            "seconds": 240.0,
            "status": "complete",
        },
        "verdict": {"word": "look", "why": "1 finding to look at"},
        "findings": [{"code": "restart", "level": "bad", "text": "it began anew", "next": "look"}],
        "coverage": {
            "rounds": 5,
            "states": ["collected", "not refreshed", "restart"],
            "cells": [{"name": one, "states": [0, 0, 1, 2, 0]} for one in names],
        },
        "families": [{"name": "flash log", "slug": "flash-log", "panels": panels}],
        "disks": [
            {
                "kind": "hard disks",
                "name": "CD_IO_RQ_R_SM",
                "unit": "1/s",
                "meaning": "reads",
                "cells": names,
                "disks": ["CD_00", "CD_01"],
                "median": 5.0,
                "values": [[5.0, None] for _ in names],
            }
        ],
        "skew": {"rows": [sibling]},
        "sections": [
            {"name": "recorded", "title": "What was recorded", "figures": ["cells_rounds"], "tables": [], "notes": []},
            {
                "name": "flash-log",
                "title": "Flash log",
                "figures": ["cells_flash-log"],
                "tables": [table],
                "notes": ["a note"],
                "about": "about",
            },
            {"name": "disks", "title": "Disks", "figures": ["cells_map_hard-disks"], "tables": [], "notes": []},
            {"name": "skew", "title": "Siblings", "figures": ["cells_skew"], "tables": [], "notes": []},
        ],
    }


def shown() -> JsonObject:
    """Return the output of `cells show` for two cells: a sum, a range, and a cell that answered in part."""
    row = {
        "metric": "FL_IO_W",
        "family": "flash log",
        "object": "",
        "unit": "IO requests",
        "kind": "counter",
        "rule": "sum",
        "description": "redo writes",
        "notes": {},
        "values": {"cel01": 1234567.0, "cel02": None},
        "all": 1234567.0,
        "note": "",
        "n": 1,
        "low": 1.0,
        "mean": 1.0,
        "high": 1.0,
    }
    load = {
        **row,
        "metric": "CD_IO_UTIL",
        "family": "cell disk",
        "rule": "spread",
        "all": None,
        "low": 10.0,
        "high": 90.25,
        "unit": "%",
    }
    return {
        "schema": 1,
        "kind": "cells",
        "page": "show",
        "by": "cell",
        "rows": [row, load],
        "cells": [
            {"name": "cel01", "problem": None},
            {"name": "cel02", "problem": "no answer", "next_step": "--timeout gives it longer"},
        ],
    }


def difference() -> JsonObject:
    log = {
        "writes": 551342.0,
        "disk_first": 532152.0,
        "flash_first": 19190.0,
        "flash_share": 0.034806,
        "flash_share_low": 0.03433,
        "flash_share_high": 0.03529,
        "identity_holds": True,
        "prevented_outliers": 14.0,
        "actual_outliers": None,
        "flash_only_outliers": 0.0,
        "passed_by": {"BUSY": 2.0},
    }
    return {
        "schema": 1,
        "kind": "cells",
        "page": "diff",
        "by": "cell",
        "facts": {"title": "a to b"},
        "rows": [
            {
                "metric": "FL_IO_W",
                "cell": "cel01",
                "object": "",
                "delta": 551342.0,
                "per_s": 153.15,
                "unit": "IO requests",
                "description": "redo writes",
            }
        ],
        "latencies": [
            {
                "metric": "FL_IO_TM_W_RQ",
                "cell": "cel01",
                "object": "",
                "value": 251.5,
                "unit": "us/request",
                "requests": 551342.0,
            }
        ],
        "flash_log": log,
        "problems": [],
        "without": [{"cell": "cel02", "metric": "FL_IO_W", "object": "", "verdict": "reset"}] * 3,
    }


def skew() -> JsonObject:
    return {
        "schema": 1,
        "kind": "cells",
        "page": "skew",
        "rounds": 9,
        "tested": 12,
        "enough": True,
        "threshold": 0.25,
        "rows": recording()["skew"]["rows"],
    }


def hostile() -> JsonObject:
    model = recording(2, HOSTILE + "{}")
    model["facts"]["title"] = model["findings"][0]["text"] = HOSTILE
    model["disks"][0]["disks"] = [HOSTILE, "CD_01"]
    model["families"][0]["panels"][0]["name"] = HOSTILE
    model["sections"][1]["tables"][0]["rows"][0]["metric"] = HOSTILE
    return model


MODELS = {
    "report": recording,
    "rack": lambda: recording(14),
    "show": shown,
    "diff": difference,
    "skew": skew,
    "hostile": hostile,
}


@pytest.mark.parametrize("name", MODELS)
def test_every_page_has_every_form(name: str):
    model = MODELS[name]()
    before = copy.deepcopy(model)
    html = rendered.page(model)
    assert "<img" not in html
    assert "\u202e" not in html.split('id="analysis"')[0]
    text = terminal.render_text(model, width=100, color=False)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    rows = flat.rows(model)
    assert len({tuple(row) for row in rows}) <= 1
    assert model == before


def test_text_and_page_say_the_findings_and_what_to_do_next():
    text = terminal.render_text(recording(), width=100, color=False)
    assert "! it began anew" in text
    assert "next: look" in text
    assert "redo writes" not in text  # the meaning stands on the page only
    assert "30.00 /s" in text
    html = rendered.page(recording())
    assert '<li class="card bad">' in html
    assert "10:04:00 UTC" in html
    assert "redo writes" in html


def test_the_page_of_now_has_every_digit_a_range_where_a_sum_means_nothing_and_a_mark():
    text = terminal.render_text(shown(), width=140, color=False)
    assert "1 234 567" in text
    assert "10 to 90.25" in text
    assert "cel02 !" in text
    assert "cel02: no answer" in text
    assert "IN PART" in text


def test_the_page_of_a_difference_has_the_share_as_printed_and_what_has_none():
    text = terminal.render_text(difference(), width=120, color=False)
    for words in ("3.48 %", "551 342", "251.5", "bypassed: BUSY", "reset: the cell's service"):
        assert words in text
    nothing = {**difference(), "rows": []}
    assert "no counter changed" in terminal.render_text(nothing, width=120, color=False)


def test_a_comparison_of_recordings_is_drawn_as_one_of_snapshots():
    model = {
        "schema": 1,
        "kind": "cells",
        "page": "compare",
        "facts": {"title": "a and b"},
        "sections": [],
        "verdict": {"word": "ok"},
    }
    assert flat.rows(model) == []
    one, other = page_of(model), page_of({**model, "kind": "snapshot"})
    assert one.head == other.head
    assert [section.name for section in one.sections] == [section.name for section in other.sections]


@pytest.mark.parametrize("look", [theme.WIDE, theme.NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("cells", [1, 3, 6, 7, 50])
def test_figures_follow_the_schema_of_vega_lite(cells: int, look: theme.Look):
    model = reading.read(recording(cells))
    drawn = dict(figures.draw_all(model, look))
    names = {figure.name for figure in drawn}
    assert names == {"cells_rounds", "cells_flash-log", "cells_map_hard-disks", "cells_skew"}
    for chart in drawn.values():
        accepted(chart)


def test_a_line_has_a_break_where_nothing_is_known():
    panel = reading.read(recording(1))["families"][0]["panels"][0]
    runs = [row["run"] for row in cells_series.corners(list(cells_series.steps_of(panel)))]
    assert runs == ["0-0", "0-0", "0-0", "0-1", "0-1"]


def test_colours_of_the_figures_all_have_a_dark_partner():
    used = {*cells_rounds.COLOURS.values(), *cells_series.COLOURS}
    assert used <= set(theme.DARK)
    assert len(set(cells_series.COLOURS)) == cells_series.LINES_MOST


def test_shades_put_values_that_are_alike_in_the_middle_and_the_largest_last():
    alike = shades.Scale.of([10.0, 10.1, 9.9, 10.0])
    assert {alike.level(value) for value in (9.9, 10.0, 10.1)} == {3}
    one = shades.Scale.of([10.0] * 11 + [40.0])
    assert (one.level(40.0), one.level(10.0), one.level(0.0)) == (7, 2, 0)
    assert shades.Scale.of([0.9, 0.95], "ratio").top == 1.0
    assert shades.Scale.of([]).level(0.0) == shades.Scale.of([0.0]).level(0.0) == 0


def test_names_lose_what_they_have_in_common():
    assert shades.short_names(["exa1cel01.ex.com", "exa1cel02.ex.com"]) == [
        "exa1cel01",
        "exa1cel02",
    ]
    assert shades.short_names(["127.0.0.1:2201", "127.0.0.1:2202"]) == ["2201", "2202"]
    assert shades.short_names(["cel01", "cel02"]) == ["cel01", "cel02"]
    assert shades.short_names(["10.0.0.1"]) == ["10.0.0.1"]


@chromium.needed
@pytest.mark.parametrize("name", but(MODELS, "skew"))
def test_every_page_opens_quietly_and_fits(browser, tmp_path: Path, name: str):
    chromium.opened_quietly(browser, rendered.written(MODELS[name](), tmp_path / "page.html"))


@pytest.mark.parametrize("cells", [3, 24])
def test_every_row_of_the_rounds_has_its_name(cells: int):
    """Of three cells the second had none: labels closer than 8 pixels were left out."""
    drawn = {figure.name: chart for figure, chart in figures.draw_all(reading.read(recording(cells)), theme.WIDE)}
    picture = svg.inline(drawn["cells_rounds"], "p", "rounds")
    seen = re.findall(r'opacity="1"[^>]*>(exa1cel\d\d)<', picture)
    assert sorted(seen) == [f"exa1cel{at:02}" for at in range(1, cells + 1)]
