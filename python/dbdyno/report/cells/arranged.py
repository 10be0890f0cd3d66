"""The sections of a page about cells: those of a report as they are, those of the shorter pages
made of their rows. Nothing is computed: rows are put into the tables' shape, family by family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis

Row = dict[str, Any]
ROWS_MOST = 1000
_REASONS = {
    "not refreshed": "not refreshed: the cell had not collected anew",
    "reset": "reset: the cell's service began anew in between",
    "new": "seen only after",
    "gone": "seen only before",
}


def sections(model: Analysis) -> list[Row]:
    """The sections of any page."""
    made = {"show": _show, "diff": _diff, "skew": _skew}.get(str(model.get("page")))
    return reading.entries(model, "sections") if made is None else list(made(model))


CELLS_BESIDE = 6
"""More cells than these scroll: what stands for all of them and what it means come before."""


def _column(name: str, label: str, unit: str = "text") -> Row:
    return {"name": name, "label": label, "unit": unit}


def _table(title: str, columns: Sequence[Row], rows: Sequence[Row]) -> Row:
    return {
        "title": title,
        "columns": list(columns),
        "rows": list(rows[:ROWS_MOST]),
        "left_out": max(0, len(rows) - ROWS_MOST),
    }


def _by_family(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows by the first word of their metric's name."""

    def head(row: Row) -> str:
        return str(row.get("metric")).partition("_")[0]

    for family, own in groupby(sorted(rows, key=head), key=head):
        yield family, list(own)


def _titled(columns: Callable[[list[Row]], list[Row]], rows: Sequence[Row]) -> Iterator[Row]:
    for family, own in _by_family(rows):
        title = next((str(row["family"]) for row in own if row.get("family")), family)
        yield {
            "name": f"f-{family.lower()}",
            "title": title[:1].upper() + title[1:],
            "tables": [_table("", columns(own), own)],
        }


def _show(model: Analysis) -> Iterator[Row]:
    cells = reading.entries(model, "cells")
    rows = [
        {
            **row,
            "all": _whole(row),
            **{f"c{at}": (row.get("values") or {}).get(cell.get("name")) for at, cell in enumerate(cells)},
        }
        for row in reading.entries(model, "rows")
    ]

    def columns(own: list[Row]) -> list[Row]:
        heads = [
            _column(f"c{at}", f"{cell.get('name')}{' !' if cell.get('problem') else ''}", "digits")
            for at, cell in enumerate(cells)
        ]
        meaning = [_column("description", "meaning")]
        item = [_column("object", "object")] if any(row.get("object") for row in own) else []
        return [
            _column("metric", "metric"),
            *item,
            _column("all", "all", "words"),
            _column("unit", "unit"),
            *(meaning if len(heads) > CELLS_BESIDE else []),
            *heads,
            *(meaning if len(heads) <= CELLS_BESIDE else []),
        ]

    yield from _titled(columns, rows)


def _whole(row: Row) -> str:
    """What stands for all cells: a number, a range where a sum means nothing, or a dash."""
    if row.get("all") is not None:
        return fmt.digits(row["all"])
    if row.get("rule") != "spread":
        return fmt.NONE
    low, high = fmt.digits(row.get("low")), fmt.digits(row.get("high"))
    return low if low == high else f"{low} to {high}"


def _diff(model: Analysis) -> Iterator[Row]:
    log = reading.dig(model, "flash_log")
    if log:
        yield {
            "name": "flash-log",
            "title": "Who was first",
            "tables": [_log_table(log)],
            "about": "The interval is Wilson's, as if writes were independent: the true one is wider.",
            "notes": []
            if log.get("identity_holds")
            else ["Disk first + flash first is not FL_IO_W: the counters are of several moments."],
        }
    latencies = reading.entries(model, "latencies")
    if latencies:
        places = _places(latencies)
        columns = [
            _column("metric", "latency"),
            *places,
            _column("value", "value", "number4"),
            _column("unit", "unit"),
            _column("requests", "requests", "digits"),
        ]
        yield {
            "name": "latencies",
            "title": "Latencies",
            "tables": [_table("", columns, latencies)],
            "about": "The difference of the times over the difference of the requests.",
        }

    def columns_of(own: list[Row]) -> list[Row]:
        return [
            _column("metric", "metric"),
            *_places(own),
            _column("delta", "difference", "digits"),
            _column("per_s", "per second", "number4"),
            _column("unit", "unit"),
            _column("description", "meaning"),
        ]

    yield from _titled(columns_of, [row for row in reading.entries(model, "rows") if row["delta"]])
    without = reading.entries(model, "without")
    if without:
        yield {"name": "without", "title": "Without a difference", "tables": [_without(without)]}


def _places(rows: Sequence[Row]) -> list[Row]:
    return [_column(name, name) for name in ("cell", "object") if any(r.get(name) for r in rows)]


def _log_table(log: Mapping[str, Any]) -> Row:
    heads = (
        ("writes", "redo writes", "digits"),
        ("disk_first", "disk first", "digits"),
        ("flash_first", "flash first", "digits"),
        ("flash_share", "share of flash", "share"),
        ("flash_share_low", "95 % from", "share"),
        ("flash_share_high", "to", "share"),
        ("prevented_outliers", "outliers prevented", "digits"),
        ("actual_outliers", "on both", "digits"),
        ("flash_only_outliers", "on flash only", "digits"),
    )
    rows = [
        {"what": label, "value": _log_value(log.get(name), unit)}
        for name, label, unit in heads
        if log.get(name) is not None
    ]
    rows += [
        {"what": f"passed by: {reason}", "value": fmt.digits(number)}
        for reason, number in (log.get("passed_by") or {}).items()
    ]
    return _table("", [_column("what", ""), _column("value", "value", "words")], rows)


def _log_value(value: Any, unit: str) -> str:
    return f"{100 * value:.2f}{fmt.THIN}%" if unit == "share" else fmt.digits(value)


def _without(entries: Sequence[Row]) -> Row:
    told: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = str(entry.get("cell")), str(entry.get("verdict"))
        told[key] = told.get(key, 0) + 1
    rows = [
        {"cell": cell, "counters": number, "why": _REASONS.get(verdict, verdict)}
        for (cell, verdict), number in told.items()
    ]
    columns = [_column("cell", "cell"), _column("counters", "counters", "count"), _column("why", "why")]
    return _table("", columns, rows)


def _skew(model: Analysis) -> Iterator[Row]:
    rows = [
        {**row, "of": f"{row.get('n_siblings')} {row.get('siblings')}", "word": "differs" if row.get("differs") else ""}
        for row in reading.entries(model, "rows")
    ]
    columns = [
        _column("name", "which"),
        _column("metric", "metric"),
        _column("of", "siblings"),
        _column("ratio", "times the median", "times"),
        _column("low", "95 % from", "times"),
        _column("high", "to", "times"),
        _column("rounds", "intervals", "count"),
        _column("q", "q", "p"),
        _column("word", ""),
    ]
    about = (
        "The mean log ratio of each sibling to the median of its kind, over the rounds; Student's "
        "t; all tests under one false-discovery control (Benjamini and Hochberg)."
    )
    yield {
        "name": "siblings",
        "title": "Siblings",
        "about": about,
        "figures": ["cells_skew"],
        "tables": [_table("", columns, rows)] if rows else [],
    }
