"""Sections about waits: all events of a trace, or one event's quantiles, distribution, time series, longest waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dbdyno.base.json_types import TableRow
from dbdyno.page import Cell, Column, Row, Section, Table
from dbdyno.pages import common, reading
from dbdyno.pages import format as fmt
from dbdyno.pages.common import columns
from dbdyno.pages.reading import Analysis, Entry
from dbdyno.pages.trace_text import anchors, bar_share, place, statement_name

EVENTS = ("event", "class", "count", "total_ns", "share", "mean_ns", "p50_ns", "p99_ns", "max_ns")
WAITS = (
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
_SHOWN_MOST, _PRINTED_MOST = 20, 12
_BUCKETS_MOST = 24
_TIMES_MOST = 30
HOLDERS_LEAST = 0.01


def events(model: Analysis) -> Iterator[Section]:
    """Yield a table with one line per event, and a hint on how to see the waits of one event."""
    given = reading.entries(model, "events")
    if not given:
        return
    shown = columns(
        "event:text class:text:class:96 count:count total_ns:seconds:seconds share:share bar:bar:share_drawn:120"
        " mean_ns:ns:mean:104 p50_ns:ns:p50:88 p99_ns:ns:p99 max_ns:ns:max"
    )
    rows = [{**event, "bar": Cell(bar_share(event.get("share")))} for event in given]
    hint = f"--event '{fmt.line(given[0].get('event') or '')}' shows the waits of one event"
    found = Table("", (Column("event", "event", narrowest=27), *shown[1:]), tuple(map(Row, rows)))
    yield Section("trace_events", "Waits by event", tables=(found,), notes=(hint,))


def sections(model: Analysis) -> Iterator[Section]:
    """Yield summary, figures, time series and longest waits; nothing without waits."""
    given = reading.dig(model, "summary")
    if not given:
        return
    yield _summary(model, given)
    drawn = common.figures(model, "wait_distribution", "wait_series", "wait_longest")
    yield Section("figures", "Figures", figures=drawn, where="page")
    buckets = _histogram(model)
    if buckets is not None:
        yield Section("trace_histogram", "Distribution, logarithmic", tables=(buckets,), where="text")
    yield from holders(model)
    yield from _series(model)
    yield from longest_section(model)


def holders(model: Analysis) -> Iterator[Section]:
    """Yield what the holders of locks did while others waited for them."""
    rows = [
        {
            "event": one.get("event") if at == 0 else "",
            "name": did.get("name"),
            "time_ns": did.get("time_ns"),
            "share": (share := (fmt.number(did.get("time_ns")) or 0.0) / (fmt.number(one.get("time_ns")) or 1.0)),
            "bar": Cell(bar_share(share)),
        }
        for one in reading.entries(model, "holders")
        for at, did in enumerate(one.get("meanwhile") or [])
        if (fmt.number(did.get("time_ns")) or 0.0) >= HOLDERS_LEAST * (fmt.number(one.get("time_ns")) or 1.0)
    ]
    if rows:
        shown = columns(
            "event:text:waited_for name:text:its_holder_was_in time_ns:seconds:seconds share:share"
            " bar:bar:share_drawn:120"
        )
        note = "think time: the server waited for the holder's client, whose transaction was open"
        yield Section(
            "trace_holders",
            "Behind locks",
            "What the holder of each lock did while others waited for it.",
            tables=(common.table("", shown, rows, look="slim"),),
            notes=(note,) if any(row["name"] == "think time" for row in rows) else (),
        )


def _summary(model: Analysis, entry: Entry) -> Section:
    facts = (
        ("waits", fmt.count(entry.get("count"))),
        ("total", f"{fmt.seconds(entry.get('total_ns'))} s"),
        ("mean", fmt.duration(entry.get("mean_ns"))),
        ("std dev", fmt.duration(entry.get("sd_ns"))),
        ("shortest", fmt.duration(entry.get("min_ns"))),
        ("longest", fmt.duration(entry.get("max_ns"))),
        ("sessions", fmt.count(entry.get("sessions"))),
        ("inside calls", fmt.count(entry.get("inside"))),
    )
    names = [fmt.line(event.get("event")) for event in reading.entries(model, "events")]
    rows = [_quantile(row) for row in reading.entries(model, "quantiles")]
    table = common.table(
        "Quantiles", columns("q:text:quantile value:ns interval:left:95_%_interval"), rows, look="slim"
    )
    note = fmt.line(reading.dig(model, "note") or "")
    return Section(
        "trace_waits",
        "Summary",
        f"Events: {', '.join(names)}." if len(names) > 1 else "",
        facts=tuple(fact for fact in facts if fact[1] != fmt.NONE),
        tables=(table,),
        notes=(note,) if note else (),
    )


def _quantile(row: Entry) -> TableRow:
    known = row.get("value_ns") is not None
    ends = [fmt.duration(row.get(name)) for name in ("low_ns", "high_ns")]
    interval = f"{ends[0]} to {ends[1]}" if known else f"needs {fmt.count(row.get('needs'))} waits"
    return {"q": fmt.quantile_name(float(row.get("q") or 0.0)), "value": row.get("value_ns"), "interval": interval}


def _histogram(model: Analysis) -> Table | None:
    """Return the buckets with their shares of count and time, or None."""
    given = reading.dig(model, "histogram")
    if not given:
        return None
    buckets = reading.rows(given, "histogram", ("low_ns", "high_ns", "count", "total_ns"))
    most = max((bucket["count"] for bucket in buckets), default=0) or 1
    whole = sum(bucket["total_ns"] for bucket in buckets) or 1
    rows = [
        {
            "low": bucket["low_ns"],
            "count": bucket["count"],
            "bar": Cell(bucket["count"] / most),
            "time": bucket["total_ns"] / whole if bucket["total_ns"] else Cell("", "words"),
        }
        for bucket in _merge_buckets(buckets)
    ]
    shown = (
        Column("low", "from", "ns2"),
        Column("count", "waits", "count"),
        Column("bar", "", kind="bar", narrowest=60),
        Column("time", "of time", "percent"),
    )
    return common.table("", shown, rows)


def _merge_buckets(buckets: list[TableRow]) -> list[TableRow]:
    """Return the buckets merged with their neighbours until they fit on a terminal page."""
    step = -(-len(buckets) // _BUCKETS_MOST) if buckets else 1
    return [
        {
            "low_ns": buckets[at]["low_ns"],
            "count": sum(bucket["count"] for bucket in buckets[at : at + step]),
            "total_ns": sum(bucket["total_ns"] for bucket in buckets[at : at + step]),
        }
        for at in range(0, len(buckets), step)
    ]


def _series(model: Analysis) -> Iterator[Section]:
    """Yield count, mean, p99 and maximum by interval; a terminal draws them if there are many intervals."""
    given = reading.dig(model, "series") or {}
    every = fmt.number(given.get("every_ns")) or 1e9
    found = reading.entries(given, "rows")
    if len(found) < 2:
        return
    rows = [{**row, "at": fmt.clock(row.get("at_ns"), every)} for row in found]
    many = len(rows) > _TIMES_MOST
    shown = columns("at:text:from count:count total_ns:seconds:seconds mean_ns:ns:mean p99_ns:ns:p99 max_ns:ns:max")
    folded = f"Every {fmt.duration(every)}, {len(rows)} intervals with waits"
    table = common.table("", shown, rows, look="slim", folded=folded, where="page" if many else "both")
    tables = (table, _bar_table(found)) if many else (table,)
    ends = f", {rows[0]['at']} to {rows[-1]['at']}" if many else ""
    yield Section("trace_series", f"Over time, every {fmt.duration(every)}{ends}", tables=tables)


def _bar_table(entries: Sequence[Entry]) -> Table:
    rows = []
    for name, key, unit in (("count", "count", "count"), ("mean", "mean_ns", "ns"), ("longest", "max_ns", "ns")):
        values = [float(row.get(key) or 0) for row in entries]
        rows.append({"name": name, "line": Cell(values), "top": Cell(max(values), unit)})
    shown = columns("name:text:_ line:heights:_ top:count:highest")
    return common.table("", shown, rows, where="text")


def longest_section(model: Analysis) -> Iterator[Section]:
    """Yield the longest waits with their places."""
    given = reading.entries(model, "longest")
    if not given:
        return
    statements = reading.entries(model, "statements") if reading.dig(model, "page") == "report" else []
    some = f"{_SHOWN_MOST} of {len(given)}; CSV and JSON lines contain all of them." if len(given) > _SHOWN_MOST else ""
    yield Section("trace_longest", "The longest waits", some, tables=(longest(given, anchors(statements)),))


def longest(entries: Sequence[Entry], places: Mapping[str, str], **more: Any) -> Table:
    """Return a table of waits, longest first."""
    shown = entries[:_SHOWN_MOST]
    several = len({row.get("event") for row in shown}) > 1
    rows = [
        {
            "elapsed": Cell(row.get("elapsed_ns"), "ns4"),
            "event": fmt.line(row.get("event") or ""),
            "at": fmt.clock(row.get("started_ns"), 1e6),
            "what": parameters(row),
            "statement": Cell(
                statement_name(row.get("statement"), row.get("text"), 60),
                href=places.get(str(row.get("statement")), ""),
            ),
            "inside": fmt.line(row.get("inside") or "between calls"),
            "place": place(row.get("file"), row.get("line")),
        }
        for row in shown
    ]
    what = columns(
        f"elapsed:words {'event:text ' if several else ''}at:left what:code:parameters:{96 if several else 0}"
        " statement:text:statement:110 inside:text:in:page place:text"
    )
    return common.table("", what, rows, look="loose", most=_PRINTED_MOST, **more)


def parameters(row: Entry) -> str:
    """Return a wait's parameters with their names: `file#=10 block#=43953 blocks=1`."""
    names = fmt.line(row.get("parameters") or "").split(",")
    values = [row.get(key) for key in ("p1", "p2", "p3")]
    pairs = [f"{name or 'p'}={value}" for name, value in zip(names, values, strict=False) if value is not None]
    return " ".join(pairs)
