"""Notebook of the Python API, docs/learn/laboratory.ipynb: its cells, and how to execute them without Jupyter.

python tests/manners/notebook.py     # writes the notebook, with what its cells showed in a run
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.json_types import JsonObject, TableRow

PLACE = Path(__file__).resolve().parents[2] / "docs" / "learn" / "laboratory.ipynb"
_SOURCE = r'''
%% markdown
# A laboratory in Python

Run, compare, ask by SQL, plot. Everything that the commands do is also a function of `dbdyno`; the evidence
is Parquet, so polars and DuckDB read it without dbdyno.
%% code
from pathlib import Path

import dbdyno

plan = dbdyno.parse_plan(
    """
title = "work_mem for a sort"
question = "Does work_mem = 16MB make this sort faster?"

[workload]
scripts = [{text = "select count(distinct n % 5000) from generate_series(1, 40000) n;"}]

[watch]
overhead_blocks = 0

[schedule]
blocks = 8
warmup_blocks = 1
turn = "200ms"
slice = "50ms"

[[arm]]
name = "64kB"
settings = {work_mem = "64kB"}

[[arm]]
name = "16MB"
settings = {work_mem = "16MB"}
""",
    Path("plan.toml"),
)
len(plan.arms)
%% markdown
A run on an embedded PostgreSQL, which is gone afterwards. `run` is a folder of evidence.
%% code
run = dbdyno.start(plan, Path("runs"), seed=7)
run
%% markdown
The analysis is the model behind every report: a verdict, measures, causes.
%% code
analysis = dbdyno.analyse(run)
analysis["verdict"]["headline"]
%% markdown
Every operation is in the evidence: ask by SQL, and go on with polars. Block 0 was the warm-up.
%% code
calls = dbdyno.sql(
    "select arm, block, count(*) as operations, median(elapsed_ns) / 1e6 as p50_ms"
    " from calls where block > 0 group by all order by block, arm",
    run,
).pl()
calls.head(4)
%% markdown
The unit of inference is the block: one value of each arm per block, compared in pairs.
%% code
base, other = (
    calls.filter(calls["arm"] == name).sort("block")["p50_ms"].to_numpy()
    for name in ("64kB", "16MB")
)
compared = dbdyno.compare_blocks(base, other, higher_is_better=False, metric="p50", unit="ms")
compared
%% markdown
Figures and the page of the run.
%% code
figures = dbdyno.write_figures(analysis, "figures", ["svg"])
page = dbdyno.write_html(analysis, "report.html")
(len(figures) > 0, page.name)
'''
CELLS = [(kind, source.strip()) for kind, _, source in (part.partition("\n") for part in _SOURCE.split("%% ")[1:])]
"""Kind and source of each cell."""
TURN = 'turn = "200ms"'


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def executed(folder: Path, turn: str = TURN) -> tuple[list[TableRow], JsonObject]:
    """Execute the cells in a folder, with turns of this length; return the cells with their outputs, and the names that
    they defined.
    """
    names: JsonObject = {}
    cells: list[TableRow] = []
    with _inside(folder):
        for number, (kind, source) in enumerate(CELLS):
            cell: JsonObject = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source}
            if kind == "code":
                cell |= {"execution_count": number, "outputs": _shown(source.replace(TURN, turn), names)}
            cells.append(cell)
    return cells, names


def _shown(source: str, names: JsonObject) -> list[TableRow]:
    """Execute a cell as Jupyter does, and return its output; the value of a last expression is part of it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is None:
            return []
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    data = {"text/plain": repr(value)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_()
    return [{"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}]


def written(cells: list[TableRow]) -> str:
    """Return the notebook as JSON (nbformat 4.5)."""
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return json.dumps({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PLACE.write_text(written(executed(Path(place))[0]).replace(place, "."))
