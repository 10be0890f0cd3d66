"""Creation of the target table from the types recorded in files, or from their Arrow types if none is recorded.

A type recorded in a file is untrusted text: it goes into a statement only if the server parses it as exactly one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.core_types import FileColumn
from dbdyno.base.errors import MoveError

FORBIDDEN_IN_TYPES = ("--", "/*", ";", "\n", "\x00")


def create(conn: psycopg.Connection[Any], named: str, columns: Sequence[FileColumn]) -> None:
    """Create the table; must be called inside a transaction.

    Args:
        conn: The session.
        named: The table's name as SQL writes it.
        columns: The columns to create.

    Raises:
        MoveError: The table exists, its name is not valid, or a type does not exist.
    """
    name = _parse_name(conn, named)
    parts = [sql.SQL("{} {}").format(sql.Identifier(one["name"]), _type(conn, one)) for one in columns]
    try:
        with conn.transaction():
            conn.execute(sql.SQL("create table {} ({})").format(name, sql.SQL(",\n ").join(parts)))
    except psycopg.errors.DuplicateTable:
        raise MoveError("already exists", where=named, next_step="leave --create out, or name another table") from None


def _parse_name(conn: psycopg.Connection[Any], named: str) -> sql.Identifier:
    try:
        row = conn.execute("select parse_ident(%s)", [named]).fetchone()
    except psycopg.Error:
        row = None
    if row is None or not 1 <= len(row[0]) <= 2:
        raise MoveError(
            "is not a table name", where=f"--table {named}", next_step='write schema.table, or "My Schema"."My.Table"'
        )
    return sql.Identifier(*row[0])


def _type(conn: psycopg.Connection[Any], column: Mapping[str, Any]) -> sql.Composable:
    written = column["pg_type"] or column["holds"]
    row = None
    if not any(mark in written for mark in FORBIDDEN_IN_TYPES):
        try:
            with conn.transaction():
                row = conn.execute("select to_regtype(%s)::text", [written]).fetchone()
        except psycopg.Error:
            row = None
    if row is None or row[0] is None:
        raise MoveError(
            f"the target has no type {written!r}",
            where=f"column {column['name']}",
            next_step="create the type, or create the table yourself and leave --create out",
        )
    return sql.SQL(written)
