"""MariaDB as a target: staging tables beside the target table, published in one transaction.

Staging tables are ordinary private tables; the target does not change until the transaction commits. MariaDB cannot
drop a table inside a transaction, so the transaction sets a mark: a job whose mark exists was published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.core_types import FileColumn
from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.columns import GEOMETRIES
from dbdyno.move.engines.mariadb.source import COLUMNS_SQL, LOCK_WAIT_S, SESSION, TABLES_SQL, VERSIONED
from dbdyno.move.engines.mariadb.sql import quote_name, split_name
from dbdyno.move.engines.postgres.staging import FILE, PREFIX, ROW
from dbdyno.move.loading.request import LoadRequest

WRITING = (
    *SESSION,
    # Accept every date that the source had, and keep a 0 as a 0.
    "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    f"set session innodb_lock_wait_timeout = {LOCK_WAIT_S}",
)
GENERATED_SQL = """
select column_name, coalesce(collation_name, ''), coalesce(character_set_name, '') from information_schema.columns
where table_schema = %s and table_name = %s
"""
KEYED_SQL = """
select index_name from information_schema.statistics
where table_schema = %s and table_name = %s and seq_in_index = 1 and column_name in %s limit 1
"""
_OWN_TYPE = re.compile(
    r"[a-z0-9]+(?:\((?:\d+(?:,\d+)?|'(?:[^'\\]|'')*'(?:,'(?:[^'\\]|'')*')*)\))?(?: unsigned| zerofill)*", re.IGNORECASE
)
_PG_TYPES = (
    (r"varchar\((\d{1,4})\)|character varying\((\d{1,4})\)", "varchar({})"),
    (r"numeric\((\d+,\d+)\)", "decimal({})"),
    (r"bit\((\d{1,2})\)", "bit({})"),
    (r"jsonb?()", "json"),
    (r"boolean()", "tinyint(1)"),
    (r"smallint()", "smallint"),
    (r"integer()", "int"),
    (r"bigint()", "bigint"),
)
"""Patterns of PostgreSQL types and the MariaDB type that each becomes; other types become their staging type."""


@dataclass(frozen=True)
class Field:
    """Column of the target, with the type in which it is staged."""

    name: str
    staged: str
    data_type: str
    declared: str
    collation: str = ""
    charset: str = ""
    generated: bool = False
    digits: int | None = None

    def value(self, alias: str = "s") -> str:
        """Return the SQL expression of the column's value, read from the staging table."""
        name = quote_name(alias, self.name)
        if self.data_type == "bit" and self.staged == "longtext":
            return f"cast(conv({name}, 2, 10) as unsigned)"
        return f"st_geomfromwkb({name})" if self.data_type in GEOMETRIES else name

    def key(self, alias: str = "s") -> str:
        """Return the value's SQL expression with the collation of the target's key, for comparisons with it."""
        if not self.collation or self.staged != "longtext":
            return self.value(alias)
        return f"convert({self.value(alias)} using {self.charset}) collate {self.collation}"

    def bytewise(self, value: str) -> str:
        """Return an expression in which only identical values are equal: texts are compared byte by byte."""
        return f"cast(convert({value} using utf8mb4) as binary)" if self.collation else value

    def stored_value(self) -> str | None:
        """Return the SQL of the value as the target's type stores it, or None if the type never rounds silently."""
        if self.data_type in ("decimal", "numeric") and self.staged.startswith(("decimal", "double", "float")):
            return f"cast({self.value()} as {self.declared.split(' ')[0]})"
        if self.data_type in ("datetime", "timestamp", "time") and self.staged.endswith("(6)"):
            kind = "time" if self.data_type == "time" else "datetime"
            return f"cast({self.value()} as {kind}({self.digits or 0}))" if (self.digits or 0) < 6 else None
        if self.data_type == "float" and self.staged == "double":
            return f"cast({self.value()} as float)"
        if self.data_type == "date" and self.staged.startswith("datetime"):
            return f"cast({self.value()} as date)"
        if self.data_type.endswith("int") and self.staged.startswith(("decimal", "double", "float")):
            return f"cast({self.value()} as decimal(65,0))"
        return None


