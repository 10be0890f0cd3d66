"""PostgreSQL as a source: one exported snapshot and the connection that holds it, tables, columns and sizes.

Tables are locked before the snapshot is taken (ACCESS SHARE: reads and writes go on, DROP, ALTER and TRUNCATE wait),
because a truncation ignores older snapshots. Each worker imports the snapshot into its own transaction.
"""

from __future__ import annotations

import contextlib
import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.columns import TYPES_SQL, Column, DescribedColumn, typed_columns
from dbdyno.move.engines.postgres.mask_sql import masked_sql
from dbdyno.move.engines.postgres.sql import checked_sql
from dbdyno.move.reading.splits import Chunk, Relation

STATEMENT_TIMEOUT_MS = 60_000
LOCK_TIMEOUT_MS = 10_000
SETTINGS = {
    "statement_timeout": "0",
    "lock_timeout": str(LOCK_TIMEOUT_MS),
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "transaction_timeout": "0",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "row_security": "off",
    "xmloption": "content",
}
"""Settings of each session: no timeout of the server ends it, text has one format, and row security raises an error."""
SET_SQL = """
select set_config(s.name, v.value, {}) from (values {}) v(name, value)
join pg_catalog.pg_settings s on lower(s.name) = lower(v.name)
"""
SNAPSHOT_LOST_CODES = ("22023", "42704", "55000")
"""Error codes for a snapshot that no session exports any more."""
LOCKABLE = ("r", "p", "v")
SNAPSHOTS_MOST = 5
"""Maximum number of attempts to take a snapshot in which no relation is rewritten before it is locked."""
KINDS = {"r": "table", "p": "partitioned table", "m": "materialized view", "v": "view", "f": "foreign table"}
RELATIONS_SQL = """
with recursive tree(oid) as (
    select %s::oid union select i.inhrelid from tree t join pg_catalog.pg_inherits i on i.inhparent = t.oid
)
select n.nspname::text, c.relname::text, c.oid::bigint, coalesce(pg_relation_filenode(c.oid), 0)::bigint,
       case when c.relkind in ('r', 'm') then pg_relation_size(c.oid) / current_setting('block_size')::int else 0 end,
       case when c.relkind in ('r', 'm') then pg_table_size(c.oid) else 0 end, c.relkind in ('v', 'f')
from tree join pg_catalog.pg_class c using (oid) join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm', 'v', 'f') order by n.nspname, c.relname
"""
COLUMNS_SQL = """
select a.attname::text, a.atttypid::bigint, a.atttypmod, format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_attribute a where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
REWRITTEN_SQL = """
select c.oid::regclass::text from pg_catalog.pg_locks l join pg_catalog.pg_class c on c.oid = l.relation
where l.pid = pg_backend_pid() and l.locktype = 'relation' and c.relfilenode <> 0
  and l.database = (select oid from pg_catalog.pg_database where datname = current_database())
  and c.relfilenode is distinct from pg_relation_filenode(c.oid)
limit 1
"""
"""Query that finds a locked relation that got a new file between the snapshot and the lock.

pg_class shows the file as of the snapshot, pg_relation_filenode() the current one. TRUNCATE and REFRESH MATERIALIZED
VIEW fill the new file without regard to older snapshots.
"""
LIST_SQL = """
select n.nspname::text, c.relname::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'm') and not c.relispartition and n.nspname !~ '^pg_'
  and n.nspname <> 'information_schema'
order by 1, 2
"""


class SnapshotLostError(MoveError):
    """Raised when no session holds the snapshot any more."""


@dataclass(frozen=True)
class Table:
    """Source of rows: a table, a view, or a query (which has no schema)."""

    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...]
    relations: tuple[Relation, ...]
    where: str | None = None
    query: str | None = None
    partition: str | None = None
    """The column whose values name the folders of a partitioned output, or None."""


@dataclass(frozen=True)
class Request:
    """Tables, columns and conditions that the user asked for."""

    tables: Sequence[str] = ()
    patterns: Sequence[str] = ()
    where: str | None = None
    columns: Sequence[str] = ()
    query: str | None = None
    as_text: Sequence[str] = ()
    partition: str | None = None

    def matches(self, known: Iterable[tuple[str, str]], next_step: str) -> list[tuple[str, str]]:
        """Return the known tables that the patterns match; raise `MoveError` with `next_step` if one matches none."""
        found = []
        for pattern in self.patterns:
            fits = [(schema, name) for schema, name in known if fnmatch.fnmatchcase(f"{schema}.{name}", pattern)]
            if not fits:
                raise MoveError(f"no table matches {pattern!r}", where="--tables", next_step=next_step)
            found += fits
        return found


@dataclass
class Snapshot:
    """Exported snapshot of a database, valid while its connection is open."""

    conn: psycopg.Connection[Any]
    id: str = ""
    taken_at: str = ""
    tables: list[Table] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        with contextlib.suppress(psycopg.Error):
            self.conn.close()

    def is_held(self) -> bool:
        """Return True if the connection that holds the snapshot still answers."""
        try:
            self.conn.execute("select /* dbdyno */ 1")
        except psycopg.Error:
            return False
        return True


def application_name(job: str) -> str:
    """Return the application name of a job's sessions."""
    return f"dbdyno move {job}"


