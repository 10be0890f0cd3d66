"""Waits for one event: number, durations, distribution, the longest ones, and their course over time.

Quantiles are exact. Their intervals are based on order statistics and assume independent waits; waits of one session
depend on each other, so the page carries a note about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.trace.columns import parameter_names
from dbdyno.trace.page import page
from dbdyno.trace.source import Row, Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
BUCKETS_PER_DECADE = 10
POINTS_MOST = 60
NOTE = (
    "The intervals assume independent waits. Waits of one session depend on each other, so the "
    "true intervals are wider."
)
_ROUND = [
    *(step * unit for unit in (1_000, 1_000_000) for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(s * 1_000_000_000 for s in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)),
    14_400_000_000_000,
    43_200_000_000_000,
]
"""Round durations in ns, from microseconds to half a day."""


Event = TypedDict(
    "Event",
    {
        "event": str,
        "class": str,
        "count": int,
        "total_ns": int,
        "share": float,
        "mean_ns": float,
        "p50_ns": int,
        "p99_ns": int,
        "max_ns": int,
    },
)
"""A line of the list of events."""


class Summary(TypedDict):
    """Summary of the page's waits."""

    count: int
    total_ns: int
    mean_ns: float
    sd_ns: float | None
    min_ns: int
    max_ns: int
    sessions: int
    statements: int
    inside: int
    from_ns: int
    to_ns: int


class Quantile(TypedDict):
    """A quantile with its interval; it has a value only with at least `needs` waits."""

    q: float
    value_ns: float | None
    low_ns: float | None
    high_ns: float | None
    needs: int


class Interval(TypedDict):
    """Figures of the waits that began in one interval."""

    at_ns: int
    count: int
    total_ns: int
    mean_ns: float
    p99_ns: int
    max_ns: int


class Series(TypedDict):
    """The intervals in which at least one wait began."""

    every_ns: int
    rows: list[Interval]


@dataclass(frozen=True)
class Request:
    """Which waits to show, and how.

    `events` are names in which `*` stands for any text; `condition` is a condition on the view `waits` (SQL, from
    `conditions.to_sql`). `longest` is the number of longest waits. `every_ns` is the length of an interval in ns (None:
    chosen so that at most 60 cover the time). `buckets` is the number of histogram buckets per decade.
    """

    events: tuple[str, ...] = ()
    condition: str = "true"
    longest: int = 20
    every_ns: int | None = None
    top: int = 0
    buckets: int = BUCKETS_PER_DECADE


def waits_page(traces: Traces, request: Request) -> JsonObject:
    """Return the page about one event, or, without `events`, the list of all events.

    Raises:
        TraceError: no wait matches.
    """
    _create_chosen(traces, request)
    events = _events(traces)
    if not events:
        raise TraceError(_nothing(traces, request), next_step=_advice(traces))
    if not request.events:
        shown = events[: request.top] if request.top else events
        return page("events", traces, {"events": shown})
    values = _values(traces)
    body = {
        "events": events,
        "summary": _summary(traces, values),
        "quantiles": _quantiles(values),
        "note": NOTE,
        "histogram": _histogram(values, request.buckets),
        "tail": _tail(values),
        "longest": _longest(traces, request.longest),
        "holders": _holders(traces, events),
        "series": _series(traces, request.every_ns),
    }
    names = [event["event"] for event in events]
    every = "all events" if request.events == ("*",) else ", ".join(request.events)
    return page("waits", traces, body, names[0] if len(names) == 1 else every)


def _holders(traces: Traces, events: list[Event]) -> list[TableRow]:
    """Return what the holders of locks did during the waits of these events."""
    from dbdyno.trace.holders import holders

    known = (
        holders(traces)
        if any(event["event"].lower().startswith(("lock:", "lwlock:walwrite")) for event in events)
        else {}
    )
    return [known[event["event"]].as_dict() for event in events if event["event"] in known]


def _create_chosen(traces: Traces, request: Request) -> None:
    """Create the table `chosen`: the waits that the page is about."""
    conditions = [f"({request.condition})"]
    if request.events:
        conditions.append("(" + " or ".join("event glob ?" for _ in request.events) + ")")
    chosen = f"select * from waits where {' and '.join(conditions)}"  # noqa: S608
    text = f"create or replace temp table chosen as {chosen}"
    traces.connection.execute(text, [_glob(event) for event in request.events])


def _glob(event: str) -> str:
    """Return a name as a glob pattern in which only `*` is special."""
    return "".join(f"[{c}]" if c in "?[" else c for c in event)


def _events(traces: Traces) -> list[Event]:
    found = traces.rows(
        """
        select event, any_value(class) as class, count(*) as count,
               sum(elapsed_ns)::bigint as total_ns,
               sum(elapsed_ns) / sum(sum(elapsed_ns)) over () as share,
               avg(elapsed_ns) as mean_ns, quantile_disc(elapsed_ns, 0.5) as p50_ns,
               quantile_disc(elapsed_ns, 0.99) as p99_ns, max(elapsed_ns) as max_ns
        from chosen group by event order by total_ns desc, event
        """
    )
    return cast("list[Event]", found)


def _nothing(traces: Traces, request: Request) -> str:
    if not _has_any(traces):
        return "the traces contain no waits: they were recorded without waits (level 1 or 4)"
    if not traces.connection.execute("select 1 from waits limit 1").fetchone():
        return "no wait matches the condition"
    what = f"no wait for {', '.join(map(repr, request.events))}" if request.events else "no wait matches"
    return what + (" fits the condition" if request.condition != "true" else "")


def _has_any(traces: Traces) -> bool:
    """Return True if the traces have any waits, without regard to a condition."""
    return traces.connection.execute("select 1 from memory.main.waits limit 1").fetchone() is not None


