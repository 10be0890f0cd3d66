"""Mapping of Oracle column types to Arrow types: the matching type where it holds every value, else text.

| Oracle | in the file |
|---|---|
| NUMBER(p, s), s from 0 to p | decimal(p, s) |
| NUMBER without limits, or with a scale beyond them; FLOAT | string, all digits |
| BINARY_FLOAT, BINARY_DOUBLE | float, double |
| DATE, TIMESTAMP up to 6 digits | timestamp (us) |
| TIMESTAMP beyond, with a time zone, INTERVAL, ROWID, XMLTYPE | string, as the server writes it |
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


def column_of(one: DescribedColumn) -> Column:
    """Return the `Column` for a described column.

    Raises:
        MoveError: The type cannot be moved.
    """
    digits, scale = one.precision or 0, -1 if one.scale is None else one.scale
    if one.bare_type == "NUMBER" and 0 <= scale <= digits <= DIGITS_MOST and digits:
        return Column(one.name, "decimal", f"numeric({digits},{scale})", digits, scale)
    if one.bare_type in ("BINARY_FLOAT", "BINARY_DOUBLE"):
        kind = "float4" if one.bare_type == "BINARY_FLOAT" else "float8"
        return Column(one.name, kind, "real" if kind == "float4" else "double precision")
    if one.bare_type == "DATE" or (one.bare_type == "TIMESTAMP" and (one.scale or 0) <= DIGITS_OF_US):
        return Column(one.name, "timestamp", "timestamp without time zone")
    if one.bare_type in ("RAW", "BLOB"):
        return Column(one.name, "bytea", "bytea")
    if one.bare_type in TEXTS:
        return Column(one.name, "text", "text")
    if _words(one) is None:
        raise MoveError(
            f"is of type {one.data_type}, which cannot be moved",
            where=f"column {one.name}",
            next_step="leave the column out: name the others with --columns",
        )
    return Column(one.name, "text", "text", cast=True)


def select_expression(one: DescribedColumn, column: str) -> str:
    """Return the SQL expression that selects the value in the form in which it is moved."""
    words = _words(one) if column_of(one).cast else None
    return column if words is None else words.format(column)


def _words(one: DescribedColumn) -> str | None:
    if one.bare_type == "NUMBER":
        return "to_char({}, 'TM9')"
    if one.bare_type.startswith(("INTERVAL", "TIMESTAMP")):
        return "to_char({})"
    if one.bare_type.endswith("XMLTYPE"):
        return "{}.getclobval()"
    return TEXT_SQL.get(one.bare_type)