def take_snapshot(target: Postgres, request: Request, job: str, held: str | None = None) -> Snapshot:
    """Lock the tables, take the snapshot, and read the tables' descriptions.

    Args:
        target: The server.
        request: The tables or the query to read.
        job: The job's id.
        held: The snapshot exported by another session, or None to take a new one.

    Raises:
        MoveError: The tables cannot be read, or the connection goes through a pooler.
        SnapshotLostError: No session holds the snapshot `held` any more, or a relation was rewritten after it.
    """
    if target.pooled:
        raise MoveError(
            "a snapshot cannot be read through a pooler, which may change the server process",
            where=target.safe_dsn,
            next_step="connect to the server directly",
        )

    def begin(snapshot: Snapshot) -> bool:
        _begin(snapshot, snapshot.conn, request, held)
        return snapshot.conn.execute(REWRITTEN_SQL).fetchone() is None

    return begin_snapshot(target, job, held, begin, "a relation to be read was truncated or refreshed")


def begin_snapshot(
    target: Postgres, job: str, held: str | None, begin: Callable[[Snapshot], bool], changed: str
) -> Snapshot:
    """Open the session of a snapshot and begin its transaction, retrying while the tables change in between.

    Args:
        target: The server.
        job: The job's id.
        held: The snapshot exported by another session, or None to take a new one.
        begin: Begins the transaction; returns False if something changed between the snapshot and its locks.
        changed: Words for an error message that say what changed.

    Raises:
        MoveError: The server refuses a statement, or something changed at every attempt.
        SnapshotLostError: No session holds the snapshot `held` any more, or something changed after it.
    """
    conn = target.connect(
        statement_timeout_ms=STATEMENT_TIMEOUT_MS,
        lock_timeout_ms=LOCK_TIMEOUT_MS,
        application_name=application_name(job),
    )
    try:
        snapshot = Snapshot(conn)
        for _ in range(SNAPSHOTS_MOST if held is None else 1):
            if begin(snapshot):
                return snapshot
            conn.execute("rollback")
        if held is not None:
            raise SnapshotLostError(f"{changed} after the snapshot {held}", where=target.safe_dsn)
        raise MoveError(
            f"{changed} in each attempt, between the snapshot and the lock",
            where=target.safe_dsn,
            next_step="wait until the session that makes these changes has ended, then run the command again",
        )
    except psycopg.Error as error:
        conn.close()
        if held is not None and error.sqlstate in SNAPSHOT_LOST_CODES:
            raise SnapshotLostError(f"the snapshot {held} is gone", where=target.safe_dsn) from None
        raise failure(error, target.safe_dsn) from None
    except BaseException:
        conn.close()
        raise


def _begin(snapshot: Snapshot, conn: psycopg.Connection[Any], request: Request, held: str | None) -> None:
    named = _table_names(conn, request)
    conn.execute("begin isolation level repeatable read read only")
    if held is not None:
        conn.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(held)))
    for oid, name, kind in named:
        if kind in LOCKABLE:
            conn.execute(sql.SQL("lock table {} in access share mode").format(sql.Identifier(*name)))
        elif oid is None:
            raise MoveError(
                "was dropped while the job was reading it", where=".".join(name), next_step="run the command again"
            )
    row = conn.execute("select pg_export_snapshot(), now()::text").fetchone()
    snapshot.id, snapshot.taken_at = row or ("", "")
    conn.execute(session_settings(conn, idle_only=True))
    if request.query is not None:
        snapshot.tables = [_query(conn, request)]
    else:
        snapshot.tables = [_table(conn, oid, name, kind, request) for oid, name, kind in named]
    if request.partition is not None:
        snapshot.tables = [_check_partition_column(table, request.partition) for table in snapshot.tables]


