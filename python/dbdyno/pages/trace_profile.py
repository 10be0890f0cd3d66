"""Sections of the response-time profile: where the time went, line by line, adding up to the microsecond."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry
from dbdyno.pages.trace_text import anchors, bar_share, cell_or_blank, statement_name

COLUMNS = ("count", "waits", "total_ns", "share", "mean_ns", "min_ns", "p50_ns", "p99_ns", "max_ns")
_LEAST, _BELOW = 1000, 2
_NAME = 29
_LENGTHS = (("mean", 112), ("p50", 122), ("p99", 101), ("max", 1))
_TEXT_MOST = 60


def sections(model: Analysis, *, skew: bool = False) -> Iterator[Section]:
    """Yield the profile, its figures and the calls."""
    if reading.dig(model, "profile") is None:
        return
    yield profile(model, skew=skew)
    yield Section("figures", "Figures", figures=common.figures(model, "profile"), where="page")
    yield from calls(model)


def profile(model: Analysis, *, skew: bool = False) -> Section:
    """Return the profile's lines, each with a skew table that a reader can open (with `skew` also on a terminal)."""
    given = reading.dig(model, "profile")
    lines = reading.entries(given, "rows")
    decades = _decades(lines)
    by = ", ".join(fmt.line(name) for name in given.get("by") or [])
    begins = f", from {_bucket_label(decades[0])} on" if decades else ""
    about = (
        f"By {by}. The lines add up to the sessions' time. Skew: one bar per decade of wait length{begins};"
        " its height is the time spent in such waits."
    )
    tables = tuple(_buckets_table(line, model) for line in lines if _buckets(line))
    skews = Section("", "", tables=tables, folded="The skew of each line as a table", where="both" if skew else "page")
    shown = _table(model, given, lines, decades)
    title = "Where the time went" + (f", by {by}" if by else "")
    return Section("trace_profile", title, about, tables=(shown,), parts=(skews,) if tables else ())


def _table(model: Analysis, entry: Entry, lines: list[TableRow], decades: list[int]) -> Table:
    mixed = any(line.get("mean_ns") is None for line in lines)
    sums = [fmt.line(name) for name in next(iter([line["sums"] for line in lines if line.get("sums")]), {})]
    mostly = _main_statements(model)
    rows = [_row(line, decades, model, mostly) for line in lines]
    left = _left_out(entry)
    whole = Row({"name": "total", "total": entry.get("elapsed_ns"), "share": 1.0}, style="sum")
    if entry.get("is_part"):
        whole = Row({"name": "these lines", "total": entry.get("shown_ns")}, style="sum")
    return Table("", _columns(sums, decades, mixed=mixed, mostly=bool(mostly)), (*rows, *left, whole), look="profile")


def _columns(sums: list[str], decades: list[int], *, mixed: bool, mostly: bool) -> tuple[Column, ...]:
    """Return the columns of the profile.

    If a line mixes calls and their waits (`mixed`), `count` is the number of calls, and a mean or maximum would mix
    different things, so these columns are not shown on a terminal.
    """
    few: Any = "page" if len(sums) > 2 else "both"
    ends = f"{_bucket_label(decades[0])}…" if decades else ""
    return (
        Column("name", "line", narrowest=_NAME),
        Column("count", "count", "count"),
        Column("waits", "waits", "count", where="both" if mixed else "page"),
        *(Column(f"sum-{name}", name.replace("_", " "), "words") for name in sums),
        Column("total", "seconds", "seconds"),
        Column("share", "share", "share", where=few),
        Column("bar", "share drawn", kind="bar", where="page" if sums else "both", least=92),
        *(
            Column(name, name, "ns", where="page" if mixed else "both", least=least if name != "max" else 0)
            for name, least in _LENGTHS
        ),
        *([Column("skew", ends, kind="heights", where="page" if sums else "both")] if decades else []),
        *([Column("mostly", "mostly in", where="page")] if mostly else []),
    )


def _row(line: Entry, decades: list[int], model: Analysis, mostly: Entry) -> Row:
    what = fmt.line(line.get("what") or "wait")
    cells: TableRow = {
        "name": _name(line, model, _TEXT_MOST),
        "count": cell_or_blank(line.get("count"), "count"),
        "waits": cell_or_blank(line.get("waits"), "count"),
        "total": line.get("total_ns"),
        "share": line.get("share"),
        "bar": Cell(bar_share(line.get("share"))),
        **{name: cell_or_blank(line.get(f"{name}_ns")) for name, _ in _LENGTHS},
        **{f"sum-{fmt.line(name)}": _sum(value) for name, value in (line.get("sums") or {}).items()},
        "skew": _heights(line, decades),
        "mostly": mostly.get(str(line.get("name")), ""),
    }
    return Row(cells, tone=what)


def _main_statements(model: Analysis) -> dict[str, Cell]:
    """Return, for each event, the statement in which most of its time was spent, as a link if it is on the page."""
    given = reading.dig(model, "mostly") or {}
    places = anchors(reading.entries(model, "statements")) if given else {}
    return {
        event: Cell(
            f"{statement_name(found.get('statement'), None)} {fmt.share(found.get('share'))}",
            href=places.get(str(found.get("statement")), ""),
        )
        for event, found in given.items()
    }


def _sum(value: object) -> str:
    """Return a sum of calls' figures as text; "" for a line without calls."""
    given = fmt.number(value)
    return "" if given is None else fmt.count(round(given)) if given == round(given) else fmt.text(f"{given:.4g}")


