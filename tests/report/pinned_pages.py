"""Text that a reader sees on each kind of page: the terminal's output and the words of the HTML page.

The words are listed with one line per block; a table's row is its cells between bars, and a drawing is the number of
its labels.
"""

from __future__ import annotations

import copy
import re
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import report_model_runs
import report_models

sys.path.insert(0, str(Path(__file__).parents[1] / "trace"))

from test_report_cells import MODELS as CELLS

from dbdyno.base.json_types import JsonObject
from dbdyno.model.describe import describe

HERE = Path(__file__).parent / "pinned"


def snapshot() -> JsonObject:
    """Return a report of two snapshots with numbers, gaps, verdicts, and a measurement that is missing."""
    from dbdyno.base.sections import columns, missing_measurement, section, table

    shown = columns("statement:text begins:text calls time:ns share:ratio rows:per_s text:text")
    rows = [
        {"statement": "7f3a", "begins": "select", "calls": 12_345, "time": 2_500_000, "share": 0.5, "rows": 1.25}
        | {"text": "select * from a where b < 3 and c = 'x'"},
        {"statement": "91bc", "begins": None, "calls": None, "time": None, "share": None, "rows": None, "text": ""}
        | {"verdict": "evicted", "why": "it was pushed out"},
    ]
    about = {"name": "a", "title": "Top statements", "about": "By time.", "notes": ["a note"]}
    wal = table(
        "By kind",
        columns("what:text value:quantity unit:text at:time"),
        [
            {"what": "written", "value": 5_000_000, "unit": "bytes", "at": 1_770_000_000_000_000},
            {"what": "rate", "value": 12.5, "unit": "1/s", "at": None},
            {"what": "hit", "value": 0.993, "unit": "ratio", "at": None},
        ],
    )
    made = [
        section(
            about["name"],
            about["title"],
            [table("by elapsed", shown, rows, top=1), table("all", shown, rows)],
            about="By time.",
            notes=about["notes"],
        ),
        section(
            "wal",
            "Write-ahead log",
            [wal],
            not_measured=[missing_measurement("I/O time", "track_io_timing is off", "on")],
        ),
    ]
    ends = (
        {"number": 1, "at": "2026-11-21T10:00:00+00:00", "note": ""},
        {"number": 4, "at": "2026-11-21T10:05:00+00:00", "note": "after lunch"},
    )
    return {
        "schema": 1,
        "kind": "snapshot",
        "page": "report",
        "facts": {
            "title": "postgres at 127.0.0.1",
            "engine": "PostgreSQL",
            "version": "17.2",
            "databases": ["a", "b"],
            "seconds": 300.0,
            "first": ends[0],
            "last": ends[1],
            "snapshots": 4,
        },
        "verdict": {"word": "reset", "why": "statistics were reset at 10:02"},
        "sections": made,
        "warnings": [{"code": "snapshot.reset", "text": "reset: statements", "next": "report before and after"}],
    }


def calibration() -> JsonObject:
    """Return the page of a fitted device."""
    import random

    import numpy as np

    from dbdyno.model.calibrate import calibration as made

    dice = random.Random(7)
    return made(np.array([dice.lognormvariate(4, 0.4) for _ in range(5_000)]), name="d", title="made")


def claims() -> JsonObject:
    """Return two claims, one of which does not hold."""
    part = {
        "quantity": "share of flash",
        "unit": "%",
        "value": 12.3456,
        "low": 11.0,
        "high": 13.5,
        "band_low": 10.0,
        "band_high": 15.0,
        "verdict": "holds",
    }
    claim = {
        "claim": "N01",
        "title": "flash wins",
        "source": "a paper",
        "verdict": "holds",
        "basis": "mechanism",
        "replications": 5,
        "steady": True,
        "notes": ["by a nose"],
        "parts": [part],
    }
    other = {
        **claim,
        "claim": "N02",
        "verdict": "does not hold",
        "steady": False,
        "notes": [],
        "parts": [{**part, "verdict": "does not hold", "band_low": None, "value": 123456.0, "low": None}],
    }
    return {
        "schema": 1,
        "kind": "model",
        "page": "claims",
        "title": "Claims",
        "facts": "seed 1",
        "claims": [claim, other],
    }