def session_settings(conn: psycopg.Connection[Any] | None, *, idle_only: bool = False, lasting: bool = False) -> str:
    """Return one statement that sets a session's settings.

    Args:
        conn: Used to quote values, or None.
        idle_only: Set only the timeouts, as needed by the connection that holds the snapshot.
        lasting: Set them for the session instead of the transaction.
    """
    chosen = {name: value for name, value in SETTINGS.items() if not idle_only or "idle" in name or "trans" in name}
    rows = sql.SQL(", ").join(sql.SQL("({}, {})").format(name, value) for name, value in chosen.items())
    return sql.SQL(SET_SQL).format(sql.SQL("false" if lasting else "true"), rows).as_string(conn)


def session_sql(conn: psycopg.Connection[Any], snapshot_id: str) -> list[str]:
    """Return the statements that a worker runs before its first chunk."""
    take_it = sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot_id)).as_string(conn)
    return ["begin isolation level repeatable read read only", take_it, session_settings(conn)]


def _table_names(conn: psycopg.Connection[Any], request: Request) -> list[tuple[int, tuple[str, str], str]]:
    names = list(request.tables)
    if request.patterns:
        fits = request.matches(conn.execute(LIST_SQL).fetchall(), "write 'schema.*', in quotes")
        names += [sql.Identifier(*one).as_string(conn) for one in fits]
    found = [resolve_table(conn, name) for name in names]
    return list({one[0]: one for one in found}.values())


def resolve_table(conn: psycopg.Connection[Any], name: str) -> tuple[int, tuple[str, str], str]:
    """Return OID, (schema, name) and kind of a table whose name is written as in SQL.

    Raises:
        MoveError: The text is not a name, or there is no such table or view.
    """
    asked = (
        "select c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text from pg_catalog.pg_class c"
        " join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = to_regclass(%s)"
    )
    try:
        row = conn.execute(asked, [name]).fetchone()
    except psycopg.Error as error:
        said = str(error).strip().splitlines()[0]
        raise MoveError(
            f"is not a table name: {said}",
            where=f"--table {name}",
            next_step="write schema.table; put names with characters"
            ' other than a-z, 0-9 and _ in double quotes: \'"My Schema"."My.Table"\'',
        ) from None
    if row is None or row[3] not in KINDS:
        raise MoveError(
            "there is no such table or view" if row is None else "is not a table or view",
            where=f"--table {name}",
            next_step="list the tables with `\\d` in psql; put names with capitals or dots in double quotes",
        )
    return row[0], (row[1], row[2]), row[3]


def _table(conn: psycopg.Connection[Any], oid: int, name: tuple[str, str], kind: str, request: Request) -> Table:
    described = [DescribedColumn(*row) for row in conn.execute(COLUMNS_SQL, [oid])]
    if request.columns:
        described = _choose_columns(described, request.columns, ".".join(name))
    if not described:
        raise MoveError("has no columns", where=".".join(name), next_step="choose a table with columns")
    relations = tuple(Relation(*row) for row in conn.execute(RELATIONS_SQL, [oid]))
    where = checked_sql(request.where, "--where") if request.where is not None else None
    table = Table(*name, KINDS[kind], _columns_of(conn, described, request.as_text), relations, where)
    # LOCK TABLE does not accept a materialized view, also not below a view; reading zero rows locks it.
    if relations and (where is not None or kind in ("m", "v")):
        trial = select_sql(conn, table, relations[0], None, None)
        conn.execute(b"select * from (%s) as q limit 0" % trial.encode())
    return table


def _check_partition_column(table: Table, column: str) -> Table:
    if column not in {one.name for one in table.columns}:
        raise MoveError(
            f"{table.schema}.{table.name} has no column {column!r}".lstrip("."),
            where="--partition-by",
            next_step="name a column of the table",
        )
    return replace(table, partition=column)


def _choose_columns(described: Sequence[DescribedColumn], columns: Sequence[str], where: str) -> list[DescribedColumn]:
    known = {one.name: one for one in described}
    missing = [name for name in columns if name not in known]
    if missing:
        raise MoveError(
            f"has no column {missing[0]!r}",
            where=where,
            next_step=f"name one of: {', '.join(list(known)[:20])}",
        )
    return [known[name] for name in dict.fromkeys(columns)]


