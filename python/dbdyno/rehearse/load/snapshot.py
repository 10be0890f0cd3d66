"""Load from snapshots: statements counted by pg_stat_statements, with values made from a server's statistics.

    load_of_snapshot(Store(Path("snaps")), "snap:1..12", server)   # counted between two snapshots
    load_of_snapshot(Store(Path("snaps")), "snap:last", server)    # counted since the last reset

A snapshot has texts only of the statements at the top of its rankings; a note gives the share of the others.
"""

from __future__ import annotations

import contextlib
from typing import Any

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.evidence.memory import file_connection
from dbdyno.rehearse.load.logged_values import LoggedValues
from dbdyno.rehearse.load.server import SAMPLES, Counted, with_generated_values
from dbdyno.rehearse.statement import Load
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.store.folder import Snapshot, Store

_VIEW, _TEXTS, _NAMES = "pg_stat_statements", "statement_texts", "pg_stat_database"
_NEXT = "take snapshots with the extension: dbdyno snap take --target DSN; or give --load a capture"
Counters = list[tuple[int, int, int, float, float]]
"""Counters of a statement: role, database, identifier, calls and time [ms]."""


def load_of_snapshot(
    store: Store, name: str, server: Postgres, samples: int = SAMPLES, logged: LoggedValues | None = None
) -> Load:
    """Return the statements that a snapshot or a period of snapshots has counted, with generated parameter values.

    Args:
        store: The store of snapshots.
        name: `snap:FIRST..LAST`, a baseline (`snap:monday`), or a single snapshot (`snap:12`, `snap:last`).
        server: The old server, whose statistics give the values.
        samples: Number of sets of values for each statement.
        logged: Values that auto_explain logged, which are preferred.

    Raises:
        SnapshotError: The name refers to no snapshots, or these have no statements of the database.
        EvidenceError: A snapshot cannot be read.
    """
    last, counters = _counters(store, name.removeprefix("snap:"))
    database = server.libpq_parameters()["dbname"]
    kept, notes = _of_database(last, counters, database)
    counted, more = _with_texts(last, kept)
    if not counted:
        raise SnapshotError("contains no text of any statement", where=f"{store.folder}: {name}", next_step=_NEXT)
    with contextlib.closing(server.connect(statement_timeout_ms=60_000)) as conn:
        statements, note = with_generated_values(conn, counted, samples, logged)
    return Load(f"{name} of {last.target}", "snapshot", statements, (note, *notes, *more))


def _counters(store: Store, name: str) -> tuple[Snapshot, Counters]:
    """Return the last snapshot that a name refers to, and the counters up to it."""
    is_period = ".." in name or (store.folder / "baselines" / f"{name}.json").is_file()
    if not is_period:
        last = _check_snapshot(find(store, name))
        return last, _query(last, _sql(last, str(last.relation(_VIEW)), "true"))
    part = period(store, name)
    last = _check_snapshot(part.chain[-1])
    with Interval(store, part.chain[0], last, part.chain) as interval:
        table = interval.table(_VIEW)
        rows = interval.query(_sql(last, table, "verdict in ('ok', 'evicted')"))
    return last, [(row["userid"], row["dbid"], row["queryid"], row["calls"], row["time"]) for row in rows]


def _check_snapshot(last: Snapshot) -> Snapshot:
    problem = last.problem(_VIEW)
    if last.engine != "postgres" or problem is not None or last.relation(_VIEW) is None:
        why = problem[0] if problem else "is not there"
        raise SnapshotError(
            f"snapshot {last.number} has no statements of PostgreSQL: {_VIEW} {why}",
            where=str(last.store),
            next_step=(problem[1] if problem else None) or _NEXT,
        )
    return last


def _sql(last: Snapshot, relation: str, where: str) -> str:
    has = {column.name for column in last.columns(_VIEW)}
    time = "total_exec_time" if "total_exec_time" in has else "total_time"
    top = "toplevel is not false" if "toplevel" in has else "true"
    return (
        f"select userid, dbid, queryid, sum(calls)::bigint as calls, sum({time})::double as time from {relation}"  # noqa: S608 - names of ours
        f" where {where} and {top} and calls > 0 and queryid is not null group by all"
    )


def _query(last: Snapshot, sql: str) -> list[tuple[Any, ...]]:
    import duckdb

    try:
        with file_connection() as connection:
            return connection.execute(sql).fetchall()
    except duckdb.Error as error:
        raise EvidenceError(
            f"cannot be read: {str(error).splitlines()[0]}", where=f"{last.store}: snapshot {last.number}"
        ) from None


def _of_database(last: Snapshot, counters: Counters, database: str) -> tuple[Counters, list[str]]:
    """Return the counters of the named database, or of the only database that has statements."""
    names: dict[int, str] = {}
    if (relation := last.relation(_NAMES)) is not None and last.problem(_NAMES) is None:
        names = dict(_query(last, f"select datid, datname from {relation} where datname is not null"))  # noqa: S608 - names of ours
    own = [row for row in counters if names.get(row[1]) == database]
    if own:
        return own, []
    others = sorted({names.get(row[1], str(row[1])) for row in counters})
    if len(others) != 1:
        said = f"has statements of {', '.join(others)}, but" if others else "has"
        raise SnapshotError(
            f"snapshot {last.number} {said} no statements of the database {database}",
            where=str(last.store),
            next_step=f"rehearse on a database with the same name: dbdyno rehearse postgresql://copy/{others[0]}"
            if others
            else _NEXT,
        )
    return counters, [f"The statements come from the database {others[0]}."]


def _with_texts(last: Snapshot, counters: Counters) -> tuple[list[Counted], list[str]]:
    """Return the statements with a text in the snapshot, sorted by time, and a sentence about those without text."""
    texts: dict[int, str] = {}
    if (relation := last.relation(_TEXTS)) is not None and last.problem(_TEXTS) is None:
        texts = dict(_query(last, f"select queryid, query from {relation}"))  # noqa: S608 - names of ours
    roles = last.facts.get("roles") or {}
    sums: dict[str, list[Any]] = {}
    unknown, unknown_ms, whole_ms = 0, 0.0, 0.0
    for role, _, identifier, calls, time_ms in counters:
        text = texts.get(identifier)
        if text is not None and is_ours(text):
            continue
        whole_ms += time_ms
        if text is None:
            unknown, unknown_ms = unknown + 1, unknown_ms + time_ms
            continue
        row = sums.setdefault(text, [0, 0.0, str(roles.get(str(role), ""))])
        row[0], row[1] = row[0] + calls, row[1] + time_ms
    found = [(text, int(calls), int(ms * 1e6), user) for text, (calls, ms, user) in sums.items()]
    notes = []
    if unknown:
        share = unknown_ms / whole_ms if whole_ms else 0.0
        notes.append(
            f"{unknown:,} statements with {share:.1%} of the time are left out, because the snapshot lacks their texts."
        )
    return sorted(found, key=lambda row: -row[2]), notes
