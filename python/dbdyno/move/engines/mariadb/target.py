"""A MariaDB as a target: staging tables beside the table, and one transaction that publishes them.

The staging tables are ordinary ones of our own; until the transaction commits nothing of the table has changed. MariaDB
cannot drop a table inside of a transaction, so that a mark is set there: a job whose mark is there was published.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.mariadb.session import rows
from dbdyno.move.engines.mariadb.columns import GEOMETRIES
from dbdyno.move.engines.mariadb.source import COLUMNS_SQL, LOCK_WAIT_S, SESSION, TABLES_SQL, VERSIONED
from dbdyno.move.engines.mariadb.sql import quoted, split_name
from dbdyno.move.engines.postgres.staging import FILE, PREFIX, ROW
from dbdyno.move.loading.request import Into

WRITING = (
    *SESSION,
    # No day is refused that the source had, and a 0 stays a 0.
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
"""What a column of PostgreSQL becomes; the others are what their staged values are."""


@dataclass(frozen=True)
class Field:
    """A column: how it is staged, and what it becomes."""

    name: str
    staged: str
    data_type: str
    declared: str
    collation: str = ""
    charset: str = ""
    generated: bool = False
    digits: int | None = None

    def value(self, alias: str = "s") -> str:
        """Its value on the way from the staging table."""
        name = quoted(alias, self.name)
        if self.data_type == "bit" and self.staged == "longtext":
            return f"cast(conv({name}, 2, 10) as unsigned)"
        return f"st_geomfromwkb({name})" if self.data_type in GEOMETRIES else name

    def key(self, alias: str = "s") -> str:
        """The same, compared as the table's own key is."""
        if not self.collation or self.staged != "longtext":
            return self.value(alias)
        return f"convert({self.value(alias)} using {self.charset}) collate {self.collation}"

    def plain(self, value: str) -> str:
        """A value so that only the same one equals it: texts byte by byte."""
        return f"cast(convert({value} using utf8mb4) as binary)" if self.collation else value

    def narrowed(self) -> str | None:
        """What the table's type makes of a value, where it rounds without an error."""
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
class Goal:
    """The table, and how the columns of what comes go into it."""

    schema: str
    name: str
    fields: tuple[Field, ...]

    @property
    def table(self) -> str:
        """As SQL writes it."""
        return quoted(self.schema, self.name)

    def stage(self, job: str, number: int) -> str:
        """A staging table."""
        return quoted(self.schema, f"{PREFIX}{job}_{number}")

    def mark(self, job: str) -> str:
        """The table with the mark of a job that was published."""
        return quoted(self.schema, f"{PREFIX}{job}_mark")

    def given(self) -> list[Field]:
        """The columns that are written: the server makes the others."""
        return [one for one in self.fields if not one.generated]


Heads = Sequence[Mapping[str, Any]]
"""Columns of what comes: `name`, `staged`, `mariadb_type`, `pg_type`, `arrow`."""


def matched(conn: Any, database: str, into: Into, heads: Heads) -> Goal:
    """The columns in the table; one that is to be made is made. Raises `MoveError`."""
    schema, name = split_name(into.table, database)
    if into.create:
        _create(conn, schema, name, heads)
    described = rows(conn, TABLES_SQL, [schema, name])
    if not described:
        raise MoveError("there is no such table", where=f"--table {into.table}", next_step="--create makes it")
    schema, name, kind, engine, _ = described[0]
    if "view" in kind or engine not in VERSIONED:
        raise MoveError(
            "is a view" if "view" in kind else f"its engine is {engine}, which has no transactions",
            where=into.table,
            next_step="name a table of InnoDB",
        )
    fields = _fields(conn, schema, name, into, heads)
    missing = [key for key in into.key if key not in {one.name for one in fields}]
    if missing:
        raise MoveError(f"what comes has no column {missing[0]!r}", where="--key")
    if into.key and not rows(conn, KEYED_SQL, [schema, name, list(into.key)]):
        # The server would look through the whole table for each row: 500,000 rows took more than ten minutes.
        raise MoveError(
            f"has no index that begins with a column of the key ({', '.join(into.key)})",
            where=into.table,
            next_step=f"alter table {into.table} add index ({', '.join(quoted(one) for one in into.key)})",
        )
    return Goal(schema, name, tuple(fields))


