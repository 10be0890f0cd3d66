"""PostgreSQL's sessions for the live screen: their activity, progress of commands, a plan, a cancel request.

Texts are read only for the screen and never stored, and everything in quotes is removed. A plan is obtained without
executing the statement: as a prepared statement's generic plan, in a read-only transaction with timeouts, which is
rolled back. The text is sent by the extended protocol, which accepts one statement and no second one after a semicolon.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from dbdyno.base.errors import SnapshotError, TargetError
from dbdyno.snapshot.engines.postgres.sampler import horizon_age
from dbdyno.snapshot.engines.postgres.texts import without_literals

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.snapshot.engines.live import Progress, Session

    Connection = psycopg.Connection[tuple[Any, ...]]

LONGEST = 4000
PLAN_TIMEOUT_MS = 2000
PLAN_LOCK_TIMEOUT_MS = 200
_EXPLAINED = re.compile(
    r"(?:\s|--[^\n]*+\n|/\*.*?\*/)*+(?:select|with|values|table|insert|update|delete|merge)\b", re.I | re.S
)
"""Pattern of the statements whose plan EXPLAIN may show.

EXPLAIN executes none of them, and the transaction refuses to write whatever else the text contains.
"""


def _age(start: str) -> str:
    return f"(extract(epoch from clock_timestamp() - {start}) * 1000000)::bigint"


_SESSIONS = f"""
with seen as (
  select a.*, case when a.wait_event_type = 'Lock' then pg_blocking_pids(a.pid) end as blockers
  from pg_stat_activity a where a.pid <> pg_backend_pid() and a.application_name not like 'dbdyno snap%%')
select pid, usename, datname, application_name,
  coalesce(host(client_addr), case when backend_type = 'client backend' then 'local' end),
  coalesce(state, backend_type), nullif(concat_ws(':', wait_event_type, wait_event), ''),
  case when state = 'active' then {_age("query_start")} end, {_age("xact_start")}, {_age("state_change")},
  blockers, left(query, {LONGEST}), {horizon_age("seen")}
from seen
where state <> 'idle' and backend_type in ('client backend', 'parallel worker', 'walsender')
  or backend_type = 'autovacuum worker'
  or pid in (select unnest(blockers) from seen)
"""
_NAMES = (
    *("pid", "user", "database", "application", "client", "state"),
    *("wait", "statement_us", "transaction_us", "state_us", "blockers", "query", "horizon_age"),
)

_PROGRESS = {
    "pg_stat_progress_vacuum": ("vacuum", "phase", "heap_blks_scanned", "heap_blks_total", "blocks"),
    "pg_stat_progress_create_index": ("create index", "phase", "blocks_done", "blocks_total", "blocks"),
    "pg_stat_progress_cluster": ("cluster", "phase", "heap_blks_scanned", "heap_blks_total", "blocks"),
    "pg_stat_progress_analyze": ("analyze", "phase", "sample_blks_scanned", "sample_blks_total", "blocks"),
    "pg_stat_progress_copy": ("copy", "command", "bytes_processed", "bytes_total", "bytes"),
    "pg_stat_progress_basebackup": ("base backup", "phase", "backup_streamed", "backup_total", "bytes"),
}
"""For each view: the command, the column with its phase, work done, total work, and the unit of both."""


def sessions(connection: Connection) -> list[Session]:
    """Return the sessions that run a statement, have an open transaction, or block others."""
    found = []
    for row in connection.execute(_SESSIONS):
        one = dict(zip(_NAMES, row, strict=True))
        found.append(cast("Session", {**one, "query": without_literals(one["query"] or "")}))
    return found


def progress_sql(connection: Connection) -> str:
    """Return one query over all progress views of this server version."""
    found = []
    for (name,) in connection.execute(
        "select relname::text from pg_class where relname like 'pg\\_stat\\_progress\\_%'"
        " and relnamespace = 'pg_catalog'::regnamespace order by 1"
    ).fetchall():
        if name not in _PROGRESS:
            continue
        what, phase, done, whole, unit = _PROGRESS[name]
        related = unit == "blocks" or what == "copy"
        on = "case when relid <> 0 then relid::regclass::text end" if related else "null"
        found.append(
            f"select pid, '{what}', {phase}::text, {done}::float8 / nullif({whole}, 0), {on} from pg_catalog.{name}"
        )
    return " union all ".join(found)


def progress(connection: Connection, sql: str) -> list[Progress]:
    """Return the commands whose progress the server reports."""
    names = ("pid", "what", "phase", "done", "on")
    rows = connection.execute(sql) if sql else ()
    return [cast("Progress", dict(zip(names, row, strict=True))) for row in rows]


def plan(target: Postgres, connection: Connection, pid: int) -> list[str]:
    """Return the lines of the generic plan of the statement that a session runs.

    Raises:
        SnapshotError: The session or its statement is not visible, the statement cannot be explained, or the server
            refuses.
    """
    row = connection.execute("select datname, query from pg_stat_activity where pid = %s", [pid]).fetchone()
    if row is None or not row[1]:
        raise SnapshotError(
            f"there is no session {pid}, or this role may not see its statement",
            next_step="choose an active session, or grant pg_read_all_stats to the role",
        )
    if not _EXPLAINED.match(row[1]):
        raise SnapshotError(
            f"session {pid} runs a statement without a plan: only SELECT, INSERT, UPDATE, DELETE and MERGE have one",
            next_step="choose another session",
        )
    import psycopg

    try:
        own = target.in_database(row[0]).connect(
            autocommit=False,
            statement_timeout_ms=PLAN_TIMEOUT_MS,
            lock_timeout_ms=PLAN_LOCK_TIMEOUT_MS,
            read_only=True,
            application_name="dbdyno snap top plan",
        )
    except TargetError as error:
        raise SnapshotError(error.message, where=error.where, next_step=error.next_step) from error
    try:
        return generic_plan_lines(own, row[1])
    except psycopg.Error as error:
        raise SnapshotError(
            f"the plan cannot be read: {(str(error).strip().splitlines() or ['refused'])[0]}"
        ) from error
    finally:
        own.close()


def generic_plan_lines(connection: Connection, text: str) -> list[str]:
    """Return the lines of a statement's generic plan, obtained by PREPARE, which determines the types of parameters.

    Each parameter is NULL, which the plan ignores.

    Raises:
        psycopg.Error: The server refuses.
    """
    import psycopg

    connection.execute("set transaction read only")
    connection.execute("set local plan_cache_mode = force_generic_plan")
    made = connection.pgconn.exec_params(b"prepare dbdyno_top as " + text.encode(), None)
    if made.status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise psycopg.DatabaseError(made.error_message.decode(errors="replace"))
    row = connection.execute(
        "select cardinality(parameter_types) from pg_prepared_statements where name = 'dbdyno_top'"
    )
    count = int((row.fetchone() or (0,))[0])
    nulls = f"({', '.join(['null'] * count)})" if count else ""
    lines = [
        without_literals(str(line)) for (line,) in connection.execute(f"explain execute dbdyno_top{nulls}".encode())
    ]
    connection.rollback()
    return lines


def cancel(connection: Connection, pid: int) -> bool:
    """Return True if the server accepted the request to cancel a session's statement (pg_cancel_backend).

    Raises:
        SnapshotError: The request failed.
    """
    import psycopg

    try:
        row = connection.execute("select pg_cancel_backend(%s)", [pid]).fetchone()
    except psycopg.Error as error:
        raise SnapshotError(
            f"the statement was not cancelled: {(str(error).strip().splitlines() or ['refused'])[0]}"
        ) from error
    return bool(row and row[0])
