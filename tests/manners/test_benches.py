"""Every bench works: each runs at its smallest size, and its figures become the page of figures.

A bench was broken for weeks, since nothing ran it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHES = ROOT / "benches"
sys.path.append(str(BENCHES))
import page  # noqa: E402
from figures import LACKS, RESULTS  # noqa: E402

HELPERS = {
    "all",
    "engine",
    "figures",
    "move_peers",
    "packed_store",
    "page",
    "parity",
    "recorded_loads",
    "replicate",
    "trace_kinds",
}
HELPERS |= {"wide_peers"}


def bench(name: str, *options: str, results: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a bench and return its process."""
    environment = {**os.environ, **({RESULTS: str(results)} if results else {})}
    command = [sys.executable, f"benches/{name}.py", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_every_bench_is_among_those_that_make_bench_runs():
    assert {path.stem for path in BENCHES.glob("*.py")} - HELPERS == set(page.BENCHES)


@pytest.mark.parametrize("name", page.BENCHES)
def test_it_runs_in_its_smallest_size(name: str):
    done = bench(name, "--smoke")
    if done.returncode == LACKS:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()


def line(**more: Any) -> dict[str, Any]:
    """Return one line of a results file."""
    base = {"date": "2026-11-27T10:00Z", "commit": "abcdef01", "machine": "2 x made", "load": 0.1}
    return (
        base | {"command": "python benches/stats.py", "bench": "stats", "what": "w", "value": 2.0, "unit": "s"} | more
    )


def test_each_figure_is_a_line_that_can_be_measured_again(tmp_path: Path):
    kept = tmp_path / "results.jsonl"
    assert bench("help_time", "--rounds", "1", results=kept).returncode == 0
    assert bench("help_time", "--smoke", results=kept).returncode == 0
    native, one = [json.loads(text) for text in kept.read_text().splitlines()]
    assert native["what"] == "dbdyno --help" and native["ratio"] < 1
    assert one["command"] == "python benches/help_time.py --rounds 1"
    assert {"date", "commit", "machine", "load"} <= one.keys()
    assert one["against"] == "python -c pass" and one["ratio"] > 1


def test_the_page_shows_the_latest_line_of_each_figure_of_one_commit():
    old, older = line(value=9.0), line(what="gone", commit="00000000")
    ratio = line(what="x", value=12345.0, against="peer", ratio=0.5, low=0.4, high=0.6, aim="< 1")
    text = page.text_of([older, old, line(value=3.25), ratio])
    assert "| w | 3.25 | s |  |  |  |" in text
    assert "| x | 12,345 | s | peer | 0.5 (0.4 to 0.6) | < 1 |" in text
    assert "gone" not in text and "| 9 |" not in text
    assert "Not measured yet: `python benches/move.py`." in text


def test_the_page_of_figures_is_made_from_the_kept_lines():
    """Whoever measures keeps the lines and makes the page in one go: `make bench`, or `python benches/page.py`."""
    assert page.PAGE.read_text() == page.text_of(page.read(BENCHES / "results.jsonl"))