def _fields(conn: Any, schema: str, name: str, into: Into, heads: Heads) -> list[Field]:
    with conn.cursor() as cursor:
        cursor.execute(COLUMNS_SQL, [schema, name])
        known = {one[0]: one for one in cursor.fetchall()}
        cursor.execute(GENERATED_SQL, [schema, name])
        words = {one[0]: one for one in cursor.fetchall()}
        cursor.execute(f"show columns from {quoted(schema, name)}")
        made = {one[0] for one in cursor.fetchall() if "GENERATED" in one[5].upper()}
    found = []
    for one in heads:
        row = known.get(one["name"])
        if row is None:
            raise MoveError(
                f"has no column {one['name']!r}, and what comes does",
                where=into.table,
                next_step=f"add it: alter table {into.table} add column ... {type_of(one)}",
            )
        if one["staged"] is None:
            raise MoveError(
                f"is of type {one['arrow']}, which is not loaded",
                where=f"column {one['name']} of the files",
                next_step="write it as a type of the table in docs/how-to/move.md, or as text",
            )
        _, collation, charset = words[one["name"]]
        data_type, declared, digits = row[1].lower(), row[2].lower(), row[5]
        found.append(
            Field(one["name"], one["staged"], data_type, declared, collation, charset, one["name"] in made, digits)
        )
    return found


def type_of(head: Mapping[str, Any]) -> str:
    """The type of a column that is made. A type that a file notes is foreign text: it is taken where it is one type's
    name and nothing else."""
    own = str(head.get("mariadb_type") or "")
    if own and _OWN_TYPE.fullmatch(own):
        return own
    for pattern, made in _PG_TYPES:
        if found := re.fullmatch(pattern, str(head.get("pg_type") or "")):
            return made.format(next((one for one in found.groups() if one), ""))
    return str(head["staged"] or "longtext")


def _create(conn: Any, schema: str, name: str, heads: Heads) -> None:
    if rows(conn, TABLES_SQL, [schema, name]):
        raise MoveError("is there already", where=f"{schema}.{name}", next_step="leave --create out")
    parts = ", ".join(f"{quoted(one['name'])} {type_of(one)} null" for one in heads)
    rows(conn, f"create table {quoted(schema, name)} ({parts}) engine = InnoDB default charset = utf8mb4")


def is_there(conn: Any, database: str, into: Into) -> bool:
    """Whether the table is."""
    return bool(rows(conn, TABLES_SQL, split_name(into.table, database)))


def drop(conn: Any, goal: Goal) -> None:
    """Takes back a table that was made for a load that failed."""
    rows(conn, f"drop table if exists {goal.table}")


def make_stages(conn: Any, goal: Goal, job: str, numbers: Sequence[int], *, placed: bool = False) -> None:
    """Makes the staging tables, whatever was there of them, and the one for the mark. `placed`: with the place of each
    row."""
    columns = [f"{quoted(one.name)} {_staged(one)} null" for one in goal.fields]
    if placed:
        key = f"primary key ({quoted(FILE)}, {quoted(ROW)})"
        columns = [f"{quoted(FILE)} int not null", f"{quoted(ROW)} bigint not null", *columns, key]
    parts = ", ".join(columns)
    for number in numbers:
        stage = goal.stage(job, number)
        rows(conn, f"drop table if exists {stage}")
        rows(conn, f"create table {stage} ({parts}) engine = InnoDB row_format = dynamic default charset = utf8mb4")
    rows(conn, f"create table if not exists {goal.mark(job)} (published int) engine = InnoDB")


def _staged(one: Field) -> str:
    return f"{one.staged} character set utf8mb4 collate utf8mb4_bin" if one.staged == "longtext" else one.staged


def drop_stages(conn: Any, goal: Goal, job: str, numbers: Sequence[int]) -> None:
    """Removes them."""
    listed = ", ".join([goal.mark(job), *(goal.stage(job, number) for number in numbers)])
    rows(conn, f"drop table if exists {listed}")


def load_sql(goal: Goal, job: str, number: int, *, placed: bool = False) -> str:
    """The statement that takes the core's lines."""
    names, sets = [quoted(name) for name in (FILE, ROW) if placed], []
    for place, one in enumerate(goal.fields):
        if one.staged == "longblob":
            names.append(f"@v{place}")
            sets.append(f"{quoted(one.name)} = unhex(@v{place})")
        else:
            names.append(quoted(one.name))
    done = f" set {', '.join(sets)}" if sets else ""
    return (
        f"load data local infile 'rows' into table {goal.stage(job, number)} character set utf8mb4"
        rf" fields terminated by '\t' escaped by '\\' lines terminated by '\n' ({', '.join(names)}){done}"
    )


def is_published(conn: Any, goal: Goal, job: str) -> bool:
    """Whether the job's mark is there."""
    place = (goal.schema, f"{PREFIX}{job}_mark")
    return bool(rows(conn, TABLES_SQL, place) and rows(conn, f"select 1 from {goal.mark(job)} limit 1"))


def database_of(target: MariaDB) -> str:
    """The one that names without one are in."""
    return str(target.parameters.get("database") or "")


def staged_rows(conn: Any, goal: Goal, job: str, numbers: Sequence[int]) -> int:
    """How many rows stand in the staging tables."""
    return sum(int(rows(conn, f"select count(*) from {goal.stage(job, number)}")[0][0]) for number in numbers)