def _advice(traces: Traces) -> str:
    rows = traces.connection.execute(
        "select event from waits group by event order by sum(elapsed_ns) desc limit 8"
    ).fetchall()
    names = ", ".join(repr(row[0]) for row in rows)
    if names:
        return f"name one of the events with the most time: {names}"
    return (
        "run the command without the condition first"
        if _has_any(traces)
        else "record the trace again with waits (level 8)"
    )


def _values(traces: Traces) -> NDArray[np.int64]:
    """Return all durations in ns, sorted."""
    import numpy as np

    found = traces.connection.execute("select elapsed_ns from chosen").fetchnumpy()
    return np.sort(np.asarray(found["elapsed_ns"], dtype=np.int64))


def _summary(traces: Traces, values: NDArray[np.int64]) -> Summary:
    about = traces.rows(
        "select count(distinct session) as sessions, count(distinct statement) as statements,"
        " count(*) filter (call is not null) as inside, min(started_ns) as from_ns,"
        " max(started_ns + elapsed_ns) as to_ns from chosen"
    )[0]
    n = int(values.size)
    return {
        "count": n,
        "total_ns": int(values.sum()),
        "mean_ns": float(values.mean()),
        "sd_ns": float(values.std(ddof=1)) if n > 1 else None,
        "min_ns": int(values[0]),
        "max_ns": int(values[-1]),
        "sessions": about["sessions"],
        "statements": about["statements"],
        "inside": about["inside"],
        "from_ns": about["from_ns"],
        "to_ns": about["to_ns"],
    }


def _quantiles(values: NDArray[np.int64]) -> list[Quantile]:
    """Return the quantiles with their intervals; a quantile without enough waits has no value."""
    from dbdyno.stats.quantiles import VALUES_BEYOND_MIN, is_supported, quantile_interval

    rows: list[Quantile] = []
    for q in QUANTILES:
        needs = math.ceil(VALUES_BEYOND_MIN / (1 - q) - 1e-6)
        row: Quantile = {"q": q, "value_ns": None, "low_ns": None, "high_ns": None, "needs": needs}
        if is_supported(values.size, q):
            found = quantile_interval(values, q)
            row["value_ns"] = found.value
            row["low_ns"], row["high_ns"] = _none_if_nan(found.low), _none_if_nan(found.high)
        rows.append(row)
    return rows


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _histogram(values: NDArray[np.int64], per_decade: int) -> dict[str, list[float]]:
    """Return counts and times by logarithmic bucket; waits of less than 1 us are in the first bucket."""
    import numpy as np

    low = max(int(values[0]), 1_000)
    high = max(int(values[-1]), low)
    first = math.floor(math.log10(low) * per_decade + 1e-9)
    last = math.floor(math.log10(high) * per_decade + 1e-9) + 1
    edges = 10 ** (np.arange(first, last + 1) / per_decade)
    whole = np.ceil(edges - 1e-6).astype(np.int64)  # a wait of exactly 1 ms is in the bucket that begins at 1 ms
    cuts = np.searchsorted(values, whole)
    cuts[0], cuts[-1] = 0, values.size
    total = np.concatenate([[0], np.cumsum(values)])
    return {
        "low_ns": [float(edge) for edge in edges[:-1]],
        "high_ns": [float(edge) for edge in edges[1:]],
        "count": [int(n) for n in np.diff(cuts)],
        "total_ns": [int(n) for n in np.diff(total[cuts])],
    }


def _tail(values: NDArray[np.int64], points: int = 300) -> dict[str, list[float]]:
    """Return points of a curve: the share of waits that took at least a given time, at log-spaced ranks."""
    import numpy as np

    ranks = np.unique(np.geomspace(1, values.size, points).astype(int))
    return {
        "exceed_share": [float(share) for share in ranks / values.size],
        "elapsed_ns": [int(ns) for ns in values[values.size - ranks]],
    }


def _longest(traces: Traces, limit: int) -> list[Row]:
    rows = traces.rows(
        f"""
        select w.elapsed_ns, w.started_ns, w.event, w.session, w.statement, s.text, w.p1, w.p2,
               w.p3, {parameter_names("w")} as parameters, w.object_id, c.kind as inside, w.file, w.line, w.byte_offset
        from (select * from chosen order by elapsed_ns desc, wait limit $1) w
        left join statements s using (statement) left join calls c on c.call = w.call
        order by w.elapsed_ns desc, w.wait
        """,  # noqa: S608
        [limit],
    )
    return [row | {"file": traces.path_of(row["file"])} for row in rows]


def _series(traces: Traces, every_ns: int | None) -> Series:
    """Return count, mean, p99 and maximum per interval; intervals without a wait are left out."""
    ends = traces.connection.execute("select min(started_ns), max(started_ns) from chosen").fetchone()
    start, end = ends or (0, 0)
    every = every_ns or nice_interval(end - start)
    first = start - start % every
    rows = traces.rows(
        """
        select ($first + (started_ns - $first) // $every * $every)::bigint as at_ns,
               count(*) as count, sum(elapsed_ns)::bigint as total_ns, avg(elapsed_ns) as mean_ns,
               quantile_disc(elapsed_ns, 0.99) as p99_ns, max(elapsed_ns) as max_ns
        from chosen group by at_ns order by at_ns
        """,
        {"first": first, "every": every},
    )
    return {"every_ns": every, "rows": cast("list[Interval]", rows)}


def nice_interval(span_ns: int, limit: int = POINTS_MOST) -> int:
    """Return a round duration such that at most `limit` of them cover the span."""
    need = max(span_ns / limit, 1)
    found = next((every for every in _ROUND if every >= need), None)
    return found or math.ceil(need / 86_400e9) * 86_400_000_000_000
