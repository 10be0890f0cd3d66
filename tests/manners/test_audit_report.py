"""Report of `make audit` on pip-audit's output: a package that was not checked does not count as safe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "audit_report.py"
WELL = {"name": "click", "version": "8", "vulns": []}
SKIPPED = {"name": "attrs", "skip_reason": "Dependency not found on PyPI and could not be audited: attrs (26)"}
BAD = {"name": "rich", "version": "1", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["2"]}]}


@pytest.mark.parametrize(
    ("found", "code", "said"),
    [
        ([WELL], 0, ""),
        ([WELL, SKIPPED], 3, "the advisory service answered for 1 of 2 packages"),
        ([WELL, SKIPPED, BAD], 1, "rich 1: PYSEC-2026-1"),
        ([], 3, ""),
        (None, 3, ""),
    ],
)
def test_only_what_was_looked_up_is_well(
    tmp_path: Path, found: list[dict[str, object]] | None, code: int, said: str
) -> None:
    report = tmp_path / "report.json"
    if found is not None:
        report.write_text(json.dumps({"dependencies": found, "fixes": []}))
    done = subprocess.run([sys.executable, TOOL, report], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (code, said, "")
