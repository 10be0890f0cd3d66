"""Results of a run of each kind do not change: analysis.json, the terminal page, and the HTML page.

If a change is intended, run `python tests/golden/renew.py` and review the diff.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import golden_cases as golden
import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all evidence, because pairs compare runs of other cases."""
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize("case", golden.ALL)
def test_what_is_made_of_a_run_stays_what_it_was(case: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    analysis = golden.analysis_of(case, folder)
    wrong = list(golden.differences(golden.kept_analysis(case), analysis))
    assert not wrong, "\n".join([f"{len(wrong)} differences; the first:", *wrong[:20]])
    for suffix, page in golden.pages(analysis).items():
        was = (golden.KEPT / f"{case}.{suffix}").read_text()
        if not golden.same_words(was, page):
            told = difflib.unified_diff(was.splitlines(), page.splitlines(), "was", "now", lineterm="", n=1)
            pytest.fail("\n".join([f"{case}.{suffix}", *list(told)[:60]]))
