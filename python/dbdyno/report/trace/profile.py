"""The response-time profile: where the time went, line by line, closed to the microsecond."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dbdyno.pages import reading
from dbdyno.report import characters, console
from dbdyno.pages import format as fmt
from dbdyno.pages.reading import Analysis
from dbdyno.report.sections import base, pictures
from dbdyno.report.trace.head import clock, statement_name

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    "count",
    "waits",
    "total_ns",
    "share",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
)
CALLS = ("count", "elapsed_ns", "cpu_ns", "self_elapsed_ns", "self_cpu_ns", "rows")
_STYLES = {"cpu": "green", "unaccounted": "yellow", "between": "yellow", "wait": "cyan"}
_LEAST, _BELOW = 1000, 2
# Columns of a terminal in their order, with the width from which on each is shown.
_SHOWN = (
    ("count", "count", 0),
    ("seconds", "seconds", 0),
    ("share", "share", 0),
    ("", "bar", 92),
    ("mean", "mean", 112),
    ("p50", "p50", 122),
    ("p99", "p99", 101),
    ("max", "max", 0),
)


def view(model: Analysis, longest: int = 60) -> base.View | None:
    """The lines as text, or None without a profile; `longest` is how much of a statement's text."""
    given = reading.dig(model, "profile")
    if given is None:
        return None
    lines = reading.entries(given, "rows")
    decades = _decades(lines)
    mostly = _mostly(model)
    return {
        "by": [fmt.line(name) for name in given.get("by") or []],
        "rows": [
            {**_row(line, decades, model, longest), "mostly": mostly.get(str(line.get("name")))} for line in lines
        ],
        "has_mostly": bool(mostly),
        "left_out": _left_out(given),
        "total": {"seconds": seconds(given.get("elapsed_ns")), "share": fmt.percent(1.0)},
        "sums": [fmt.line(name) for name in next(iter([line["sums"] for line in lines if line.get("sums")]), {})],
        "is_mixed": any(line.get("mean_ns") is None for line in lines),
        "is_part": bool(given.get("is_part")),
        "shown": seconds(given.get("shown_ns")),
        "decades": [fmt.duration(low, 1) if low >= _LEAST else "<1 µs" for low in decades],
    }


def _mostly(model: Analysis) -> dict[str, base.View]:
    """By event, the statement with most of its time, as a link where that is on the page."""
    given = reading.dig(model, "mostly") or {}
    statements = reading.entries(model, "statements") if given else []
    places = {str(entry.get("statement")): f"#s-{at}" for at, entry in enumerate(statements, 1)}
    return {
        event: {
            "name": statement_name(found.get("statement"), None),
            "href": places.get(str(found.get("statement")), ""),
            "share": share(found.get("share")),
        }
        for event, found in given.items()
    }


def _row(line: dict[str, Any], decades: list[int], model: Analysis, longest: int) -> base.View:
    buckets = _buckets(line)
    places = [_place({"low": low}) for low in decades]
    inside = [[b for b in buckets if b["low"] >= 0 and _place(b) == at] for at in places]
    times = [float(sum(bucket["total"] for bucket in found)) for found in inside]
    counts = [sum(bucket["count"] for bucket in found) for found in inside]
    # A decade of waits of 0 us has a count and no time: it is shown as the smallest bar.
    small = max(times, default=0.0) / 1000 or 1.0
    skew = [time or (small if count else 0.0) for time, count in zip(times, counts, strict=True)]
    return {
        "name": _name(line, model, longest),
        "what": fmt.line(line.get("what") or "wait"),
        "class": fmt.line(line.get("class") or ""),
        "count": fmt.count(line.get("count")) if line.get("count") else "",
        "waits": fmt.count(line.get("waits")) if line.get("waits") else "",
        "sums": [_sum(value) for value in (line.get("sums") or {}).values()],
        "seconds": seconds(line.get("total_ns")),
        "share": share(line.get("share")),
        "width": max(0.0, min(float(fmt.number(line.get("share")) or 0.0), 1.0)),
        **{name: _time(line, name) for name in ("mean", "min", "p50", "p99", "max")},
        "skew": characters.heights(skew) if buckets else "",
        "skew_heights": [value / (max(skew) or 1.0) for value in skew] if buckets else [],
        "buckets": [_bucket(bucket, line) for bucket in buckets],
    }


def _sum(value: object) -> str:
    """A sum of calls' figures; nothing where a line holds no call."""
    given = fmt.number(value)
    return "" if given is None else fmt.count(round(given)) if given == round(given) else fmt.text(f"{given:.4g}")


def _time(line: dict[str, Any], name: str) -> str:
    return "" if line.get(f"{name}_ns") is None else fmt.duration(line[f"{name}_ns"])


