"""Mapping of PostgreSQL column types to Arrow types: the matching type where it holds every value, else text.

| PostgreSQL | in the file |
|---|---|
| boolean, smallint, integer, bigint, oid, real, double precision | the same |
| numeric(p, s) up to 38 digits | decimal(p, s) |
| date, time, timestamp, timestamptz | date32, time64(us), timestamp(us), timestamp(us, UTC) |
| text, varchar, char (with its padding), name, json, jsonb, uuid, enums | UTF-8 |
| bytea | binary |
| the rest: numeric without limits, interval, inet, arrays, ranges, composites, ... | UTF-8, as the server writes it |

A value that the Arrow type cannot hold (NaN in a decimal, an infinite date, 24:00:00) is never changed: the column is
read again as text. Each field records the SQL name of its type as `pg_type`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

DIGITS_MOST = 38
TEXTS = ("text", "varchar", "bpchar", "name", "json")
NATIVE = {
    **{name: name for name in ("bool", "int2", "int4", "int8", "oid", "float4", "float8", "date", "time")},
    **{name: name for name in ("timestamp", "timestamptz", "jsonb", "uuid", "bytea")},
    **dict.fromkeys(TEXTS, "text"),
}
_BASES = (
    *("bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "date", "time", "timetz", "timestamp"),
    *("timestamptz", "interval", "text", "varchar", "bpchar", "name", "json", "jsonb", "uuid", "bytea", "inet", "cidr"),
    *("macaddr", "macaddr8", "bit", "varbit", "point", "line", "lseg", "box", "path", "polygon", "circle", "tsvector"),
    *("pg_lsn", "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
    *("int4multirange", "int8multirange", "nummultirange", "tsmultirange", "tstzmultirange", "datemultirange"),
)
WIRE = frozenset([*_BASES, *(f"_{name}" for name in _BASES)])
"""Types whose binary form means the same on every PostgreSQL server: it contains no object ids and no locale."""
TYPES_SQL = """
with recursive base(oid, of, typmod, depth) as (
    select oid, oid, -1, 0 from pg_catalog.pg_type where oid = any(%s::oid[])
    union all
    select b.oid, t.typbasetype, t.typtypmod, b.depth + 1
    from base b join pg_catalog.pg_type t on t.oid = b.of where t.typtype = 'd'
)
select distinct on (b.oid) b.oid::bigint, t.typname::text, t.typtype::text, n.nspname::text, b.typmod, b.depth
from base b join pg_catalog.pg_type t on t.oid = b.of join pg_catalog.pg_namespace n on n.oid = t.typnamespace
order by b.oid, b.depth desc
"""
"""For each type: the base type below all its domains, and the typmod set by the last domain."""


@dataclass(frozen=True)
class Column:
    """Column of a source: the kind of its bytes, and whether the server casts it to text (`cast`)."""

    name: str
    kind: str
    pg_type: str
    precision: int = 0
    scale: int = 0
    cast: bool = False
    wire: str = ""
    """Type whose binary form another server accepts unchanged; empty if there is none."""
    mariadb_type: str = ""
    """MariaDB's column type, if the column comes from MariaDB."""
    mask: str = ""
    """Masking method for its values, with its constant (`mask_sql.py`); empty for none."""

    def to_json(self) -> dict[str, object]:
        """Return the column as a dictionary for the manifest."""
        return asdict(self)

    def spec(self) -> dict[str, object]:
        """Return the column as a dictionary for the Rust core."""
        given = {key: value for key, value in asdict(self).items() if key not in ("cast", "wire", "mask")}
        return {**given, "mariadb_type": self.mariadb_type or None}

    def as_text(self) -> Column:
        """Return the column changed to be read as text, as the server writes it."""
        return Column(self.name, "text", self.pg_type, cast=True, wire=self.wire)

    def as_sent(self) -> Column:
        """Return the column as it is sent to another server: its bytes unchanged where possible, else its text."""
        if self.mariadb_type:
            return self
        return Column(self.name, "text", self.pg_type, cast=not self.wire, wire=self.wire)


@dataclass(frozen=True)
class DescribedColumn:
    """Column as the catalog describes it."""

    name: str
    oid: int
    typmod: int
    pg_type: str


def typed_columns(
    described: Sequence[DescribedColumn], types: Iterable[Sequence[Any]], as_text: Iterable[str] = ()
) -> list[Column]:
    """Return a `Column` for each described column.

    Args:
        described: The columns.
        types: Rows of `TYPES_SQL`.
        as_text: Names of columns that are to be read as text.
    """
    known = {row[0]: row for row in types}
    texts = set(as_text)
    found = [_column(one, known) for one in described]
    return [one.as_text() if one.name in texts and one.kind not in ("text", "bytea") else one for one in found]


def _column(column: DescribedColumn, known: Mapping[int, Sequence[Any]]) -> Column:
    _, name, kind, schema, domain_typmod, depth = known[column.oid]
    typmod = domain_typmod if depth else column.typmod
    wire = name if schema == "pg_catalog" and name in WIRE else ""
    if kind == "e":
        return Column(column.name, "text", column.pg_type)
    if schema == "pg_catalog" and name == "numeric" and typmod >= 4:
        precision, scale = (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 1024) - 1024
        if precision <= DIGITS_MOST and 0 <= scale <= precision:
            return Column(column.name, "decimal", column.pg_type, precision, scale, wire=wire)
    if schema == "pg_catalog" and name in NATIVE:
        return Column(column.name, NATIVE[name], column.pg_type, wire=wire)
    return Column(column.name, "text", column.pg_type, cast=True, wire=wire)