@dataclass(frozen=True)
class TargetTable:
    """Target table, and the columns that are loaded into it."""

    schema: str
    name: str
    fields: tuple[Field, ...]

    @property
    def table(self) -> str:
        """Return the table's quoted, qualified name."""
        return quote_name(self.schema, self.name)

    def stage_name(self, job: str, number: int) -> str:
        """Return the quoted name of one of the job's staging tables."""
        return quote_name(self.schema, f"{PREFIX}{job}_{number}")

    def mark(self, job: str) -> str:
        """Return the quoted name of the table that marks the job as published."""
        return quote_name(self.schema, f"{PREFIX}{job}_mark")

    def written_fields(self) -> list[Field]:
        """Return the columns that are written, without those that the server generates."""
        return [one for one in self.fields if not one.generated]


Heads = Sequence[FileColumn]
"""Columns as they arrive, each with `name`, `staged`, `mariadb_type`, `pg_type` and `arrow`."""


def match_target(conn: Any, database: str, load_request: LoadRequest, heads: Heads) -> TargetTable:
    """Match the arriving columns with the target table, and create the table first if `load_request` says so.

    Raises:
        MoveError: The table is missing or of a wrong kind, a column is missing, or the key has no index.
    """
    schema, name = split_name(load_request.table, database)
    if load_request.create:
        _create(conn, schema, name, heads)
    described = rows(conn, TABLES_SQL, [schema, name])
    if not described:
        raise MoveError(
            "there is no such table", where=f"--table {load_request.table}", next_step="add --create to make the table"
        )
    schema, name, kind, engine, _ = described[0]
    if "view" in kind or engine not in VERSIONED:
        raise MoveError(
            "is a view" if "view" in kind else f"its engine is {engine}, which has no transactions",
            where=load_request.table,
            next_step="name a table whose engine is InnoDB",
        )
    fields = _fields(conn, schema, name, load_request, heads)
    missing = [key for key in load_request.key if key not in {one.name for one in fields}]
    if missing:
        raise MoveError(
            f"the loaded rows have no column {missing[0]!r}", where="--key", next_step="name columns of the loaded rows"
        )
    if load_request.key and not rows(conn, KEYED_SQL, [schema, name, list(load_request.key)]):
        # Without an index the server scans the whole table for each row: 500,000 rows took more than ten minutes.
        raise MoveError(
            f"has no index that begins with a column of the key ({', '.join(load_request.key)})",
            where=load_request.table,
            next_step=f"add one with: alter table {load_request.table} add index "
            f"({', '.join(quote_name(one) for one in load_request.key)})",
        )
    return TargetTable(schema, name, tuple(fields))


def _fields(conn: Any, schema: str, name: str, load_request: LoadRequest, heads: Heads) -> list[Field]:
    with conn.cursor() as cursor:
        cursor.execute(COLUMNS_SQL, {"schema": schema, "name": name})
        known = {one[0]: one for one in cursor.fetchall()}
        cursor.execute(GENERATED_SQL, [schema, name])
        words = {one[0]: one for one in cursor.fetchall()}
        cursor.execute(f"show columns from {quote_name(schema, name)}")
        made = {one[0] for one in cursor.fetchall() if "GENERATED" in one[5].upper()}
    found = []
    for one in heads:
        row = known.get(one["name"])
        if row is None:
            raise MoveError(
                f"has no column {one['name']!r}, but the loaded rows have one",
                where=load_request.table,
                next_step=f"add it with: alter table {load_request.table} add column ... {type_of(one)}",
            )
        if one["staged"] is None:
            raise MoveError(
                f"is of type {one['arrow']}, which cannot be loaded",
                where=f"column {one['name']} of the files",
                next_step="convert it to text, or to a type that docs/how-to/move.md lists",
            )
        _, collation, charset = words[one["name"]]
        data_type, declared, digits = row[1].lower(), row[2].lower(), row[5]
        found.append(
            Field(one["name"], one["staged"], data_type, declared, collation, charset, one["name"] in made, digits)
        )
    return found


def type_of(head: Mapping[str, Any]) -> str:
    """Return the MariaDB type for a column of a table to be created.

    A type recorded in a file is untrusted text: it is used only if it is exactly the name of one type.
    """
    own = str(head.get("mariadb_type") or "")
    if own and _OWN_TYPE.fullmatch(own):
        return own
    for pattern, made in _PG_TYPES:
        if found := re.fullmatch(pattern, str(head.get("pg_type") or "")):
            return made.format(next((one for one in found.groups() if one), ""))
    return str(head["staged"] or "longtext")