def _name(line: dict[str, Any], model: Analysis, longest: int) -> str:
    """What a line is about: the values that it is grouped by, statements with their text."""
    key = reading.dig(line, "key") or {}
    by = list(reading.dig(model, "profile", "by") or [])
    name, what = fmt.line(line.get("name") or ""), line.get("what")
    parts = []
    for dimension in sorted(key, key=lambda d: by.index(d) if d in by else len(by)):
        value = key[dimension]
        if dimension == "event":
            parts.append(name or fmt.line(value or ""))
        elif value not in (None, ""):
            parts.append(_value(dimension, value, model, longest))
        elif what != "between":
            parts.append("no statement" if dimension == "statement" else f"no {dimension}")
    if "event" not in key and what not in ("wait", "call"):
        parts.append(name)
    return " · ".join(dict.fromkeys(part for part in parts if part)) or name


def _value(dimension: str, value: Any, model: Analysis, longest: int) -> str:
    if dimension in ("statement", "force"):
        texts = reading.dig(model, "statements") or {}
        shared = len(reading.dig(model, "profile", "by") or [0])
        return statement_name(value, texts.get(value), max(longest // shared, 16))
    if dimension in ("second", "minute") and fmt.number(value) is not None:
        seconds_each = 60 if dimension == "minute" else 1
        return clock(int(value) * seconds_each * 1_000_000_000)
    if dimension in ("class", "kind"):
        return fmt.line(value)
    return f"{dimension} {fmt.line(value)}"


def _buckets(line: dict[str, Any]) -> list[dict[str, Any]]:
    """The decades of a line's histogram that hold something."""
    found = line.get("histogram") or []
    names = ("low", "high", "count", "total")
    return [dict(zip(names, bucket, strict=False)) for bucket in found if bucket[2]]


def _place(bucket: dict[str, Any]) -> int:
    """The decade of a bucket: 3 is 1 to 10 us, 2 all below 1 us."""
    return math.floor(math.log10(bucket["low"]) + 1e-9) if bucket["low"] >= _LEAST else _BELOW


def _decades(lines: list[dict[str, Any]]) -> list[int]:
    """The lower ends of all decades from the first that is used to the last, ns; of what is shorter
    than 1 us there is one."""
    used = [_place(b) for line in lines for b in _buckets(line) if b["low"] >= 0]
    return [10**at for at in range(min(used), max(used) + 1)] if used else []


def _bucket(bucket: dict[str, Any], line: dict[str, Any]) -> base.View:
    whole = fmt.number(line.get("total_ns")) or 0.0
    part = bucket["total"] / whole if whole else 0.0
    ends = f"{fmt.duration(bucket['low'], 1)} to {fmt.duration(bucket['high'], 1)}"
    if bucket["low"] < 0:
        ends = "below 0"
    elif bucket["low"] < _LEAST:
        ends = "below 1 µs"
    return {
        "range": ends,
        "count": fmt.count(bucket["count"]),
        "seconds": seconds(bucket["total"]),
        "share": share(part),
        "width": max(0.0, min(part, 1.0)),
        "mean": fmt.duration(bucket["total"] / bucket["count"]),
    }


def _left_out(given: dict[str, Any]) -> base.View | None:
    left = given.get("left_out") or {}
    if not left.get("lines") and not left.get("count") and not left.get("total_ns"):
        return None
    lines = f"{fmt.count(left['lines'])} more lines" if left.get("lines") else "the rest"
    whole = fmt.number(given.get("elapsed_ns")) or 0.0
    part = (fmt.number(left.get("total_ns")) or 0.0) / whole if whole else None
    return {
        "name": lines,
        "count": fmt.count(left.get("count")),
        "seconds": seconds(left.get("total_ns")),
        "share": share(part),
    }


def seconds(ns: object) -> str:
    """A time in seconds with all its microseconds, so that a column adds up: `12.000345`."""
    given = fmt.number(ns)
    if given is None:
        return fmt.NONE
    micro = round(abs(given) / 1000)
    whole = f"{micro // 1_000_000:,}".replace(",", fmt.THIN)
    return f"{fmt.MINUS if given < 0 else ''}{whole}.{micro % 1_000_000:06d}"


def share(value: object) -> str:
    """A share with one decimal, so that a column lines up; the sign stays."""
    given = fmt.number(value)
    if given is None:
        return fmt.NONE
    return f"{fmt.MINUS if given < -0.0005 else ''}{abs(given) * 100:.1f}{fmt.THIN}%"


def calls(model: Analysis) -> base.View | None:
    """Per kind of call: count, elapsed, CPU, exclusive figures, rows; None without calls."""
    given = reading.entries(model, "calls")
    if not given:
        return None
    return {
        "rows": [
            {
                "kind": fmt.line(call.get("kind") or ""),
                "count": fmt.count(call.get("count")),
                "elapsed": seconds(call.get("elapsed_ns")),
                "cpu": seconds(call.get("cpu_ns")),
                "self": seconds(call.get("self_elapsed_ns")),
                "self_cpu": seconds(call.get("self_cpu_ns")),
                "rows": fmt.count(call.get("rows")),
            }
            for call in given
        ]
    }


def rows(model: Analysis) -> list[dict[str, Any]]:
    """One row per line of the profile."""
    given = reading.dig(model, "profile") or {}
    by = list(given.get("by") or [])
    return [
        {name: (reading.dig(line, "key") or {}).get(name) for name in by}
        | {"what": line.get("what"), "name": line.get("name"), "class": line.get("class")}
        | {name: line.get(name) for name in COLUMNS}
        | {f"sum({name})": value for name, value in (line.get("sums") or {}).items()}
        for line in reading.entries(given, "rows")
    ]


def print_page(model: Analysis, page: Console) -> None:
    """The profile and the calls."""
    shown = view(model, longest=max(page.width - 60, 20))
    if shown is None:
        return
    columns = [(title, key) for title, key, least in _SHOWN if page.width >= least]
    if shown["is_mixed"]:
        # Calls and their waits together: `count` is of the calls, and no length is of one thing.
        without = ("mean", "p50", "p99", "max")
        columns = [columns[0], ("waits", "waits"), *((t, key) for t, key in columns[1:] if key not in without)]
    if shown["sums"]:
        left = ("bar", "share") if len(shown["sums"]) > 2 else ("bar",)
        columns = [(title, key) for title, key in columns if key not in left]
    heading = "Where the time went" + (f", by {', '.join(shown['by'])}" if shown["by"] else "")
    table = console.table(
        heading,
        [""],
        [*(title for title, _ in columns), *(name.replace("_", " ") for name in shown["sums"])],
        narrowest=29,
        padding=(0, 2, 0, 0),
    )
    draws = bool(shown["decades"]) and not shown["sums"]
    if draws:
        ends = f"{shown['decades'][0]}…"
        table.add_column(ends, no_wrap=True)
    for number, (title, _) in enumerate(columns, 1):
        table.columns[number].justify = "left" if not title else "right"
    for row in shown["rows"]:
        style = _STYLES.get(row["what"], "")
        cells = [characters.bar(row["width"], 10) if key == "bar" else row[key] for _, key in columns]
        cells += row["sums"] or [""] * len(shown["sums"])
        named = console.plain(row["name"], style)
        drawn = [console.plain(row["skew"], style)] if draws else []
        table.add_row(named, *(console.plain(cell) for cell in cells), *drawn)
    for row, style in ((shown["left_out"], "dim"), (_total(shown), "bold")):
        if row is not None:
            cells = [row.get(key, "") for _, key in columns]
            table.add_row(*(console.plain(cell, style) for cell in (row["name"], *cells)))
    page.print(table)
    _print_calls(model, page)


def _total(shown: base.View) -> base.View:
    if shown["is_part"]:
        return {"name": "these lines", "seconds": shown["shown"]}
    return {"name": "total", **shown["total"]}


def _print_calls(model: Analysis, page: Console) -> None:
    found = calls(model)
    if found is None:
        return
    columns = ["count", "elapsed", "CPU", "self", "self CPU", "rows"]
    if page.width < 84:
        columns.remove("self CPU")
    table = console.table("Database calls, seconds", ["kind"], columns, narrowest=10, padding=(0, 2, 0, 0))
    for row in found["rows"]:
        cells = [row[name.lower().replace(" ", "_")] for name in columns]
        table.add_row(*(console.plain(cell) for cell in (row["kind"], *cells)))
    page.print()
    page.print(table)


def print_skew(model: Analysis, page: Console) -> None:
    """Each line's waits by decade of their length: how many, how much time, which share of it."""
    shown = view(model) or {"rows": []}
    for row in shown["rows"]:
        if not row["buckets"]:
            continue
        table = console.table(
            row["name"], ["from … to"], ["count", "seconds", "share"], narrowest=18, padding=(0, 2, 0, 0)
        )
        table.add_column("", no_wrap=True)
        table.add_column("mean", justify="right", no_wrap=True)
        for bucket in row["buckets"]:
            cells = [bucket[key] for key in ("range", "count", "seconds", "share")]
            cells += [characters.bar(bucket["width"], 20).ljust(20), bucket["mean"]]
            table.add_row(*(console.plain(cell) for cell in cells))
        page.print()
        page.print(table)


SECTIONS = (
    base.Section("trace_profile", "Where the time went", view),
    pictures.SECTION,
    base.Section("trace_calls", "Database calls", calls),
)
