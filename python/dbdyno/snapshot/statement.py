"""The page of one statement over an interval: calls, time and blocks over time, latencies, and its waits.

with Interval(store, first, last) as interval:
    model = statement(interval, "8342006184126112", top=10)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.base.sql_text import literal, quoted
from dbdyno.snapshot.causes import ENGINES, change_of
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.model import statement_beginning
from dbdyno.snapshot.plans.plan_changes import latencies, plans
from dbdyno.snapshot.plans.side_by_side import side_by_side
from dbdyno.snapshot.reading.long_timeline import chart_events, long_events
from dbdyno.snapshot.reading.series import Series, chart_data, thin_out
from dbdyno.snapshot.reading.statement_texts import KEYS
from dbdyno.snapshot.report import page_head, worst_verdict
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.sessions.report import WATCH, WHY

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

METRICS = (
    Metric("qps", "calls", "per_s"),
    Metric("aas", "sessions in it", "aas", False),
    Metric("mean", "mean time of a call", "ns", False),
    Metric("reads", "blocks or rows per call", "number", False),
)
DIMENSIONS = ("event", "user", "application", "client", "database")
LOGGED = "Turn on auto_explain, then `dbdyno snap plans --log FILE`"


def statement(interval: Interval, name: str, top: int) -> JsonObject:
    """Return the model of a statement's page; `name` is the statement's identifier.

    Raises:
        SnapshotError: The engine's statements are not read, or the statement does not occur in this interval.
    """
    found = statement_series(interval, name)
    history = History(interval, {"statement": name})
    text = history.text_of.get(name)
    if not found.at_us and not history.averages_by("class", 1):
        raise SnapshotError(
            f"statement {name!r:.60} does not occur in this interval",
            next_step="choose a longer interval, or another one",
        )
    head = page_head(interval, "statement", worst_verdict(interval))
    head["verdict"]["title"] = statement_beginning(text) or name
    return {
        **head,
        "verdicts": [],
        "text": text,
        "sections": [
            _totals(interval, found, name),
            _waits(history, top),
            _latencies(interval, name),
            _plans(interval, name),
            *(part for part in (side_by_side(interval, name),) if part is not None),
        ],
        "series": {**chart_data([thin_out(found)]), "events": chart_events(long_events(interval))},
        "warnings": [],
    }


def statement_series(interval: Interval, name: str) -> Series:
    """Return calls, time and work of a statement per sub-interval; a sub-interval without calls has no value.

    Raises:
        SnapshotError: The statements of this engine are not read.
    """
    engine = interval.before.engine
    if engine not in ENGINES or not interval.has(change_of(interval, interval).view):
        raise SnapshotError(
            "the snapshots of this interval contain no statements",
            next_step="run `create extension pg_stat_statements` in the database",
        )
    change = change_of(interval, interval)
    relation, known = interval.sums.relation(change.view, folded=False)
    time = next((pair for pair in change.times if pair[0] in {column.name for column in known}), None)
    if not relation or time is None:
        return Series()
    rows = interval.query(
        f"""select part, sum({quoted(change.calls)})::double as calls,
          sum({quoted(time[0])})::double * {time[1]} as ms, coalesce(sum({change.work_sql})::double, 0) as work
        from {relation} s where {quoted(KEYS[engine])}::varchar = {literal(name)} group by 1"""
    )
    by_part = {row["part"]: row for row in rows}
    made = Series(list(METRICS), values={one.name: [] for one in METRICS})
    for part in interval.sums.parts() if rows else ():
        seconds = part["elapsed_ns"] / 1e9
        made.at_us.append(part["at_us"])
        made.seconds.append(seconds)
        for metric, value in zip(METRICS, _values(by_part.get(part["number"]), seconds), strict=True):
            made.values[metric.name].append(value)
    return made


def _values(row: Mapping[str, float] | None, seconds: float) -> tuple[float | None, ...]:
    if row is None or not row["calls"]:
        return 0.0, 0.0, None, None
    calls, ms = row["calls"], row["ms"]
    return calls / seconds, ms / 1000 / seconds, ms * 1e6 / calls, row["work"] / calls


def _totals(interval: Interval, series: Series, name: str) -> Part:
    """Return the section with the sums over the interval, weighted by the length of the sub-intervals."""
    title = "In this time"
    calls = sum((v or 0.0) * s for v, s in zip(series.values.get("qps", ()), series.seconds, strict=True))
    busy_s = sum((v or 0.0) * s for v, s in zip(series.values.get("aas", ()), series.seconds, strict=True))
    if not calls:
        return section("totals", title, notes=["it was not called, according to the server's counters"])
    row: Row = {
        "statement": name,
        "calls": round(calls),
        "per_s": calls / sum(series.seconds),
        "time": busy_s * 1e9,
        "mean": busy_s * 1e9 / calls,
        "aas": busy_s / sum(series.seconds),
    }
    shown = columns(
        "statement:code:identifier calls per_s:per_s:calls_per_s time:ns mean:ns:mean_of_a_call aas:aas:sessions_in_it"
    )
    del interval
    return section("totals", title, [table("", shown, [row])])


def _waits(history: History, top: int) -> Part:
    """Return the section on the sessions that ran the statement: their waits, databases, users and programs."""
    title = "Active sessions in this statement"
    if not history.looks:
        return section("sessions", title, not_measured=[missing_measurement("active sessions", WHY, WATCH)])
    tables = [
        table(f"By {one}", columns(f"name:text:{one} aas:aas share:ratio sessions mostly:text:class"), rows, top=top)
        for one in DIMENSIONS
        if (rows := history.averages_by(one))
    ]
    made = section("sessions", title, tables, about="aas: average active sessions, as sampled; share: of those.")
    over_time = history.over_time()
    if over_time is not None and over_time["classes"]:
        made["figures"] = ["session_history"]
        made["drawn"] = {**over_time, "events": []}
    return made


def _latencies(interval: Interval, name: str) -> Part:
    """Return the section with latency quantiles of the statement's logged executions."""
    title = "Latency of its executions"
    if interval.before.engine != "postgres" or not (found := latencies(interval).get(name)):
        lacks = missing_measurement("latency quantiles", "the store has no log or recording of this time", LOGGED)
        return section("latency", title, not_measured=[lacks])
    shown = [one for one in columns("executions p50:ns p95:ns p99:ns worst:ns:longest") if one["name"] in found]
    return section("latency", title, [table("", shown, [found])])


def _plans(interval: Interval, name: str) -> Part:
    """Return the section on changes of the statement's plan."""
    title = "Its plan"
    if interval.before.engine != "postgres":
        return section("plans", title, not_measured=[missing_measurement("plans", "only PostgreSQL's are read", "")])
    made = plans(interval, 10_000)
    for one in made["tables"]:
        one["rows"] = [row for row in one["rows"] if str(row.get("statement")) == name]
    kept = [one for one in made["tables"] if one["rows"]]
    notes = [] if kept or made["not_measured"] else ["its plan did not change in this time"]
    return section("plans", title, kept, about=made["about"], notes=notes, not_measured=made["not_measured"])
