"""Golden cases: the evidence of a run of each kind, stored or recreated from a seed, and the results derived from it.

The evidence of engine, host and cells is stored, because no two runs of them are equal. A run on a model is repeated
through the command line: the same seed must give the same evidence. Values that change with each run (times, names of
runs, the version) are replaced by fixed ones before anything is rendered.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import shutil
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run

KEPT = Path(__file__).parent / "kept"

STORED = ("engine-slices", "engine-reload", "engine-aa", "engine-curve", "engine-correlation", "host-race", "host-log")
"""Names of the stored runs; runs on cells have their own list, because they need a modelled rack."""
CELLS = ("cells-flash-log", "cells-aa")

_SMALL = ("--set", "sessions=4", "--set", "commits=2000", "--blocks", "6", "--seed", "1")
MODELS: dict[str, tuple[str, ...]] = {
    "model-race": ("flash-log", *_SMALL),
    "model-tail": ("flash-log-tail", *_SMALL, "--set", "longest=50"),
    "model-aa": ("flash-log", "--aa", *_SMALL),
    "model-curve": ("redo-size", "--target", "model:sas-and-flash", "--quick", "--blocks", "4", "--seed", "2"),
    "model-sweep": (
        *("queue-depth", "--quick", "--blocks", "3", "--seed", "3"),
        *("--set", "jobs=1,8", "--set", "stripe_kb=32,1024", "--set", "sd_max_throttle=2,32"),
    ),
    "model-parameter": ("flash-log", *_SMALL, "--set", "cells.flash_log.outlier_ms=1,500"),
}
PAIRS = {"pair-engine-and-model": ("engine-curve", "model-curve"), "pair-models": ("model-race", "model-aa")}
ALL = (*STORED, *CELLS, *MODELS, *PAIRS, "traces")


def analysis_of(case: str, folder: Path) -> JsonObject:
    """Return the analysis of a case by the current code; its evidence is put into `folder`."""
    from dbdyno.study.analysis.analyse import analyse
    from dbdyno.study.analysis.pair import analyse_pair

    if case == "traces":
        return settled(_traces(folder))
    if case in PAIRS:
        return settled(analyse_pair(*(evidence_of(one, folder) for one in PAIRS[case])))
    return settled(analyse(evidence_of(case, folder)))


def evidence_of(case: str, folder: Path) -> Run:
    """Return the run folder of a case below `folder`; it is unpacked or recreated only once."""
    from dbdyno.report import html

    place = folder / case
    if place.is_dir():
        return Run.open(place)
    if case in MODELS:
        with mock.patch.object(html, "render_html", return_value="a page that is made of the analysis below"):
            made = CliRunner().invoke(_cli(), ["run", *MODELS[case], "--out", str(folder / "made")])
        assert made.exit_code in (0, 1), made.output
        (path,) = (folder / "made").iterdir()
        shutil.move(path, place)
    else:
        with tarfile.open(KEPT / f"{case}.tar.xz") as archive:
            archive.extractall(place, filter="data")
    return Run.open(place)


def _cli() -> Any:
    from dbdyno.cli.main import cli

    return cli


def _traces(folder: Path) -> JsonObject:
    from golden_traces import two_sets

    from dbdyno.study.analysis.traces.compare import compare_traces
    from dbdyno.study.analysis.traces.options import ComparisonOptions
    from dbdyno.trace.source import open_traces

    one, two = two_sets(folder)
    with open_traces([str(one)]) as base, open_traces([str(two)]) as other:
        return compare_traces(base, other, ComparisonOptions(names=("before", "after")))


def settled(analysis: JsonObject) -> JsonObject:
    """Return the analysis without values that change with each run."""
    about = analysis["run"]
    fixed: dict[str, Any] = {"started_at": "2026-11-22T00:00:00+00:00", "tool_version": "0"}
    if about.get("virtual_s") is not None:
        fixed["duration_s"] = 1.0
        for figure in analysis["figures"].get("blocks", []):
            figure["at_s"] = list(range(len(figure["at_s"])))
    analysis["run"] = {**about, **{key: value for key, value in fixed.items() if key in about}}
    return analysis


def pages(analysis: JsonObject) -> dict[str, str]:
    """Return the terminal page, and the words and numbers of the HTML page."""
    from dbdyno.report.html import render_html
    from dbdyno.report.terminal import render_text

    return {
        "txt": render_text(analysis, width=100, color=False) + "\n",
        "html.txt": _words(render_html(analysis)),
    }


class _Words(HTMLParser):
    """Parser that collects the text of a page, one line per piece; a drawing is one line."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "svg" and not self.silent:
            self.lines.append("[drawing]")
        self.silent += tag in ("script", "style", "svg")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("script", "style", "svg")

    def handle_data(self, data: str) -> None:
        words = " ".join(data.split())
        if words and not self.silent:
            self.lines.append(words)


def _words(html: str) -> str:
    reader = _Words()
    reader.feed(html)
    return "\n".join(reader.lines) + "\n"


def keep(case: str, analysis: JsonObject) -> None:
    """Save the analysis to which the case will be compared from now on."""
    text = json.dumps(analysis, ensure_ascii=False, separators=(",", ":"))
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as packed:
        packed.write(text.encode())
    (KEPT / f"{case}.json.gz").write_bytes(buffer.getvalue())
    for suffix, page in pages(analysis).items():
        (KEPT / f"{case}.{suffix}").write_text(page)


def kept_analysis(case: str) -> JsonObject:
    """Return the saved analysis to which the case is compared."""
    found: JsonObject = json.loads(gzip.decompress((KEPT / f"{case}.json.gz").read_bytes()))
    return found


def differences(was: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield the places where two analyses differ; numbers with a fraction may differ from the tenth digit on."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            if key in was and key in now:
                yield from differences(was[key], now[key], f"{where}.{key}")
            else:
                yield f"{where}.{key} is {'gone' if key in was else 'new'}"
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{where} has {len(now)} entries, not {len(was)}"
        for at, (one, other) in enumerate(zip(was, now, strict=False)):
            yield from differences(one, other, f"{where}[{at}]")
    elif isinstance(was, float) and isinstance(now, int | float):
        if not math.isclose(was, now, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{where} is {now!r}, not {was!r}"
    elif was != now or type(was) is not type(now):
        yield f"{where} is {now!r}, not {was!r}"


def same_words(was: str, now: str) -> bool:
    """Return True if two pages say the same: equal words, and numbers that agree to within 0.2 %."""
    number = re.compile(r"\d+(?:\.\d+)?")
    if number.sub("#", was) != number.sub("#", now):
        return False
    pairs = zip(number.findall(was), number.findall(now), strict=True)
    return all(a == b or math.isclose(float(a), float(b), rel_tol=2e-3) for a, b in pairs)
