"""Values of a page as text according to their unit, and the columns and cells that a renderer shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from dbdyno.page import Cell, Column, Row, Table
from dbdyno.pages import format as fmt

UNKNOWN = "n/a"
LEFT = ("text", "code", "time", "left")
"""Units whose values are left-aligned; numbers are right-aligned."""


def value_text(row: Row, column: Column) -> str:
    """Return a value as text in its unit.

    A missing value is `n/a` if the row has a verdict that explains it, otherwise a dash.
    """
    given = row.cells.get(column.name)
    cell = given if isinstance(given, Cell) else Cell(given)
    if cell.value is None:
        if column.kind != "value" or (column.name not in row.cells and row.style):
            return ""
        return UNKNOWN if row.verdict else fmt.NONE
    unit = cell.unit or column.unit
    if unit == "number":
        return _number(cell.value, str(row.cells.get("unit") or ""))
    if unit == "quantity":
        return quantity(cell.value, str(row.cells.get("unit") or ""))
    return _SHOWN.get(unit, _text)(cell.value)


def cell_of(row: Row, column: Column) -> Cell:
    """Return a row's cell in a column; a plain value is wrapped in a cell."""
    given = row.cells.get(column.name)
    return given if isinstance(given, Cell) else Cell(given)


def columns_of(table: Table, where: str, width: int = 0) -> list[Column]:
    """Return the columns to show in `where`; a column of units is omitted if numbers are shown with their unit.

    Args:
        table: the table.
        where: `page` or `text`.
        width: width of the terminal; columns that need a wider one are left out.
    """
    numbers = any(column.unit == "number" for column in table.columns)
    return [
        column
        for column in table.columns
        if column.where in ("both", where)
        and not (numbers and column.name == "unit")
        and (where == "page" or column.least <= width)
    ]


def is_left(column: Column) -> bool:
    """Return True if a column is left-aligned."""
    return column.kind != "value" or column.unit in LEFT


def quantity(value: Any, unit: str) -> str:
    """Return a value followed by its row's unit."""
    if unit == "1/s":
        return fmt.rate(value)
    return fmt.percent(value, 4) if unit == "ratio" else fmt.quantity(value, unit, 4)


def _number(value: Any, unit: str) -> str:
    if unit in ("ns", "bytes", "1/s"):
        return fmt.quantity(value, unit)
    if unit in ("count", "") and float(value).is_integer():
        return fmt.count(value)
    return fmt.significant(value, 4) if unit != "ratio" else fmt.percent(value, 3)


def _text(value: Any) -> str:
    return fmt.line(value)


def _time(at_us: Any) -> str:
    given = fmt.number(at_us)
    if given is None:
        return fmt.NONE
    return datetime.fromtimestamp(given / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _aas(value: Any) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else fmt.significant(given, 3) if given >= 1 else f"{given:.2f}"


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "count": fmt.count,
    "per_s": lambda value: fmt.significant(value, 4),
    "ratio": lambda value: fmt.percent(value, 3),
    "percent": fmt.percent,
    "share": fmt.share,
    "ns": fmt.duration,
    "ns2": lambda value: fmt.duration(value, 2),
    "ns4": lambda value: fmt.duration(value, 4),
    "seconds": fmt.seconds,
    "difference": fmt.difference,
    "span": fmt.span,
    "bytes": fmt.size,
    "bytes_per_s": lambda value: f"{fmt.size(value)}/s",
    "aas": _aas,
    "time": _time,
    "change": fmt.change,
    "p": fmt.probability,
    "log10_p": fmt.log10_probability,
    "digits": fmt.digits,
    "number2": lambda value: fmt.significant(value, 2),
    "number3": lambda value: fmt.significant(value, 3),
    "number4": lambda value: fmt.significant(value, 4),
    "number5": lambda value: fmt.significant(value, 5),
    "plain3": lambda value: f"{value:.3f}",
    "times": lambda value: f"×{fmt.significant(value, 3)}",
    "mb": lambda value: f"{fmt.significant(value, 4)}{fmt.THIN}MB",
    "text": _text,
    "words": _text,
    "code": fmt.text,
}
