"""The notebook of the Python API runs from its first to its last cell, and results are displayed in it."""

from __future__ import annotations

import json
from pathlib import Path

import notebook
import pytest

import dbdyno
from dbdyno.base.notebook import facts_table

pytest.importorskip("polars", reason="polars not found; make setup-test installs it")


@pytest.mark.long
def test_every_cell_runs_and_the_arms_differ(tmp_path: Path) -> None:
    cells, names = notebook.executed(tmp_path, turn='turn = "100ms"')
    assert [cell["source"] for cell in cells] == [source for _, source in notebook.CELLS]
    compared = names["compared"]
    assert compared.ratio < 0.95 and compared.blocks == 8
    assert "<caption>" in compared._repr_html_() and names["run"].id in names["run"]._repr_html_()
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_notebook_has_the_cells_and_what_they_showed() -> None:
    kept = json.loads(notebook.PLACE.read_text())
    assert [cell["source"] for cell in kept["cells"]] == [source for _, source in notebook.CELLS]
    assert all(cell["outputs"] for cell in kept["cells"] if cell["cell_type"] == "code")
    assert "/tmp/" not in notebook.PLACE.read_text()


def test_what_a_result_says_of_itself_is_escaped() -> None:
    shown = facts_table("<b>", {"<i>": "<script>", "x": 0.123456, "none": None})
    assert "<script>" not in shown and "&lt;script&gt;" in shown
    assert "0.1235" in shown and "–" in shown


def test_every_public_name_has_a_docstring() -> None:
    silent = [name for name in dbdyno.__all__ if not (getattr(dbdyno, name).__doc__ or "").strip()]
    assert [name for name in silent if name != "STUDIES"] == []
