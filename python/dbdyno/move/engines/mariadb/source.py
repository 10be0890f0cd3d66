"""MariaDB as a source: its tables, their columns, and the statements that read them.

Only tables whose engine keeps old row versions (such as InnoDB) are moved: other engines have no consistent snapshot.
Each worker reads in its own transaction; all transactions begin at one moment (`job.py`). By then each has touched
every table, so no table can be altered, dropped or truncated until the transactions end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.address import driver, error_text
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.columns import column_row, select_expression, typed_columns
from dbdyno.move.engines.mariadb.sql import checked_sql, literal, quote_name, split_name
from dbdyno.move.engines.postgres.columns import Column
from dbdyno.move.engines.postgres.source import Request, Table, application_name
from dbdyno.move.reading.splits import Chunk, Relation

LOCK_WAIT_S = 10
SESSION = (
    "set names utf8mb4",
    "set session sql_mode = 'NO_ENGINE_SUBSTITUTION', time_zone = '+00:00', max_statement_time = 0,"
    f" lock_wait_timeout = {LOCK_WAIT_S}, wait_timeout = 28800, net_write_timeout = 3600, net_read_timeout = 3600",
)
"""Settings of each session: the server does not time it out, and text is encoded in the same way everywhere."""
SNAPSHOT = (
    "set session transaction isolation level repeatable read",
    "start transaction with consistent snapshot, read only",
)
VERSIONED = ("innodb", "rocksdb")
INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
COST_SQL = """
select json_objectagg(lower(variable_name), variable_value) from information_schema.session_status
where variable_name in ('BYTES_SENT', 'ROWS_READ', 'CREATED_TMP_DISK_TABLES')
"""
TABLES_SQL = """
select t.table_schema, t.table_name, lower(t.table_type), lower(coalesce(t.engine, '')),
       greatest(coalesce(t.data_length, 0), 64 * coalesce(t.table_rows, 0))
from information_schema.tables t where t.table_schema = %s and t.table_name = %s
"""
"""Query for a table's type, engine and estimated size in bytes.

InnoDB knows the row count immediately but updates the data length only some ten seconds later; until then a table that
was just filled appears to have one page. 64 bytes per row is therefore a lower estimate.
"""
LIST_SQL = """
select table_schema, table_name from information_schema.tables
where table_type in ('BASE TABLE', 'SYSTEM VERSIONED')
  and table_schema not in ('mysql', 'sys', 'information_schema', 'performance_schema') order by 1, 2
"""
COLUMNS_SQL = """
select c.column_name, c.data_type, c.column_type, c.numeric_precision, c.numeric_scale, c.datetime_precision,
       concat('json_valid(`', c.column_name, '`)') in (
         select k.check_clause from information_schema.check_constraints k
         where k.constraint_schema = %(schema)s and k.table_name = %(name)s) as is_json
from information_schema.columns c where c.table_schema = %(schema)s and c.table_name = %(name)s
order by c.ordinal_position
"""
"""Columns of a table; the subquery uses parameters, because with `c.table_name` the server would open all tables."""
KEY_SQL = """
select c.column_name, c.data_type from information_schema.columns c
where c.table_schema = %(schema)s and c.table_name = %(name)s and c.column_name in (
  select s.column_name from information_schema.statistics s
  where s.table_schema = %(schema)s and s.table_name = %(name)s and s.index_name = 'PRIMARY' and s.seq_in_index = 1)
"""


def requested_tables(target: MariaDB, conn: Any, request: Request) -> tuple[Table, ...]:
    """Return the tables or the query that the user asked for, with their current definitions.

    Raises:
        MoveError: A table is missing or cannot be read consistently, or the server reports an error.
    """
    try:
        if request.query is not None:
            return (_query(conn, request),)
        return tuple(_table(conn, schema, name, request) for schema, name in _table_names(target, conn, request))
    except driver().Error as error:
        raise failure(error, target.safe_dsn) from None


def _table_names(target: MariaDB, conn: Any, request: Request) -> list[tuple[str, str]]:
    database = str(target.parameters.get("database") or "")
    found = [split_name(name, database) for name in request.tables]
    if request.patterns:
        found += request.matches(rows(conn, LIST_SQL), "write a pattern such as 'database.*', in quotes")
    return list(dict.fromkeys(found))


def _table(conn: Any, schema: str, name: str, request: Request) -> Table:
    place = f"{schema}.{name}"
    described = rows(conn, TABLES_SQL, [schema, name])
    if not described:
        raise MoveError(
            "there is no such table or view", where=f"--table {place}", next_step="list the tables with `show tables`"
        )
    schema, name, kind, engine, size = described[0]
    is_view = "view" in kind
    if not is_view and engine not in VERSIONED:
        raise MoveError(
            f"its engine {engine} keeps no old versions of rows, so the table cannot be read as of one instant",
            where=place,
            next_step="run `alter table ... engine = InnoDB`, or stop its writers and move the table with --query",
        )
    columns = _choose_columns(columns_of(conn, schema, name, request.as_text), request.columns, place)
    where = checked_sql(request.where, "--where") if request.where is not None else None
    key = "" if is_view else _key(conn, schema, name)
    relation = Relation(schema, name, bytes=int(size), stream=not key, key=key)
    if request.partition is not None and request.partition not in {one.name for one in columns}:
        raise MoveError(
            f"{place} has no column {request.partition!r}",
            where="--partition-by",
            next_step="name a column of the table",
        )
    return Table(schema, name, "view" if is_view else "table", columns, (relation,), where, None, request.partition)


def columns_of(conn: Any, schema: str, name: str, as_text: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns of a table, each with the type in which it is moved."""
    with conn.cursor() as cursor:
        cursor.execute(COLUMNS_SQL, {"schema": schema, "name": name})
        heads = [one[0] for one in cursor.description]
        found = [dict(zip(heads, row, strict=True)) for row in cursor.fetchall()]
    return tuple(typed_columns(found, as_text))


