"""One value of a table as words, by the unit that its column names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base

LEFT = ("text", "time")
UNKNOWN = "n/a"
_TONES = {
    "better": "good",
    "not comparable": "doubt",
    "ok": "good",
    "restart": "even",
    "partial": "doubt",
    "evicted": "doubt",
    "clock stepped": "doubt",
}
_PAGES = {
    "report": "Report of an interval",
    "compare": "Comparison of two periods",
    "baseline": "Baseline",
}


def cell(row: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    """A value in its column's unit. What is not known is `n/a` where the row's verdict is to
    blame, a dash elsewhere."""
    value = row.get(column["name"])
    if value is None:
        known = row.get("verdict") in (None, "ok")
        return fmt.NONE if known else UNKNOWN
    unit = str(column.get("unit"))
    if unit == "number":
        return _by_row(value, str(row.get("unit") or ""))
    if unit == "quantity":
        return _quantity(value, str(row.get("unit") or ""))
    return _SHOWN.get(unit, fmt.line)(value)


def _by_row(value: Any, unit: str) -> str:
    if unit in ("ns", "bytes", "1/s"):
        return fmt.quantity(value, unit)
    return fmt.significant(value, 4) if unit != "ratio" else fmt.percent(value, 3)


def _quantity(value: Any, unit: str) -> str:
    """A value with its row's unit behind it."""
    if unit == "1/s":
        return fmt.rate(value)
    return fmt.percent(value, 4) if unit == "ratio" else fmt.quantity(value, unit, 4)


def _time(at_us: Any) -> str:
    given = fmt.number(at_us)
    if given is None:
        return fmt.NONE
    return datetime.fromtimestamp(given / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _aas(value: Any) -> str:
    given = fmt.number(value)
    return fmt.NONE if given is None else fmt.significant(given, 3) if given >= 1 else f"{given:.2f}"


_SHOWN: dict[str, Callable[[Any], str]] = {
    "count": fmt.count,
    "per_s": lambda value: fmt.significant(value, 4),
    "ratio": lambda value: fmt.percent(value, 3),
    "ns": fmt.duration,
    "bytes": fmt.size,
    "bytes_per_s": lambda value: f"{fmt.size(value)}/s",
    "aas": _aas,
    "time": _time,
    "change": fmt.change,
    "p": fmt.probability,
    "digits": fmt.digits,
    "number4": lambda value: fmt.significant(value, 4),
    "times": lambda value: f"×{fmt.significant(value, 3)}",
    "mb": lambda value: f"{fmt.significant(value, 4)}{fmt.THIN}MB",
    "words": fmt.line,
}


def shown(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The columns to show: a unit that belongs to the numbers of its row is shown with them."""
    given = reading.entries(table, "columns")
    numbers = any(column.get("unit") == "number" for column in given)
    return [one for one in given if not (numbers and one["name"] == "unit")]


def head(model: Analysis) -> base.View:
    """Title, the two ends, facts, verdict."""
    facts = reading.dig(model, "facts") or {}
    verdict = reading.dig(model, "verdict") or {}
    word = fmt.line(verdict.get("word") or "ok")
    return {
        "kind": _PAGES.get(str(model.get("page")), "Snapshots"),
        "title": fmt.line(facts.get("title") or "snapshots"),
        "ends": [_end(facts[name]) for name in ("first", "last") if facts.get(name)],
        "elapsed": fmt.span(facts.get("seconds")) if facts.get("seconds") else "",
        "chips": _chips(facts),
        "verdict": {"word": word, "tone": _TONES.get(word, "bad")},
        "why": fmt.line(verdict.get("why") or "") or "no reset, no restart, no crash",
        "alerts": len(reading.entries(model, "warnings")),
    }


def _end(end: Mapping[str, Any]) -> str:
    note = fmt.line(end.get("note") or "", 40)
    return f"{end.get('number')} at {fmt.moment(end.get('at'))}" + (f" “{note}”" if note else "")


def _chips(facts: Mapping[str, Any]) -> list[str]:
    engine = fmt.line(f"{facts.get('engine') or ''} {facts.get('version') or ''}".strip(), 60)
    names = facts.get("databases") or []
    found = [engine]
    if names:
        found.append(
            fmt.line("databases " + ", ".join(map(str, names)), 60)
            if len(names) > 1
            else f"database {fmt.line(names[0], 40)}"
        )
    if (facts.get("snapshots") or 0) > 2:
        found.append(f"{facts['snapshots']} snapshots")
    return [one for one in found if one]
