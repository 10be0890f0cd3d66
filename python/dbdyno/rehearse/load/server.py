"""Load from pg_stat_statements, with parameter values made from the server's column statistics."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.effects import reason_left_out
from dbdyno.rehearse.load.logged_values import LoggedValues
from dbdyno.rehearse.load.parameters import (
    Columns,
    ColumnStatistics,
    compared_columns,
    limit_values,
    quantile_positions,
    value_of,
)
from dbdyno.rehearse.sql_tree import reads_catalogs_only
from dbdyno.rehearse.statement import Load, Origin, Parameters, Statement
from dbdyno.snapshot.engines.postgres.texts import without_literals

SAMPLES = 5
Counted = tuple[str, int, int, str]
"""A row of pg_stat_statements: text, calls, total time [ns] and role."""
_COUNTED = """
select s.query, sum(s.calls)::bigint, (sum({time}) * 1e6)::bigint, coalesce(min(r.rolname)::text, '')
from pg_stat_statements s left join pg_roles r on r.oid = s.userid
where s.dbid = (select oid from pg_database where datname = current_database()) and s.query not like '%dbdyno%'
group by s.query order by 3 desc
"""
_STATISTICS = """
select s.tablename::text, s.attname::text, s.most_common_vals::text::text[], s.most_common_freqs::float8[],
  s.histogram_bounds::text::text[], exists (select from pg_index i where i.indrelid = c.oid
  and i.indisunique and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
from pg_stats s join pg_namespace n on n.nspname = s.schemaname
join pg_class c on c.relname = s.tablename and c.relnamespace = n.oid
join pg_attribute a on a.attrelid = c.oid and a.attname = s.attname
where s.schemaname not in ('pg_catalog', 'information_schema')
"""
_TYPED_LITERAL = re.compile(r"\b(interval|date|timestamptz|timestamp|time|numeric|uuid)\s+\$(\d+)", re.I)
_PLANNED = re.compile(r"[\s(]*(select|insert|update|delete|merge|with|values|table)\b", re.I)
"""First words of statements in which pg_stat_statements replaces literals; all other texts stay as they were sent."""
_SQUASHED = re.compile(r"/\*\s*,\s*\.\.\.\s*\*/")


def load_of_server(server: Postgres, samples: int = SAMPLES, logged: LoggedValues | None = None) -> Load:
    """Return the statements in pg_stat_statements, with logged values where there are any, else generated ones.

    Raises:
        TargetError: pg_stat_statements is missing, or nothing was counted.
    """
    with contextlib.closing(server.connect(statement_timeout_ms=60_000)) as conn:
        statements, note = with_generated_values(conn, _counted_statements(conn, server), samples, logged)
    return Load(server.safe_dsn, "statements", statements, (note,))


def with_generated_values(
    conn: Any, counted: Sequence[Counted], samples: int = SAMPLES, logged: LoggedValues | None = None
) -> tuple[list[Statement], str]:
    """Return the statements with values generated from a server's statistics, and a sentence about their origin.

    Statements that read system catalogs only are left out: they come from tools and drivers, not from the load.

    Args:
        conn: A session on the server.
        counted: The statements, the one with the most time first.
        samples: Number of sets of values for each statement.
        logged: Values that auto_explain logged, which are preferred.
    """
    columns = column_statistics(conn)
    wanted = [row for row in counted if not reads_catalogs_only(row[0])] or counted
    statements, made = [], dict.fromkeys(("captured", "data", "type", "none", "failed"), 0)
    for at, (text, calls, total_ns, user) in enumerate(wanted, 1):
        sent = executable_text(text)
        left_out = reason_left_out(sent) or ""
        seen = logged.executions_of(text, samples) if logged is not None else ()
        sets = [] if left_out else list(seen) or _samples(conn, sent, columns, samples)
        if sets is None:
            left_out = "the server does not accept its normalized text"
        if not left_out or sets is None:
            made[sets[0].origin if sets else "failed"] += 1
        shown = text if _PLANNED.match(text) else without_literals(text)
        statements.append(
            Statement(at, shown, int(calls), int(total_ns), user=user, samples=tuple(sets or ()), left_out=left_out)
        )
    return statements, _note(made) + _about_catalogs(counted, wanted)


def _about_catalogs(counted: Sequence[Counted], expected: Sequence[Counted]) -> str:
    """Return a sentence about statements that were left out because they read only system catalogs."""
    count = len(counted) - len(expected)
    if not count:
        return ""
    whole_ns = sum(row[2] for row in counted)
    share = 1 - sum(row[2] for row in expected) / whole_ns if whole_ns else 0.0
    return f" {count:,} statements on system catalogs, with {share:.1%} of the time, are left out."


def executable_text(text: str) -> str:
    """Return a normalised text in an executable form.

    >>> executable_text("select * from t where at > now() - interval $1")
    'select * from t where at > now() - ($1)::interval'
    """
    return _SQUASHED.sub("", _TYPED_LITERAL.sub(r"($\2)::\1", text))


def column_statistics(conn: Any) -> Columns:
    """Return the statistics of all columns that this role may read."""
    found: dict[str, dict[str, ColumnStatistics]] = {}
    for table, column, common, frequencies, bounds, is_unique in conn.execute(_STATISTICS).fetchall():
        found.setdefault(table, {})[column] = ColumnStatistics(
            tuple(common or ()), tuple(frequencies or ()), tuple(bounds or ()), bool(is_unique)
        )
    return found


def _counted_statements(conn: Any, server: Postgres) -> list[Counted]:
    time = "s.total_exec_time" if conn.info.server_version >= 130000 else "s.total_time"
    try:
        rows = conn.execute(_COUNTED.format(time=time).encode()).fetchall()
    except psycopg.Error as error:
        raise TargetError(
            f"pg_stat_statements cannot be read: {str(error).splitlines()[0]}",
            where=server.safe_dsn,
            next_step="create the extension in this database, or name a capture of `dbdyno trace proxy --binds` with"
            " --load",
        ) from None
    if not rows:
        raise TargetError(
            "pg_stat_statements has not counted a statement of this database",
            where=server.safe_dsn,
            next_step="run the load, then rehearse, or name a capture of `dbdyno trace proxy --binds` with --load",
        )
    return [(str(text), calls, total_ns, user) for text, calls, total_ns, user in rows]


def _samples(conn: Any, text: str, columns: Columns, count: int) -> list[Parameters] | None:
    """Return sets of values for a statement, or None if the server does not accept its text."""
    types = _types(conn, text)
    if types is None:
        return None
    if not types:
        return [Parameters(text, origin="none")]
    places, fixed = compared_columns(text, columns), limit_values(text)
    is_insert = text.lstrip()[:6].lower() == "insert"
    values: list[list[bytes | None]] = [[] for _ in range(count)]
    origins = set()
    for number, kind in enumerate(types, 1):
        statistics = _statistics_of(columns, places.get(number))
        for at, share in enumerate(quantile_positions(count, number)):
            value, found = value_of(kind, share, statistics, is_new=is_insert)
            if number in fixed:
                value, found = fixed[number], "data"
            values[at].append(None if value is None else value.encode())
            origins.add(found)
    origin: Origin = "type" if "type" in origins else "data"
    return [Parameters(text, tuple(row), (), tuple(types), None, origin) for row in values]


def _statistics_of(columns: Columns, place: tuple[str, str] | None) -> ColumnStatistics | None:
    return columns.get(place[0], {}).get(place[1]) if place is not None else None


def _types(conn: Any, text: str) -> list[int] | None:
    """Return the parameter types of a text as the server infers them, or None if it does not accept the text."""
    from psycopg import generators, pq

    pgconn = conn.pgconn
    pgconn.send_prepare(b"", text.encode())
    (prepared,) = conn.wait(generators.execute(pgconn))
    if prepared.status != pq.ExecStatus.COMMAND_OK:
        return None
    pgconn.send_describe_prepared(b"")
    (described,) = conn.wait(generators.execute(pgconn))
    return [described.param_type(at) for at in range(described.nparams)]


def _note(made: Mapping[str, int]) -> str:
    logged = f"{made['captured']:,} statements have values that were logged, " if made["captured"] else ""
    words = (
        f"Parameters: {logged}{made['data']:,} statements have values from the data, {made['type']:,} some made by type"
        f" only, {made['none']:,} need none"
    )
    return words + (f"; the server refuses the normalized text of {made['failed']:,}." if made["failed"] else ".")
