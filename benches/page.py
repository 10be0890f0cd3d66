"""docs/explanation/performance.md from the latest line of each figure in benches/results.jsonl.

python benches/page.py
"""

from __future__ import annotations

import ast
import json
from pathlib import Path

from figures import ROOT

from dbdyno.base.json_types import JsonObject, TableRow

PAGE = ROOT / "docs" / "explanation" / "performance.md"
BENCHES = {
    "help_time": "Start",
    "pgbench_parity": "Load against pgbench",
    "mysql_parity": "Load against sysbench on MariaDB",
    "line": "A longer line",
    "capture": "Keeping every operation",
    "analysis": "Analysis of a run",
    "stats": "Statistics of waits",
    "trend": "False changes of `trend`",
    "verdict": "False verdicts of two periods, and power",
    "traces": "Traces",
    "plans": "Plans from a log",
    "logs": "Captures from logs",
    "record": "Exact waits",
    "record_read": "Waits read from memory",
    "wait_ways": "Ways to see waits, side by side",
    "record_beside": "Sampled beside exact",
    "proxy": "The proxy",
    "rehearse": "Rehearsing a large load",
    "snapshot": "Snapshots",
    "bounds": "What a report of snapshots and an import cannot avoid",
    "top": "The live screen",
    "ui": "Pages in a browser",
    "fleet": "Many targets in one watch",
    "pg_profile_parity": "Figures beside pg_profile's",
    "cells": "Storage cells",
    "probe": "The redo probe against fio",
    "model": "The model",
    "model_events": "200 million events of the model",
    "device": "Mounted devices",
    "predict": "Predictions of a calibrated machine",
    "predict_mariadb": "Predictions of MariaDB's commits",
    "move": "Moving a table",
    "move_database": "Moving a database",
    "wide": "Wide tables",
}
"""The benches in their order, and their headings."""
HEAD = """\
# Performance

Each table is the latest run of its bench. `make bench` runs all benches, adds a line for each figure to
`benches/results.jsonl`, and generates this page from it (`python benches/page.py`). A ratio is dbdyno's figure
divided by that of the peer or limit beside it, measured in the same run. Below 1 is better for a time, above 1 for a
rate. Its 95 % interval is in parentheses if the run has pairs. Benches with false rates and power measure verdicts,
not speed.
"""
COLUMNS = ("figure", "unit", "against", "ratio", "aim")


def latest(lines: list[TableRow]) -> dict[str, dict[str, JsonObject]]:
    """The last line of each figure, by bench; of the bench's last commit and machine only."""
    found: dict[str, dict[str, JsonObject]] = {}
    for line in lines:
        rows = found.setdefault(line["bench"], {})
        before = next(iter(rows.values()), line)
        if (before["commit"], before["machine"]) != (line["commit"], line["machine"]):
            rows.clear()
        rows[line["what"]] = line
    return found


def text_of(lines: list[TableRow]) -> str:
    """The whole page."""
    found = latest(lines)
    parts = [HEAD]
    for bench, title in BENCHES.items():
        parts.append(f"## {title}\n\n{_said(bench)}\n")
        rows = list(found.get(bench, {}).values())
        if not rows:
            parts.append(f"Not measured yet: `python benches/{bench}.py`.\n")
            continue
        commands = list(dict.fromkeys(row["command"] for row in rows))
        last = rows[-1]
        ran = f"at a load of {last['load']:g}, commit {last['commit'] or 'unknown'}, on {last['date'][:10]}"
        commands_shown = " and ".join(f"`{one}`" for one in commands)
        parts.append(f"Measured by {commands_shown} on {last['machine']}, {ran}.\n")
        parts.append(_table(rows))
    return "\n".join(parts)


def _said(bench: str) -> str:
    """What the bench says that it measures: the first paragraph of its docstring."""
    text = ast.get_docstring(ast.parse((ROOT / "benches" / f"{bench}.py").read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _table(rows: list[TableRow]) -> str:
    shown = [name for name in COLUMNS if name == "figure" or any(_cell(row, name) for row in rows)]
    lines = ["| | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for row in rows:
        lines.append(f"| {row['what']} | " + " | ".join(_cell(row, name) for name in shown) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: TableRow, name: str) -> str:
    if name == "figure":
        return f"{row['value']:,.4g}" if abs(row["value"]) < 1e4 else f"{row['value']:,.0f}"
    if name == "ratio" and "ratio" in row:
        between = f" ({row['low']:.3g} to {row['high']:.3g})" if "low" in row else ""
        return f"{row['ratio']:.3g}{between}"
    return str(row.get(name, ""))


def read(path: Path) -> list[TableRow]:
    """The lines of a file of results."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write() -> None:
    """Makes the page."""
    PAGE.write_text(text_of(read(ROOT / "benches" / "results.jsonl")))


if __name__ == "__main__":
    write()
