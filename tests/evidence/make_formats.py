"""Write a small folder of each format, as this version has it, for later versions to read.

    PYTHONPATH=python:tests:tests/ui:tests/trace python tests/evidence/make_formats.py tests/evidence/formats/VERSION

Run it once when a version is released; existing folders are never overwritten.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from interface import interface
from planted_day import BEGIN_S, Day
from trace_text import trace

from command_line import succeeded
from mock_plans import two_arms

IMPORTED = Path(__file__).parents[1] / "imports" / "outputs" / "benchbase.summary.json"


def make(place: Path) -> None:
    """Write each format into a folder of its own."""
    place.mkdir(parents=True)
    (place / "interface.json").write_text(json.dumps(interface(), indent=1) + "\n")
    (place / "plan.toml").write_text(two_arms(title="kept for later versions", blocks=6, turn="40ms"))
    (place / "one.trc").write_text(trace(orders=3))
    words = (
        ("run", "plan.toml", "--seed", "7", "--out", "runs", "--share"),
        ("runs", "import", IMPORTED.resolve(), "--out", "imported", "--share"),
        ("trace", "import", "one.trc", "--out", "traced", "--share"),
        ("results", "push", "results", "last", "--ran-on", "made-once", "--commit", ""),
    )
    for command in words:
        succeeded(*command, cwd=place)
    Day(place / "snaps", every_s=7200).make(BEGIN_S, BEGIN_S + 4 * 7200)
    for file in (*place.glob("runs/*/report.html"), *place.glob("**/lock")):
        file.unlink()


if __name__ == "__main__":
    make(Path(sys.argv[1]))