def _query(conn: psycopg.Connection[Any], request: Request) -> Table:
    query = checked_sql(request.query or "", "--query").rstrip().rstrip(";")
    asked = conn.execute(b"select * from (\n%s\n) as q limit 0" % query.encode(), prepare=False)
    about = asked.description or []
    described = [
        DescribedColumn(one.name, one.type_code, asked.pgresult.fmod(place) if asked.pgresult else -1, "")
        for place, one in enumerate(about)
    ]
    names = [one.name for one in described]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or not names:
        raise MoveError(
            f"two columns are named {twice!r}" if twice else "returns no columns",
            where="--query",
            next_step="name each column with AS",
        )
    told = "select format_type(o, m) from unnest(%s::oid[], %s::int[]) with ordinality u(o, m, n) order by n"
    types = [row[0] for row in conn.execute(told, [[d.oid for d in described], [d.typmod for d in described]])]
    described = [DescribedColumn(d.name, d.oid, d.typmod, said) for d, said in zip(described, types, strict=True)]
    if request.columns:
        described = _choose_columns(described, request.columns, "--query")
    relation = Relation("", "query", stream=True)
    return Table("", "query", "query", _columns_of(conn, described, request.as_text), (relation,), query=query)


def _columns_of(
    conn: psycopg.Connection[Any], described: Sequence[DescribedColumn], texts: Iterable[str]
) -> tuple[Column, ...]:
    types = conn.execute(TYPES_SQL, [[one.oid for one in described]]).fetchall()
    return tuple(typed_columns(described, types, texts))


def copy_sql(conn: psycopg.Connection[Any] | None, tables: Sequence[Table], chunk: Chunk, form: str = "binary") -> str:
    """Return the COPY statement that reads a chunk."""
    table = tables[chunk.table]
    piece = select_sql(conn, table, table.relations[chunk.relation], chunk.start, chunk.before)
    return f"copy ({piece}) to stdout (format {form})"


def select_sql(
    conn: psycopg.Connection[Any] | None, table: Table, relation: Relation, start: int | None, before: int | None
) -> str:
    """Return the SELECT statement that reads the blocks `start` (included) to `before` (excluded) of a table."""
    alias = sql.Identifier(table.name)
    chosen = sql.SQL(", ").join(
        _mask(sql.SQL("{}.{}").format(alias, sql.Identifier(one.name)), one)
        + sql.SQL("::pg_catalog.text" if one.cast else "")
        for one in table.columns
    )
    if table.partition is not None:
        # The value that names the partition's folder comes after all columns of the file.
        chosen += sql.SQL(", {}.{}::pg_catalog.text").format(alias, sql.Identifier(table.partition))
    if table.query is not None:
        text = sql.SQL("select {} from (\n{}\n) as {}")
        asked = sql.SQL(table.query)
        return text.format(chosen, asked, alias).as_string(conn)
    limits = [
        sql.SQL("{}.ctid {} {}::pg_catalog.tid").format(alias, sql.SQL(sign), sql.Literal(f"({block},0)"))
        for sign, block in ((">=", start), ("<", before))
        if block is not None
    ]
    if table.where is not None:
        limits.append(sql.SQL(f"({table.where}\n)"))  # type: ignore[arg-type]
    where = sql.SQL(" where ") + sql.SQL(" and ").join(limits) if limits else sql.SQL("")
    only = sql.SQL("" if relation.stream and table.kind == "view" else "only ")
    place = sql.Identifier(relation.schema, relation.name)
    text = sql.SQL("select {} from {}{} as {}{}")
    return text.format(chosen, only, place, alias, where).as_string(conn)


def _mask(value: sql.Composable, column: Column) -> sql.Composable:
    if not column.mask:
        return value
    # The type of an extension has no form that all servers share; of those that can be masked there is one.
    return masked_sql(value, column.wire or "citext", column.pg_type, column.mask)


def failure(error: psycopg.Error, where: str) -> MoveError:
    """Return a `MoveError` for an error of the server, with the user's next step."""
    said = (str(error).strip().splitlines() or [type(error).__name__])[0]
    steps = {
        "55P03": "wait until the session that alters, truncates or vacuums the table has ended, or end it",
        "42501": "ask for SELECT on the table",
        "23505": "use --mode merge or --mode update with --key to change the rows that already exist",
        "25006": "give a statement that only reads",
        "53200": "raise max_locks_per_transaction: each table needs a lock",
    }
    return MoveError(said, where=where, next_step=steps.get(error.sqlstate or "", "correct the SQL; try it in psql"))
