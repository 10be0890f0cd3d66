"""The report sections about sampled sessions: who was active, on what, and who blocked whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sections import MissingMeasurement, Part, Table, columns, missing_measurement, section, table
from dbdyno.snapshot.reading.events_table import events_table
from dbdyno.snapshot.reading.long_timeline import chart_events, long_events
from dbdyno.snapshot.reading.timeline import events
from dbdyno.snapshot.sessions import objects
from dbdyno.snapshot.sessions.history import History

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

WATCH = "dbdyno snap watch --target DSN --every 60s"
WHY = "the sessions were not sampled in this interval"
TITLE = "Active sessions"
HEADINGS = {
    "class": ("By wait class", "class"),
    "statement": ("By statement", "statement"),
    "user": ("By user", "user"),
    "database": ("By database", "database"),
    "application": ("By application", "application"),
    "client": ("By client address", "client"),
    "event": ("By wait event", "event"),
    "session": ("By session", "session"),
    "table": ("By table", "table"),
    "index": ("By index", "index"),
}
IN_REPORT = ("statement", "user", "database", "application", "client")


def activity(interval: Interval, top: int) -> Part:
    """Return the section on active sessions over time and by each dimension, with the events."""
    history = History(interval)
    if not history.looks:
        return section("sessions", TITLE, not_measured=[missing_measurement("active sessions", WHY, WATCH)])
    return _section(history, IN_REPORT, top)


def sessions(interval: Interval, by: str, where: Mapping[str, str], top: int) -> JsonObject:
    """Return the page of `dbdyno snap sessions`: one dimension, for the sessions that `where` selects."""
    from dbdyno.snapshot.report import page_head, worst_verdict
    from dbdyno.snapshot.sessions.blocking import section as blocking

    history = History(interval, where)
    kept = " and ".join(f"{name} {value}" for name, value in where.items())
    if by in objects.OBJECTS and not history.looks:
        made = _objects(history, by, top)
    elif history.looks:
        made = _section(history, (by,), top)
    else:
        made = section("sessions", TITLE, not_measured=[missing_measurement("active sessions", WHY, WATCH)])
    about = f"{ABOUT} {objects.ABOUT[by]}" if by in objects.OBJECTS and history.looks else made["about"]
    made["about"] = (f"Only {kept}. " if kept else "") + about
    return {
        **page_head(interval, "sessions", worst_verdict(interval)),
        "verdicts": [],
        "sections": [made] if where else [made, blocking(interval, top)],
        "warnings": [],
    }


def _section(history: History, dimensions: tuple[str, ...], top: int) -> Part:
    interval = history.interval
    found = events(interval) if len(interval.chain) <= OPENED_MOST else long_events(interval)
    history.group([one for one in dimensions if one not in objects.OBJECTS])
    tables = [
        _objects_table(history, one, top) if one in objects.OBJECTS else _table(history, one, top) for one in dimensions
    ]
    tables.append(table("Longest transactions", _TRANSACTIONS, history.transactions(min(top, LONGEST))))
    horizons = history.horizons(min(top, LONGEST))
    if horizons:
        tables.append(table("Transactions that held back vacuum", _HORIZONS, horizons))
    tables.append(events_table(found))
    drawn = history.over_time()
    lacks = [
        _no_statements(history),
        *(objects.missing_reason(interval, one) for one in dimensions if one in objects.OBJECTS),
    ]
    made = section("sessions", TITLE, tables, about=ABOUT, notes=_notes(history), not_measured=lacks)
    if drawn is not None and drawn["classes"]:
        made["figures"] = ["session_history"]
        made["drawn"] = {**drawn, "events": chart_events(found)}
    return made


OPENED_MOST = 130
"""Maximum number of snapshots that are opened for events (with a vacuum's instant); beyond it, cached sums are used."""
LONGEST = 10
_TRANSACTIONS = columns(
    "session:text open:ns ran:ns:longest_statement idled:ns:longest_idle state:text:last_state seen:time:last_seen"
    " usename:text:user datname:text:database application:text client:text text:text:last_statement"
)
_HORIZONS = columns(
    "session:text horizon:count:transactions_since held:ns:oldest_for open:ns state:text:last_state seen:time:last_seen"
    " usename:text:user datname:text:database application:text client:text text:text:last_statement"
)
UNNAMED = "(none)"
ABOUT = "aas is the average number of active sessions in the samples, and share is a row's part of their total."


def _table(history: History, dimension: str, top: int) -> Table:
    title, label = HEADINGS[dimension]
    spec = f"name:text:{label} aas:aas share:ratio sessions mostly:text:class"
    if dimension == "statement":
        spec = "text:text:statement aas:aas share:ratio sessions mostly:text:class name:code:identifier"
    rows = [row | {"name": row["name"] or UNNAMED} for row in history.averages_by(dimension, top)]
    made = table(title, columns(spec), rows)
    made["left_out"] = max(history.value_count(dimension) - len(rows), 0)
    return made


def _objects(history: History, kind: str, top: int) -> Part:
    """Return the section on tables or indexes of an interval whose sessions were not sampled."""
    lacks = [missing_measurement("active sessions", WHY, WATCH), objects.missing_reason(history.interval, kind)]
    about = objects.ABOUT[kind]
    return section("sessions", TITLE, [_objects_table(history, kind, top)], about=about, not_measured=lacks)


def _objects_table(history: History, kind: str, top: int) -> Table:
    return table(HEADINGS[kind][0], columns(objects.COLUMNS[kind]), objects.objects(history, kind), top=top)


def _no_statements(history: History) -> MissingMeasurement | None:
    """Return a note if MariaDB showed no statements, which it shows only to users with PROCESS; else None."""
    if history.engine != "mariadb" or any(row["name"] != "none" for row in history.averages_by("statement", 2)):
        return None
    why = "the server did not show the text of their statements"
    return missing_measurement("the statements of sessions", why, "grant process on *.* to the user of the snapshots")


BY_MEMORY = ", each the sums of up to 1,000 looks at the server's memory per second"


def _notes(history: History) -> list[str]:
    seconds = history.interval.seconds / history.looks
    by = {one.manifest["cost"].get("sessions_by") for one in history.interval.chain[1:]}
    way = BY_MEMORY if by == {"memory"} else ""
    notes = [f"{history.looks} samples, one every {seconds:.2g} s{way}"]
    idle = history.idle_in_transaction()
    if idle:
        notes.append(f"{idle:.2f} more sessions were idle in a transaction, on average")
    return notes
