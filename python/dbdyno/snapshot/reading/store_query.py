"""SQL on an interval of snapshots: tables as reports have them, read and never changed.

    interval = Interval(store, first, last, connection=memory_connection(in_order=True))
    with interval, StoreAnswer(interval, "select queryid, calls from pg_stat_statements order by 2 desc") as answer:
        answer.names, list(answer.rows())

A view of the server is a table with the differences over the interval; NAME_by_snapshot has a row per key and
sub-interval, with the time at which it ends. `sessions` has the sampled active sessions, with the part of a look or
period in which each was seen (`seen`), `snapshots` the snapshots. Only the tables that a query names are made. The
author of the query can read the store and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dbdyno.base.errors import EvidenceError
from dbdyno.base.sql_text import quoted
from dbdyno.evidence.memory import ALONE, current_database
from dbdyno.evidence.query_limits import restrict
from dbdyno.evidence.restricted_answer import RestrictedAnswer
from dbdyno.snapshot.sessions.active import STATEMENT_TYPES
from dbdyno.snapshot.sessions.history import History
from dbdyno.snapshot.sessions.samples import activity_columns

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

SESSIONS, SNAPSHOTS = "sessions", "snapshots"
BY_SNAPSHOT = "_by_snapshot"
SAMPLED = ("activity", "blocked")
VERDICTS = ["verdict", "why"]


class StoreAnswer(RestrictedAnswer):
    """Result of a SELECT over an interval of snapshots; `EvidenceError` is raised as by `RestrictedAnswer`.

    The interval has to stay open as long as the answer, which closes its connection. The connection is to a database
    of its own, since the settings that restrict the query hold for all connections to the database.
    """

    def __init__(self, interval: Interval, text: str, *, seconds: float | None = None) -> None:
        if current_database(interval.connection) != ALONE:
            raise ValueError("the database of the interval is shared with others: give it a `memory_connection`")
        known = store_tables(interval)
        for name in _named(interval, text) & known.keys():
            _make(interval, name)
        restrict(interval.connection, interval.store.folder, interval.sums.folder)
        next_step = f"correct the SQL; the tables are {', '.join(known)}"
        super().__init__(interval.connection, text, str(interval.store.folder), next_step, seconds)


def store_tables(interval: Interval) -> dict[str, list[str]]:
    """Return the tables that a query of an interval may use, with their columns."""
    found = {SNAPSHOTS: ["snapshot", "time", "note"]}
    if interval.before.engine in STATEMENT_TYPES:
        columns = [one.name for one in activity_columns(STATEMENT_TYPES[interval.before.engine])]
        found[SESSIONS] = ["time", *columns, "class", "seen"]
    for view in sorted(interval.after.views):
        if view in SAMPLED or not interval.has(view):
            continue
        names = [one.name for one in interval.after.columns(view)]
        found[view] = [*names, *VERDICTS]
        if interval.counters(view):
            kept = [one.name for one in interval.after.columns(view) if one.kind in ("key", "text", "counter", "sum")]
            found[view + BY_SNAPSHOT] = ["snapshot", "time", *kept]
    return found


def _named(interval: Interval, text: str) -> set[str]:
    """Return the tables that a query names; none if it cannot be parsed (its execution then reports the error)."""
    from dbdyno.evidence.duck import duckdb

    try:
        return {str(name).rpartition(".")[2].strip('"') for name in interval.connection.get_table_names(text)}
    except duckdb.Error:
        return set()


def _make(interval: Interval, name: str) -> None:
    """Create one table of an interval.

    Raises:
        EvidenceError: A file cannot be read.
    """
    from dbdyno.evidence.duck import duckdb

    makers: dict[str, Callable[[], None]] = {
        SNAPSHOTS: partial(_snapshots, interval),
        SESSIONS: partial(_sessions, interval),
    }
    made = makers.get(name) or (
        partial(_by_snapshot, interval, name.removesuffix(BY_SNAPSHOT))
        if name.endswith(BY_SNAPSHOT)
        else partial(interval.table, name)
    )
    try:
        made()
    except duckdb.Error as error:
        raise EvidenceError(
            f"cannot be read: {str(error).splitlines()[0]}", where=name, next_step="run `dbdyno snap check`"
        ) from error


def _snapshots(interval: Interval) -> None:
    columns = [
        [one.number for one in interval.chain],
        [one.at_ns // 1000 for one in interval.chain],
        [one.note for one in interval.chain],
    ]
    interval.connection.execute(
        f"create or replace table {SNAPSHOTS} as select unnest($1::bigint[]) as snapshot,"
        " make_timestamp(unnest($2::bigint[])) as time, unnest($3::varchar[]) as note",
        columns,
    )


def _sessions(interval: Interval) -> None:
    samples = History(interval).samples()
    interval.connection.execute(
        f"create or replace temp view {SESSIONS} as select make_timestamp(at_us) as time, *,"
        f" coalesce(looks / of_looks, 1.0) as seen from {samples}"
    )


def _by_snapshot(interval: Interval, view: str) -> None:
    """Create the view with a row per key and sub-interval."""
    _snapshots(interval)
    source, columns = interval.sums.relation(view, folded=False)
    names = ", ".join(quoted(one.name) for one in columns) or "null as nothing"
    rows = source or "(select 0 as part where false)"
    interval.connection.execute(
        f"create or replace temp view {quoted(view + BY_SNAPSHOT)} as select e.part as snapshot, s.time, {names}"
        f" from {rows} e join {SNAPSHOTS} s on s.snapshot = e.part"
    )
