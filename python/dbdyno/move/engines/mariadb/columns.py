"""Mapping of MariaDB column types to Arrow types: the matching type where it holds every value, else text.

| MariaDB | in the file | recorded for PostgreSQL |
|---|---|---|
| tinyint, smallint, year, tinyint unsigned | int16 | smallint |
| mediumint, int, smallint unsigned | int32 | integer |
| bigint, int unsigned | int64 | bigint |
| bigint unsigned | decimal(20, 0) | numeric(20,0) |
| decimal(p, s) up to 38 digits | decimal(p, s) | numeric(p,s) |
| float, double | float32, float64: every bit | real, double precision |
| date, time, datetime, timestamp | date32, time64(us), timestamp(us), timestamp(us, UTC) | the same |
| char, varchar, text, enum, set, json, uuid, inet4, inet6 | UTF-8 | varchar, text, json, uuid, inet |
| bit(n) | UTF-8: n binary digits | bit(n) |
| binary, varbinary, blob | binary | bytea |
| geometry | binary: WKB, without its SRID | bytea |

A column that holds a value its Arrow type cannot represent (a zero date, a time below 0 or beyond 24 h) is read as
text, as the server writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.move.engines.mariadb.sql import quote_name
from dbdyno.move.engines.postgres.columns import DIGITS_MOST, Column

GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    "geometrycollection",
)
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
WHOLE = {
    "tinyint": ("int2", "smallint", "int2", "smallint"),
    "smallint": ("int2", "smallint", "int4", "integer"),
    "mediumint": ("int4", "integer", "int4", "integer"),
    "int": ("int4", "integer", "int8", "bigint"),
    "bigint": ("int8", "bigint", "decimal", "numeric(20,0)"),
}
"""Integer types: (kind, PostgreSQL type) if signed, followed by (kind, PostgreSQL type) if unsigned."""
PLAIN = {
    "float": ("float4", "real"),
    "double": ("float8", "double precision"),
    "year": ("int2", "smallint"),
    "date": ("date", "date"),
    **dict.fromkeys((*GEOMETRIES, *BYTES), ("bytea", "bytea")),
}
MOMENTS = {"time": "time", "datetime": "timestamp", "timestamp": "timestamptz"}
OTHERS = {"uuid": "uuid", "inet4": "inet", "inet6": "inet"}
WIRES = {"decimal": "numeric"}
AS_TEXT = {"time": "interval"}
"""PostgreSQL type, by kind, of a column that is read as text because of its values; `text` for other kinds."""
UNSIGNED, BINARY = 32, 63
_CODES = {
    0: "decimal",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    14: "date",
    16: "bit",
    246: "decimal",
    247: "text",
    248: "text",
    249: "text",
    250: "text",
    251: "text",
    252: "text",
    253: "text",
    254: "text",
    255: "geometry",
}
"""MariaDB type names by the column type code of the wire protocol."""
_DIGITS = re.compile(r"\((\d+)\)")


def typed_columns(rows: Iterable[Mapping[str, Any]], as_text: Sequence[str] = ()) -> list[Column]:
    """Return a `Column` for each described column.

    Args:
        rows: Rows of information_schema.columns, each with an additional `is_json`.
        as_text: Names of columns that are to be read as text.
    """
    found = [_column(row) for row in rows]
    return [text_of(one) if one.name in as_text else one for one in found]


def text_of(column: Column) -> Column:
    """Return the column, changed to be read as the server's text; unchanged if it is text or bytes already."""
    if column.kind in ("text", "bytea"):
        return column
    pg_type = AS_TEXT.get(column.kind, "text")
    return Column(column.name, "text", pg_type, cast=True, wire="text", mariadb_type=column.mariadb_type)


def _column(row: Mapping[str, Any]) -> Column:
    name, kind, declared = row["column_name"], row["data_type"].lower(), row["column_type"].lower()
    made = _known_column(kind, declared, row)
    return replace(
        made,
        name=name,
        wire=made.wire or WIRES.get(made.kind, made.kind),
        mariadb_type="json" if row.get("is_json") else row["column_type"],
    )


def _known_column(kind: str, declared: str, row: Mapping[str, Any]) -> Column:
    if kind in WHOLE:
        held, pg_type = WHOLE[kind][2:] if "unsigned" in declared else WHOLE[kind][:2]
        return Column("", held, pg_type, precision=20 if held == "decimal" else 0)
    if kind in ("decimal", "numeric"):
        return _decimal(int(row["numeric_precision"]), int(row["numeric_scale"]))
    if kind in PLAIN:
        return Column("", *PLAIN[kind])
    if kind in MOMENTS:
        return Column("", MOMENTS[kind], f"{MOMENTS[kind]}({int(row['datetime_precision'] or 0)})")
    if kind in TEXTS:
        length = _DIGITS.search(declared) if kind in ("char", "varchar") else None
        pg_type = f"varchar({length[1]})" if length else "json" if row.get("is_json") else "text"
        return Column("", "text", pg_type)
    width = _DIGITS.search(declared)
    pg_type = f"bit({width[1] if width else 1})" if kind == "bit" else OTHERS.get(kind, "text")
    return Column("", "text", pg_type, cast=True)


def _decimal(precision: int, scale: int) -> Column:
    pg_type = f"numeric({precision},{scale})"
    if precision <= DIGITS_MOST:
        return Column("", "decimal", pg_type, precision, scale)
    return Column("", "text", pg_type, cast=True)


def column_row(field: Any) -> JsonObject:
    """Return a result column's description from the driver's packet as a row of information_schema.columns."""
    code, unsigned, binary = field.type_code, bool(field.flags & UNSIGNED), field.charsetnr == BINARY
    kind = _CODES.get(code, "text")
    if kind in ("text", "varchar", "char") and binary:
        kind = "blob"
    digits = max(field.length - (field.scale > 0) - (not unsigned), 1)
    width = {"bit": f"({field.length})"}.get(kind, "")
    return {
        "column_name": field.name,
        "data_type": kind,
        "column_type": f"{kind}{width}{' unsigned' if unsigned else ''}",
        "numeric_precision": digits,
        "numeric_scale": field.scale,
        "datetime_precision": field.scale if field.scale <= 6 else 6,
        "is_json": False,
    }


def select_expression(column: Column, alias: str) -> str:
    """Return the SQL expression that selects the column in the form in which it is moved."""
    name = quote_name(alias, column.name)
    kind = (column.mariadb_type or "").split("(")[0].split(" ")[0].lower()
    if kind == "bit":
        width = _DIGITS.search(column.mariadb_type)
        return f"lpad(bin({name}), {width[1] if width else 1}, '0')"
    if kind in GEOMETRIES:
        return f"st_aswkb({name})"
    return f"cast({name} as char)" if column.cast else name
