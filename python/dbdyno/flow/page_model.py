"""The model of a flow for pages: both plans as lines of a tree, and the change of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dbdyno.base.errors import FlowError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.flow.compare import MARKS, SAME, FlowComparison, compare
from dbdyno.flow.step import Flow, Kind, Step, without_projections
from dbdyno.flow.tables import InputTable, plans_of, text_of

ENGINES = ("duckdb", "polars", "spark", "pig")
NO_TABLES = "name each table with --table NAME=FILE; only a Pig script names its own files"


def model_of_script(script: Path, engine: str, tables: Sequence[InputTable]) -> JsonObject:
    """Return the model of a flow on one engine.

    Raises:
        FlowError: A table is missing, or the engine is missing or reports an error.
    """
    if engine == "pig":
        if tables:
            raise FlowError(
                "a Pig script names its files itself, so --table has no effect",
                where="--table",
                next_step="leave --table out",
            )
        from dbdyno.flow import pig_plans

        return model(pig_plans.flow(script), script.name)
    if not tables:
        raise FlowError("no table is given", where=f"--engine {engine}", next_step=NO_TABLES)
    return model(plans_of(engine).flow(text_of(script).rstrip(";"), tables), script.name)


def model(flow: Flow, title: str) -> JsonObject:
    """Return the model of the page about a flow."""
    compared = compare(flow)
    marks = compared.marks()
    return {
        "schema": 1,
        "kind": "flow",
        "title": title,
        "engine": flow.engine,
        "off": flow.off,
        "headline": compared.headline(),
        "written": nodes(without_projections(flow.written), marks),
        "executed": nodes(without_projections(flow.executed), marks),
        "changes": [{"what": one.what, "mark": one.mark, "sentence": one.sentence} for one in compared.changes],
        "passed": list(_numbers(compared)),
    }


def _numbers(compared: FlowComparison) -> tuple[int | None, int | None]:
    return compared.rows_out


def nodes(step: Step, marks: Mapping[str, str], lead: str = "", level: int = 0, *, last: bool = True) -> list[TableRow]:
    """Return the lines of a plan's tree, from the result down."""
    own = sorted((marks[one] for one in step.atoms if marks.get(one, SAME) != SAME), key=MARKS.index)
    filters = f" where {' and '.join(step.atoms)}" if step.kind == Kind.SCAN and step.atoms else ""
    kind = "" if step.kind == Kind.FILTER and step.text.startswith("filter") else f"{step.kind} "
    line = {
        "lead": lead + ("" if level == 0 else "└─ " if last else "├─ "),
        "level": level,
        "kind": step.kind,
        "text": f"{kind}{step.text}{filters}".strip(),
        "atoms": list(step.atoms),
        "rows": step.rows,
        "elapsed_ns": step.elapsed_ns,
        "mark": own[0] if own else SAME,
    }
    below = lead if level == 0 else lead + ("   " if last else "│  ")
    found = [line]
    for at, one in enumerate(step.inputs):
        found += nodes(one, marks, below, level + 1, last=at == len(step.inputs) - 1)
    return found
