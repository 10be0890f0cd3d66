"""The waits of one event: summary, quantiles, distribution, over time, the longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.trace.head import clock, place, statement_name
from dbdyno.report.trace.profile import seconds

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    "elapsed_ns",
    "started_ns",
    "event",
    "session",
    "statement",
    "inside",
    "p1",
    "p2",
    "p3",
    "parameters",
    "object_id",
    "file",
    "line",
    "byte_offset",
)
_SHOWN_MOST = 20
_BUCKETS_MOST = 24
_TIMES_MOST = 30


def summary(model: Analysis) -> base.View | None:
    """The numbers of the whole and the quantiles, or None without waits."""
    given = reading.dig(model, "summary")
    if not given:
        return None
    return {
        "facts": [
            ("waits", fmt.count(given.get("count"))),
            ("total", f"{seconds(given.get('total_ns'))} s"),
            ("mean", fmt.duration(given.get("mean_ns"))),
            ("std dev", fmt.duration(given.get("sd_ns"))),
            ("shortest", fmt.duration(given.get("min_ns"))),
            ("longest", fmt.duration(given.get("max_ns"))),
            ("sessions", fmt.count(given.get("sessions"))),
            ("inside calls", fmt.count(given.get("inside"))),
        ],
        "events": [fmt.line(event.get("event")) for event in reading.entries(model, "events")],
        "quantiles": [_quantile(row) for row in reading.entries(model, "quantiles")],
        "note": fmt.line(reading.dig(model, "note") or ""),
    }


def _quantile(row: dict[str, Any]) -> base.View:
    known = row.get("value_ns") is not None
    ends = [fmt.duration(row.get(name)) for name in ("low_ns", "high_ns")]
    return {
        "name": fmt.quantile_name(float(row.get("q") or 0.0)),
        "value": fmt.duration(row.get("value_ns")) if known else fmt.NONE,
        "interval": f"{ends[0]} to {ends[1]}" if known else f"needs {fmt.count(row.get('needs'))} waits",
    }


def histogram(model: Analysis) -> list[dict[str, Any]]:
    """The buckets as text with their shares of count and time."""
    given = reading.dig(model, "histogram")
    if not given:
        return []
    buckets = reading.rows(given, "histogram", ("low_ns", "high_ns", "count", "total_ns"))
    most = max((bucket["count"] for bucket in buckets), default=0) or 1
    whole = sum(bucket["count"] for bucket in buckets) or 1
    longest = sum(bucket["total_ns"] for bucket in buckets) or 1
    return [
        {
            "low": fmt.duration(bucket["low_ns"], 2),
            "high": fmt.duration(bucket["high_ns"], 2),
            "count": fmt.count(bucket["count"]),
            "share": bucket["count"] / whole,
            "time_share": bucket["total_ns"] / longest,
            "width": bucket["count"] / most,
        }
        for bucket in _joined(buckets)
    ]


def _joined(buckets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring buckets together, until they fit on a terminal page."""
    step = -(-len(buckets) // _BUCKETS_MOST) if buckets else 1
    if step == 1:
        return buckets
    joined = []
    for at in range(0, len(buckets), step):
        part = buckets[at : at + step]
        joined.append(
            {
                "low_ns": part[0]["low_ns"],
                "high_ns": part[-1]["high_ns"],
                "count": sum(bucket["count"] for bucket in part),
                "total_ns": sum(bucket["total_ns"] for bucket in part),
            }
        )
    return joined


def longest(model: Analysis) -> base.View | None:
    """The longest waits with their places, or None without any."""
    given = reading.entries(model, "longest")[:_SHOWN_MOST]
    if not given:
        return None
    several = len({row.get("event") for row in given}) > 1
    statements = reading.entries(model, "statements") if reading.dig(model, "page") == "report" else []
    anchors = {str(entry.get("statement")): f"#s-{at}" for at, entry in enumerate(statements, 1)}
    return {
        "several": several,
        "rows": [
            {
                "elapsed": fmt.duration(row.get("elapsed_ns"), 4),
                "event": fmt.line(row.get("event") or ""),
                "href": anchors.get(str(row.get("statement")), ""),
                "at": clock(row.get("started_ns"), 1e6),
                "what": parameters(row),
                "statement": statement_name(row.get("statement"), row.get("text"), 60),
                "inside": fmt.line(row.get("inside") or "between calls"),
                "place": place(row.get("file"), row.get("line")),
            }
            for row in given
        ],
        "all": len(reading.entries(model, "longest")),
    }


def parameters(row: dict[str, Any]) -> str:
    """A wait's parameters with their names: `file#=10 block#=43953 blocks=1`."""
    names = fmt.line(row.get("parameters") or "").split(",")
    values = [row.get(key) for key in ("p1", "p2", "p3")]
    pairs = [f"{name or 'p'}={value}" for name, value in zip(names, values, strict=False) if value is not None]
    return " ".join(pairs)


def series(model: Analysis) -> base.View | None:
    """Interval by interval: count, mean, p99, longest; None without any."""
    given = reading.dig(model, "series") or {}
    every = fmt.number(given.get("every_ns")) or 1e9
    found = reading.entries(given, "rows")
    if len(found) < 2:
        return None
    return {
        "every": fmt.duration(every),
        "rows": [
            {
                "at": clock(row.get("at_ns"), every),
                "count": fmt.count(row.get("count")),
                "seconds": seconds(row.get("total_ns")),
                "mean": fmt.duration(row.get("mean_ns")),
                "p99": fmt.duration(row.get("p99_ns")),
                "max": fmt.duration(row.get("max_ns")),
                "mean_ns": row.get("mean_ns"),
                "max_ns": row.get("max_ns"),
                "number": row.get("count"),
            }
            for row in found
        ],
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """The longest waits, one row each: as many as were asked for."""
    return [{name: row.get(name) for name in COLUMNS} for row in reading.entries(model, "longest")]


def print_page(model: Analysis, page: Console) -> None:
    """All parts, one after the other."""
    shown = summary(model)
    if shown is None:
        return
    facts = [f"{name} {value}" for name, value in shown["facts"] if value != fmt.NONE]
    page.print(console.plain(" · ".join(facts)))
    page.print()
    table = console.table("Quantiles", ["quantile"], ["value"], narrowest=8, padding=(0, 3, 0, 0))
    table.add_column("95 % interval", no_wrap=True)
    for row in shown["quantiles"]:
        table.add_row(*(console.plain(row[key]) for key in ("name", "value", "interval")))
    page.print(table)
    page.print(console.plain(shown["note"], "dim"))
    _print_histogram(model, page)
    _print_series(model, page)
    _print_longest(model, page)


def _print_histogram(model: Analysis, page: Console) -> None:
    buckets = histogram(model)
    if not buckets:
        return
    table = console.table("Distribution, logarithmic", ["from"], ["waits"], narrowest=8, padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("of time", justify="right", no_wrap=True)
    room = max(10, min(60, page.width - 40))
    for bucket in buckets:
        drawn = characters.bar(bucket["width"], room).ljust(room)
        part = fmt.percent(bucket["time_share"]) if bucket["time_share"] else ""
        cells = (bucket["low"], bucket["count"], drawn, part)
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print()
    page.print(table)


def _print_series(model: Analysis, page: Console) -> None:
    shown = series(model)
    if shown is None:
        return
    page.print()
    every = shown["rows"]
    if len(every) > _TIMES_MOST:
        title = f"Over time, every {shown['every']}, {every[0]['at']} to {every[-1]['at']}"
        page.print(console.plain(title, "bold"))
        for name, key in (("count", "number"), ("mean", "mean_ns"), ("longest", "max_ns")):
            values = [float(row[key] or 0) for row in every]
            room = max(page.width - 24, 12)
            strip = characters.heights(characters.squeezed(values, room))
            top = fmt.count(max(values)) if key == "number" else fmt.duration(max(values))
            page.print(console.plain(f"{name:>8} {strip} {top}"))
        return
    names = ["count", "seconds", "mean", "p99", "max"]
    table = console.table(f"Over time, every {shown['every']}", ["from"], names, narrowest=8, padding=(0, 2, 0, 0))
    for row in every:
        table.add_row(*(console.plain(row[name]) for name in ("at", *names)))
    page.print(table)


def _print_longest(model: Analysis, page: Console) -> None:
    shown = longest(model)
    if shown is None:
        return
    wide = page.width >= 110
    left = ["at", "parameters", "statement", "place"] if wide else ["at", "parameters", "place"]
    table = console.table("The longest", [], ["elapsed"], padding=(0, 2, 0, 0))
    for name in left:
        table.add_column(name, overflow="fold", no_wrap=name == "at")
    for row in shown["rows"][: _SHOWN_MOST if wide else 10]:
        cells = [row["elapsed"], row["at"], row["what"], row["statement"], row["place"]]
        if not wide:
            del cells[3]
        table.add_row(*(console.plain(cell) for cell in cells))
    page.print()
    page.print(table)


SECTIONS = (
    base.Section("trace_waits", "Summary", summary),
    pictures.SECTION,
    base.Section("trace_series", "Over time", series),
    base.Section("trace_longest", "The longest waits", longest),
)
