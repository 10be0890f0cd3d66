"""Mapping of Oracle column types to Arrow types: the matching type where it holds every value, else text.

| Oracle | in the file |
|---|---|
| NUMBER(p, s), s from 0 to p | decimal(p, s) |
| NUMBER without limits, or with a scale beyond them; FLOAT | string, all digits |
| BINARY_FLOAT, BINARY_DOUBLE | float, double |
| DATE, TIMESTAMP up to 6 digits | timestamp (us) |
| TIMESTAMP with more digits or a time zone, INTERVAL, ROWID, XMLTYPE | string, as the server writes it |
| CHAR, VARCHAR2, NCHAR, NVARCHAR2, CLOB, NCLOB | string |
| RAW, BLOB | binary |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbdyno.base.errors import MoveError
from dbdyno.move.engines.postgres.columns import Column

TEXTS = ("CHAR", "VARCHAR2", "NCHAR", "NVARCHAR2", "CLOB", "NCLOB")
TEXT_SQL = {"FLOAT": "to_char({}, 'TM9')", "ROWID": "rowidtochar({})", "UROWID": "to_char({})"}
DIGITS_MOST = 38
DIGITS_OF_US = 6


@dataclass(frozen=True)
class DescribedColumn:
    """Column as the data dictionary describes it."""

    name: str
    data_type: str
    precision: int | None
    scale: int | None

    @property
    def bare_type(self) -> str:
        """Return the type's name in upper case, without numbers in brackets."""
        return re.sub(r"\(\d+\)", "", self.data_type).upper()


def column_of(column: DescribedColumn) -> Column:
    """Return the `Column` for a described column.

    Raises:
        MoveError: The type cannot be moved.
    """
    digits, scale = column.precision or 0, -1 if column.scale is None else column.scale
    if column.bare_type == "NUMBER" and 0 <= scale <= digits <= DIGITS_MOST and digits:
        return Column(column.name, "decimal", f"numeric({digits},{scale})", digits, scale)
    if column.bare_type in ("BINARY_FLOAT", "BINARY_DOUBLE"):
        kind = "float4" if column.bare_type == "BINARY_FLOAT" else "float8"
        return Column(column.name, kind, "real" if kind == "float4" else "double precision")
    if column.bare_type == "DATE" or (column.bare_type == "TIMESTAMP" and (column.scale or 0) <= DIGITS_OF_US):
        return Column(column.name, "timestamp", "timestamp without time zone")
    if column.bare_type in ("RAW", "BLOB"):
        return Column(column.name, "bytea", "bytea")
    if column.bare_type in TEXTS:
        return Column(column.name, "text", "text")
    if _words(column) is None:
        raise MoveError(
            f"is of type {column.data_type}, which cannot be moved",
            where=f"column {column.name}",
            next_step="leave the column out: name the others with --columns",
        )
    return Column(column.name, "text", "text", cast=True)


def select_expression(one: DescribedColumn, column: str) -> str:
    """Return the SQL expression that selects the value in the form in which it is moved."""
    words = _words(one) if column_of(one).cast else None
    return column if words is None else words.format(column)


def _words(column: DescribedColumn) -> str | None:
    if column.bare_type == "NUMBER":
        return "to_char({}, 'TM9')"
    if column.bare_type.startswith(("INTERVAL", "TIMESTAMP")):
        return "to_char({})"
    if column.bare_type.endswith("XMLTYPE"):
        return "{}.getclobval()"
    return TEXT_SQL.get(column.bare_type)