def _key(conn: Any, schema: str, name: str) -> str:
    with conn.cursor() as cursor:
        cursor.execute(KEY_SQL, {"schema": schema, "name": name})
        found = cursor.fetchall()
    return str(found[0][0]) if found and found[0][1].lower() in INTEGERS else ""


def _choose_columns(columns: Sequence[Column], names: Sequence[str], where: str) -> tuple[Column, ...]:
    known = {one.name: one for one in columns}
    missing = [name for name in names if name not in known]
    if missing:
        listed = ", ".join(list(known)[:20])
        raise MoveError(f"has no column {missing[0]!r}", where=where, next_step=f"name one of its columns: {listed}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else tuple(columns)


def _query(conn: Any, request: Request) -> Table:
    """Return the query as a table, with the columns that the server describes before it sends the first row."""
    query = checked_sql(request.query or "", "--query").rstrip().rstrip(";")
    with conn.cursor() as cursor:
        cursor.execute(f"select * from (\n{query}\n) as q limit 0")
        described = [column_row(one) for one in cursor._result.fields]
    columns = _choose_columns(typed_columns(described, request.as_text), request.columns, "--query")
    return Table("", "query", "query", columns, (Relation("", "query", stream=True),), query=query)


def session_sql(tables: Sequence[Table]) -> list[str]:
    """Return a worker's statements before its first chunk: they open the snapshot and lock the tables against DDL."""
    touched = [
        f"select 1 from {quote_name(relation.schema, relation.name)} limit 0"
        for table in tables
        for relation in table.relations
        if relation.schema
    ]
    return [*SESSION, *SNAPSHOT, *touched]


def select_sql(tables: Sequence[Table], chunk: Chunk) -> str:
    """Return the statement that reads a chunk."""
    table = tables[chunk.table]
    relation = table.relations[chunk.relation]
    alias = "q" if table.query is not None else table.name
    chosen = ", ".join(select_expression(one, alias) for one in table.columns)
    if table.partition is not None:
        # The value that names the partition's folder comes after all columns of the file.
        chosen += f", cast({quote_name(alias, table.partition)} as char)"
    if table.query is not None:
        return f"select {chosen} from (\n{table.query}\n) as q"
    limits = [
        f"{quote_name(alias, relation.key)} {sign} {literal(value)}"
        for sign, value in ((">=", chunk.start), ("<", chunk.before))
        if value is not None
    ]
    force = " force index (primary)" if limits else ""
    if table.where is not None:
        limits.append(f"({table.where}\n)")
    where = f" where {' and '.join(limits)}" if limits else ""
    return f"select {chosen} from {quote_name(relation.schema, relation.name)} as {quote_name(alias)}{force}{where}"


def connect(target: MariaDB, job: str) -> Any:
    """Open a session for catalog queries and short locks.

    Raises:
        MoveError: The server reports an error.
    """
    conn = target.connect(name=application_name(job))
    try:
        rows(conn, f"set session lock_wait_timeout = {LOCK_WAIT_S}, time_zone = '+00:00'")
    except driver().Error as error:
        conn.close()
        raise failure(error, target.safe_dsn) from None
    return conn


def failure(error: Exception, where: str) -> MoveError:
    """Return a `MoveError` for an error of the server, with the user's next step."""
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    steps = {
        1142: "ask for SELECT on the table",
        1062: "use --mode merge or --mode update with --key to change the rows that already exist",
        1205: "wait until the session that locks the table has ended, or end it",
        1412: "move the table again: it was altered or truncated after the snapshot",
        3948: "run `set global local_infile = 1` on the server",
        4166: "run `set global local_infile = 1` on the server",
    }
    return MoveError(
        error_text(error), where=where, next_step=steps.get(number, "correct the SQL; try it in the mariadb client")
    )