def _create(conn: Any, schema: str, name: str, heads: Heads) -> None:
    if rows(conn, TABLES_SQL, [schema, name]):
        raise MoveError(
            "already exists", where=f"{schema}.{name}", next_step="leave --create out, or name another table"
        )
    parts = ", ".join(f"{quote_name(one['name'])} {type_of(one)} null" for one in heads)
    rows(conn, f"create table {quote_name(schema, name)} ({parts}) engine = InnoDB default charset = utf8mb4")


def table_exists(conn: Any, database: str, load_request: LoadRequest) -> bool:
    """Return True if the target table exists."""
    return bool(rows(conn, TABLES_SQL, split_name(load_request.table, database)))


def drop(conn: Any, goal: TargetTable) -> None:
    """Drop a table that was created for a load that failed."""
    rows(conn, f"drop table if exists {goal.table}")


def make_stages(conn: Any, goal: TargetTable, job: str, numbers: Sequence[int], *, placed: bool = False) -> None:
    """Create the staging tables, dropping existing ones, and the table for the job's mark.

    Args:
        conn: The session that stages.
        goal: The target table and its columns.
        job: The job's id.
        numbers: Numbers of the staging tables.
        placed: Add columns for each row's file number and row number.
    """
    columns = [f"{quote_name(one.name)} {_staged_type(one)} null" for one in goal.fields]
    if placed:
        key = f"primary key ({quote_name(FILE)}, {quote_name(ROW)})"
        columns = [f"{quote_name(FILE)} int not null", f"{quote_name(ROW)} bigint not null", *columns, key]
    parts = ", ".join(columns)
    for number in numbers:
        stage = goal.stage_name(job, number)
        rows(conn, f"drop table if exists {stage}")
        rows(conn, f"create table {stage} ({parts}) engine = InnoDB row_format = dynamic default charset = utf8mb4")
    rows(conn, f"create table if not exists {goal.mark(job)} (published int) engine = InnoDB")


def _staged_type(field: Field) -> str:
    return f"{field.staged} character set utf8mb4 collate utf8mb4_bin" if field.staged == "longtext" else field.staged


def drop_stages(conn: Any, goal: TargetTable, job: str, numbers: Sequence[int]) -> None:
    """Drop the staging tables and the table with the job's mark."""
    listed = ", ".join([goal.mark(job), *(goal.stage_name(job, number) for number in numbers)])
    rows(conn, f"drop table if exists {listed}")


def load_sql(goal: TargetTable, job: str, number: int, *, placed: bool = False) -> str:
    """Return the `LOAD DATA LOCAL` statement that reads the lines from the core into a staging table."""
    names, sets = [quote_name(name) for name in (FILE, ROW) if placed], []
    for place, one in enumerate(goal.fields):
        if one.staged == "longblob":
            names.append(f"@v{place}")
            sets.append(f"{quote_name(one.name)} = unhex(@v{place})")
        else:
            names.append(quote_name(one.name))
    done = f" set {', '.join(sets)}" if sets else ""
    return (
        f"load data local infile 'rows' into table {goal.stage_name(job, number)} character set utf8mb4"
        rf" fields terminated by '\t' escaped by '\\' lines terminated by '\n' ({', '.join(names)}){done}"
    )


def is_published(conn: Any, goal: TargetTable, job: str) -> bool:
    """Return True if the job's mark is set, which means that its rows were published."""
    place = (goal.schema, f"{PREFIX}{job}_mark")
    return bool(rows(conn, TABLES_SQL, place) and rows(conn, f"select 1 from {goal.mark(job)} limit 1"))


def database_of(target: MariaDB) -> str:
    """Return the connection's database, used for unqualified names; empty if there is none."""
    return str(target.parameters.get("database") or "")


def staged_rows(conn: Any, goal: TargetTable, job: str, numbers: Sequence[int]) -> int:
    """Return the total number of rows in the staging tables."""
    return sum(int(rows(conn, f"select count(*) from {goal.stage_name(job, number)}")[0][0]) for number in numbers)