def _name(line: Entry, model: Analysis, longest: int) -> str:
    """Return what a line is about: the values by which it is grouped, and for statements their text."""
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
    return " · ".join(dict.fromkeys(one for one in parts if one)) or name


def _value(dimension: str, value: Any, model: Analysis, longest: int) -> str:
    if dimension in ("statement", "force"):
        texts = reading.dig(model, "statements") or {}
        shared = len(reading.dig(model, "profile", "by") or [0])
        text = texts.get(value) if isinstance(texts, dict) else None
        return statement_name(value, text, max(longest // shared, 16))
    if dimension in ("second", "minute") and fmt.number(value) is not None:
        seconds_each = 60 if dimension == "minute" else 1
        return fmt.clock(int(value) * seconds_each * 1_000_000_000)
    if dimension in ("class", "kind"):
        return fmt.line(value)
    return f"{dimension} {fmt.line(value)}"


def _buckets(line: Entry) -> list[TableRow]:
    """Return the non-empty buckets of a line's histogram."""
    names = ("low", "high", "count", "total")
    return [dict(zip(names, bucket, strict=False)) for bucket in line.get("histogram") or [] if bucket[2]]


def _place(bucket: Entry) -> int:
    """Return the decade of a bucket as a power of ten of ns: 3 is 1 to 10 us, 2 is everything below 1 us."""
    return math.floor(math.log10(bucket["low"]) + 1e-9) if bucket["low"] >= _LEAST else _BELOW


def _decades(lines: list[TableRow]) -> list[int]:
    """Return the lower ends [ns] of all decades from the first to the last used; times below 1 us share one decade."""
    used = [_place(b) for line in lines for b in _buckets(line) if b["low"] >= 0]
    return [10**at for at in range(min(used), max(used) + 1)] if used else []


def _bucket_label(decade: int) -> str:
    return fmt.duration(decade, 1) if decade >= _LEAST else "<1 µs"


def _heights(line: Entry, decades: list[int]) -> Any:
    """Return the line's time by decade as a cell.

    A decade that contains only waits of 0 us has a count but no time, so it gets the smallest bar.
    """
    buckets = _buckets(line)
    if not buckets:
        return Cell()
    inside = [[b for b in buckets if b["low"] >= 0 and _place(b) == _place({"low": low})] for low in decades]
    times = [float(sum(bucket["total"] for bucket in found)) for found in inside]
    small = max(times, default=0.0) / 1000 or 1.0
    return Cell([time or (small if found else 0.0) for time, found in zip(times, inside, strict=True)])


def _buckets_table(line: Entry, model: Analysis) -> Table:
    whole = fmt.number(line.get("total_ns")) or 0.0
    rows = []
    for bucket in _buckets(line):
        of_line = bucket["total"] / whole if whole else 0.0
        ends = f"{fmt.duration(bucket['low'], 1)} to {fmt.duration(bucket['high'], 1)}"
        if bucket["low"] < _LEAST:
            ends = "below 0" if bucket["low"] < 0 else "below 1 µs"
        rows.append(
            {
                "range": ends,
                "count": bucket["count"],
                "seconds": bucket["total"],
                "share": of_line,
                "bar": Cell(bar_share(of_line)),
                "mean": bucket["total"] / bucket["count"],
            }
        )
    shown = columns("range:text:length count:count seconds:seconds share:share bar:bar:share_drawn mean:ns")
    return common.table(_name(line, model, _TEXT_MOST), shown, rows, look="slim")


def _left_out(entry: Entry) -> list[Row]:
    left = entry.get("left_out") or {}
    if not left.get("lines") and not left.get("count") and not left.get("total_ns"):
        return []
    lines = f"{fmt.count(left['lines'])} more lines" if left.get("lines") else "the rest"
    whole = fmt.number(entry.get("elapsed_ns")) or 0.0
    of_all = (fmt.number(left.get("total_ns")) or 0.0) / whole if whole else None
    cells = {"name": lines, "count": left.get("count"), "total": left.get("total_ns"), "share": of_all}
    return [Row(cells, style="dim")]


def calls(model: Analysis) -> Iterator[Section]:
    """Yield, per kind of call: count, elapsed, CPU, exclusive figures, rows."""
    given = reading.entries(model, "calls")
    if not given:
        return
    shown = columns(
        "kind:text count:count elapsed_ns:seconds:elapsed cpu_ns:seconds:CPU self_elapsed_ns:seconds:self"
        " self_cpu_ns:seconds:self_CPU:84 rows:count"
    )
    about = "In seconds. elapsed and CPU include recursive calls; self does not."
    found = common.table("", shown, given, look="slim")
    yield Section("trace_calls", "Database calls, seconds", about, tables=(found,))


def rows(model: Analysis) -> list[TableRow]:
    """Return one row per line of the profile, values unchanged."""
    given = reading.dig(model, "profile") or {}
    by = list(given.get("by") or [])
    return [
        {name: (reading.dig(line, "key") or {}).get(name) for name in by}
        | {"what": line.get("what"), "name": line.get("name"), "class": line.get("class")}
        | {name: line.get(name) for name in COLUMNS}
        | {f"sum({name})": value for name, value in (line.get("sums") or {}).items()}
        for line in reading.entries(given, "rows")
    ]
