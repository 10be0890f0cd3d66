"""Builder of the page about a data flow: the plan as written and the plan as executed, side by side."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Finding, Head, Page, Section, Tone
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry

BLANK = "\u2800"
"""A character that looks like a blank but is not stripped from the beginning of a cell."""
SIGNS = {"moved": "↓", "merged": "→", "dropped": "-", "added": "+"}
TONES: dict[str, Tone] = {"same": "even", "moved": "good", "merged": "good", "dropped": "doubt", "added": "doubt"}


def page(model: Analysis) -> Page:
    """Return the page about a data flow."""
    engine = fmt.line(model.get("engine") or "")
    off = fmt.line(model.get("off") or "")
    head = Head(
        "Data flow",
        fmt.line(model.get("title") or ""),
        headline=fmt.line(model.get("headline") or "", 300),
        sentences=(f"As written: the optimizer of {engine} off ({off}). As executed: {engine} with its defaults.",),
        chips=(engine,),
    )
    changes = reading.entries(model, "changes")
    findings = tuple(
        Finding(fmt.line(one.get("sentence") or "", 300), TONES.get(str(one.get("mark")), "even")) for one in changes
    )
    about = "↓ moved, → merged, - dropped, + added. Steps that only select columns are not shown."
    plans = Section("plans", "The plans", about, tables=(_table(model),), findings=findings)
    drawn = Section("figures", "Figures", figures=common.figures(model, "flow"), where="page")
    return Page(head, (plans, drawn), data=lambda: common.flat_table(list(_flat(model))))


def _table(model: Analysis) -> Any:
    shown: tuple[Column, ...] = (
        *columns("written:text:as_written written_rows:count:rows written_ns:ns:time"),
        *columns("executed:text:as_executed executed_rows:count:rows executed_ns:ns:time"),
    )
    sides = ("written", "executed")
    shown = tuple(one for one in shown if "_" not in one.name or _tells(model, one.name))
    rows = []
    for pair in zip_longest(*(reading.entries(model, side) for side in sides)):
        cells: TableRow = {}
        for side, node in zip(sides, pair, strict=True):
            if node is not None:
                cells[side] = Cell(_line(node))
                cells[f"{side}_rows"], cells[f"{side}_ns"] = node.get("rows"), node.get("elapsed_ns")
        rows.append(cells)
    return common.table("", shown, rows)


def _tells(model: Analysis, name: str) -> bool:
    side, _, what = name.partition("_")
    key = "rows" if what == "rows" else "elapsed_ns"
    return any(node.get(key) is not None for node in reading.entries(model, side))


def _line(node: Entry) -> str:
    sign = SIGNS.get(str(node.get("mark")), "")
    lead = str(node.get("lead") or "").replace(" ", BLANK)
    return f"{lead}{f'{sign} ' if sign else ''}{fmt.line(node.get('text') or '', 120)}"


def _flat(model: Analysis) -> Any:
    for side in ("written", "executed"):
        for node in reading.entries(model, side):
            yield {
                "plan": side,
                **{key: node.get(key) for key in ("level", "kind", "text", "rows", "elapsed_ns", "mark")},
            }
