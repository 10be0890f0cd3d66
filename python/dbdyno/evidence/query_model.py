"""Model of the page about a query's answer: its rows, units of the columns, and chart data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

from dbdyno.base.json_types import JsonObject

SHOWN = 500
"""Maximum number of rows in the model; exported data files have all rows."""
SERIES_MOST = 6
POINTS_LEAST = 2


def answer_model(names: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str] = ()) -> JsonObject:
    """Return the model of an answer with at most `SHOWN` of its rows.

    The chart shows the last column of numbers. If the first column is a time or a number, it is the x axis, and a text
    column with few values gives one line per value. Otherwise each row is a bar.
    """
    shown = rows[:SHOWN]
    units = [_unit([row[at] for row in shown]) for at in range(len(names))]
    columns = [{"name": name, "unit": unit} for name, unit in zip(names, units, strict=True)]
    return {
        "schema": 1,
        "kind": "query",
        "count": len(rows),
        "columns": columns,
        "rows": [[_plain(value) for value in row] for row in shown],
        "left_out": max(len(rows) - SHOWN, 0),
        "notes": list(notes),
        **_chart_of(names, units, shown),
    }


def _unit(values: Sequence[Any]) -> str:
    known = [value for value in values if value is not None]
    if known and all(isinstance(one, date) for one in known):
        return "time"
    if not known or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
        return "text"
    return "digits" if all(isinstance(one, int) for one in known) else "number5"


def _plain(value: Any) -> Any:
    """Return a value in JSON form; a time as microseconds since 1970."""
    if isinstance(value, date):
        return round(_seconds(value) * 1e6)
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _seconds(value: date) -> float:
    at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (at.replace(tzinfo=UTC) if at.tzinfo is None else at).timestamp()


def _chart_of(names: Sequence[str], units: Sequence[str], rows: Sequence[Sequence[Any]]) -> JsonObject:
    numbers = [at for at, unit in enumerate(units) if unit in ("digits", "number5") and at > 0]
    if not numbers:
        return {"points": []}
    y = numbers[-1]
    texts = [at for at, unit in enumerate(units) if unit == "text"]
    found = [row for row in rows if row[y] is not None and row[0] is not None]
    is_line = units[0] != "text" and len(found) >= POINTS_LEAST and _rises(found, texts)
    if not is_line:
        points = [{"x": float(at), "y": float(row[y]), "name": str(row[0])} for at, row in enumerate(found)]
        return {"form": "bars", "y": names[y], "points": points}
    series = texts[0] if texts and len({row[texts[0]] for row in found}) <= SERIES_MOST else None
    points = [
        {
            "x": _seconds(row[0]) if units[0] == "time" else float(row[0]),
            "y": float(row[y]),
            "name": str(row[series]) if series is not None else names[y],
        }
        for row in found
    ]
    return {"form": "clock" if units[0] == "time" else "line", "x": names[0], "y": names[y], "points": points}


def _rises(rows: Sequence[Sequence[Any]], texts: Sequence[int]) -> bool:
    """Return True if the values of the first column always rise.

    If there is a text column, they need to rise only among the rows with equal text in the first such column.
    """
    last: dict[Any, Any] = {}
    for row in rows:
        name = row[texts[0]] if texts else None
        if name in last and not row[0] > last[name]:
            return False
        last[name] = row[0]
    return True