@cache
def trace_pages() -> dict[str, JsonObject]:
    """Return the pages about traces, computed from one small run."""
    from test_trace_pages import pages_of
    from trace_evidence import order_entry

    with tempfile.TemporaryDirectory() as folder:
        return pages_of(order_entry(3, 60).write(Path(folder) / "run"))


def traces() -> dict[str, Callable[[], JsonObject]]:
    """Return the pages about traces, under a title that does not name a folder."""

    def named(name: str) -> JsonObject:
        model = copy.deepcopy(trace_pages()[name])
        model["facts"]["title"] = "traces of 3 sessions"
        return model

    names = ("profile", "sql", "events", "waits", "tree", "timeline", "report")
    return {f"trace {name}": lambda name=name: named(name) for name in names}


def check() -> JsonObject:
    """Return a check of files: two were read, one of them incompletely, and one was refused."""
    closes = {
        "elapsed_ns": 5_000_000,
        "call_ns": 3_000_000,
        "between_ns": 1_500_000,
        "unexplained_ns": 500_000,
        "cpu_ns": 1_000_000,
        "wait_inside_ns": 1_900_000,
        "unaccounted_ns": 100_000,
        "closes": True,
    }
    file = {
        "path": "a.trc",
        "format": "oracle_10046",
        "version": "19",
        "level": 12,
        "bytes": 12_345,
        "lines": 321,
        "records": {"wait": 200, "exec": 20},
        "closes": closes,
        "clock": {"stamps": 3, "residual_max_ns": 40_000},
        "orphans": 2,
        "unread": [],
    }
    bad = {
        **file,
        "path": "b.trc",
        "clock": {},
        "orphans": 0,
        "unread": [{"reason": "torn", "count": 2, "first": {"line": 9, "byte_offset": 99, "sample": "WAIT #"}}],
    }
    return {
        "schema": 1,
        "kind": "trace",
        "page": "check",
        "facts": {"title": "2 files", "files": 2},
        "checked": [file, bad],
        "refused": [{"path": "c.trc", "sentence": "no trace"}],
        "ok": False,
        "warnings": [],
    }


RUNS: dict[str, Callable[[], JsonObject]] = {
    "experiment": report_models.experiment,
    "four arms": report_models.four_arms,
    "aa": report_models.aa,
    "curve": report_models.curve,
    "two curves": report_model_runs.two_curves,
    "sweep": report_model_runs.sweep,
    "flash log": report_model_runs.flash_log,
    "correlation": report_models.correlation,
    "traces": report_models.traces,
    "aborted": report_models.aborted,
    "machine": lambda: describe("exadata-x2"),
}
"""Models of pages of runs, and of a machine, by name."""
PAGES: dict[str, Callable[[], JsonObject]] = {
    **RUNS,
    "claims": claims,
    "calibration": calibration,
    "snapshot": snapshot,
    "trace check": check,
    **traces(),
    **{f"cells {name}": make for name, make in CELLS.items() if name not in ("hostile", "rack")},
}


class _Words(HTMLParser):
    """Parser that collects the words of a page by block."""

    BLOCKS = ("p", "h1", "h2", "h3", "h4", "li", "tr", "div", "section", "pre", "summary", "figcaption", "dl", "a")

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self.inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("svg", "script", "style", "title"):
            self.inside += 1
            if tag == "svg" and not self.inside > 1 and given.get("role") == "img":
                self.lines[-1] += "[figure]"
        elif tag == "section":
            self.lines += [f"# {given.get('id')}", ""]
        elif tag == "th" or tag == "td":
            self.lines[-1] += " | "
        elif tag in self.BLOCKS:
            self.lines.append("")
        elif tag in ("small", "dt", "dd"):
            self.lines[-1] += " "

    def handle_endtag(self, tag: str) -> None:
        if tag in ("svg", "script", "style", "title"):
            self.inside -= 1
        elif tag in self.BLOCKS and tag != "a":
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.lines[-1] += data


def words(html: str) -> str:
    """Return the page's words, one line per block."""
    seen = _Words()
    seen.feed(html)
    lines = (re.sub(r"[\s\xa0]+", " ", line).strip() for line in seen.lines)
    return "\n".join(line for line in lines if line) + "\n"
