"""Activity of each session by interval: CPU and classes of waits over time.

A wait that spans several intervals is divided among them. It is not known when a call used the CPU, so its own CPU time
is spread evenly over the call. The rest of an interval is `unaccounted`; it can be negative, because CPU time used
inside a wait counts for both.
"""

from __future__ import annotations

from typing import TypedDict, cast

from dbdyno.base.errors import TraceError
from dbdyno.base.json_types import JsonObject
from dbdyno.trace.page import page
from dbdyno.trace.source import Traces
from dbdyno.trace.waits import nice_interval


class Bin(TypedDict):
    """Activity of a session in one interval: time by class, and the unaccounted rest."""

    bin: int
    at_ns: int
    width_ns: int
    classes: dict[str, float]


class TimelineSession(TypedDict):
    """A session: its number and name, the number of its file, its start and length, its calls and waits."""

    session: int
    name: str | None
    file: int
    started_ns: int
    elapsed_ns: int
    calls: int
    waits: int


CPU, REST, IDLE = "CPU", "unaccounted", "idle"
SESSIONS_MOST = 200
BINS_MOST = 20_000

_SPREAD = """
with spans as (
  select session, class, start_ns - $origin as s, start_ns - $origin + span_ns as e, time_ns
  from ({rows}) where span_ns > 0 and session in (select unnest($sessions::uinteger[]))
), cells as (
  select *, unnest(range(s // $every, (e - 1) // $every + 1)) as bin from spans
)
select session, bin, class,
       sum(time_ns::double * (least(e, (bin + 1) * $every) - greatest(s, bin * $every)) / (e - s))
         as time_ns
from cells group by all
"""
_WAITS = """
select session, case when think then 'idle' else coalesce(class, 'other') end as class,
       started_ns as start_ns, elapsed_ns as span_ns, elapsed_ns as time_ns from waits
"""
_CALLS = """
select session, 'CPU' as class, started_ns as start_ns, elapsed_ns as span_ns,
       coalesce(self_cpu_ns, 0) as time_ns from calls where coalesce(self_cpu_ns, 0) <> 0
"""


def timeline_page(
    traces: Traces, *, every_ns: int | None = None, session: str | None = None, columns: int = 60
) -> JsonObject:
    """Return the page about the sessions' activity over time.

    Args:
        traces: the opened traces.
        every_ns: length of an interval; if None it is chosen.
        session: a session's name (`155.25441`) or number; all sessions if None.
        columns: the number of intervals to aim at if `every_ns` is None.

    Raises:
        TraceError: there is no session of this name, or there would be too many intervals.
    """
    sessions = _sessions(traces, session)
    origin = min(row["started_ns"] for row in sessions)
    end = max(row["started_ns"] + max(row["elapsed_ns"], 1) for row in sessions)
    longest = max(row["elapsed_ns"] for row in sessions)
    every = every_ns or nice_interval(min(end - origin, longest), columns)
    origin -= origin % every
    if longest // every > BINS_MOST:
        raise TraceError(
            f"the chart of a session would have {longest // every} intervals; expected at most {BINS_MOST}",
            next_step="give a longer --every, or leave it out",
        )
    cells = _cells(traces, sessions, origin, every)
    totals: dict[str, float] = {}
    shown = []
    for row in sessions:
        bins = _bins(row, cells.get(row["session"], {}), origin, every)
        for entry in bins:
            for name, time_ns in entry["classes"].items():
                totals[name] = totals.get(name, 0.0) + time_ns
        shown.append({**row, "file": traces.path_of(row["file"]), "bins": bins})
    order = sorted(totals, key=lambda name: (name == IDLE, name == REST, -totals[name]))
    body = {
        "every_ns": every,
        "origin_ns": origin,
        "end_ns": end,
        "sessions": shown,
        "classes": [{"class": name, "time_ns": totals[name]} for name in order],
    }
    return page("timeline", traces, body)


def _sessions(traces: Traces, wanted: str | None) -> list[TimelineSession]:
    found = traces.rows(
        "select session, coalesce(nullif(name, ''), 'process ' || nullif(process, '')) as name,"
        " file, started_ns, elapsed_ns, calls, waits from sessions"
        " where started_ns is not null order by started_ns, session"
    )
    rows = cast("list[TimelineSession]", found)
    if wanted is None and rows:
        return rows[:SESSIONS_MOST]
    chosen = [row for row in rows if wanted in (row["name"], str(row["session"]))]
    if not chosen:
        names = ", ".join(str(row["name"] or row["session"]) for row in rows[:8])
        raise TraceError(
            "the traces contain no session" if wanted is None else f"there is no session {wanted!r}",
            next_step=f"name one of the sessions, such as {names}" if names else "name 10046 trace files",
        )
    return chosen


def _cells(
    traces: Traces, sessions: list[TimelineSession], origin: int, every: int
) -> dict[int, dict[int, dict[str, float]]]:
    """Return the time by session, interval and class."""
    found: dict[int, dict[int, dict[str, float]]] = {}
    given = {"origin": origin, "every": every, "sessions": [row["session"] for row in sessions]}
    for rows in (_WAITS, _CALLS):
        for row in traces.rows(_SPREAD.format(rows=rows), given):
            cell = found.setdefault(row["session"], {}).setdefault(row["bin"], {})
            cell[row["class"]] = cell.get(row["class"], 0.0) + row["time_ns"]
    return found


def _bins(session: TimelineSession, cells: dict[int, dict[str, float]], origin: int, every: int) -> list[Bin]:
    """Return the intervals in which the session existed, each with its classes and the unaccounted rest."""
    start = session["started_ns"] - origin
    end = start + session["elapsed_ns"]
    bins: list[Bin] = []
    for at in range(start // every, max(end - 1, start) // every + 1):
        width = min(end, (at + 1) * every) - max(start, at * every)
        classes = dict(cells.get(at, {}))
        classes[REST] = width - sum(classes.values())
        bins.append({"bin": at, "at_ns": origin + at * every, "width_ns": width, "classes": classes})
    return bins
