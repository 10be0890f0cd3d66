"""Columns whose values are masked while they are moved: `people.email = hash`.

Masks that the target could not store are refused before anything is written: NULL in a NOT NULL column, hashes of
numbers that must be unique, a mask on only one side of a foreign key, a mask on a partition key. A mask on a
partitioned table applies to all its partitions.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.move.database.inventory import Inventory
from dbdyno.move.engines.postgres.mask_sql import METHODS
from dbdyno.move.engines.postgres.source import Snapshot

_NAME = r'(?:"(?:[^"]|"")+"|[^\s."=]+)'
_MASK = re.compile(rf"\s*((?:{_NAME}\.){{1,2}}{_NAME})\s*=\s*([a-z-]+)(?:\s*:(.*)|\s*)", re.I | re.S)
_PART = re.compile(_NAME)
_WRITE = "write it as --mask 'people.email = hash', or 'schema.table.column = null'"
_WRITE_CONSTANT = "write it as --mask 'people.note = constant:redacted'; the other methods take no value"
OLDEST = 110000
"""First version of PostgreSQL with the hash function of the masks."""
_TABLES_SQL = """
select c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
"""
_COLUMNS_SQL = """
with recursive base(oid, of) as (
    select oid, oid from pg_catalog.pg_type union all
    select b.oid, t.typbasetype from base b join pg_catalog.pg_type t on t.oid = b.of where t.typtype = 'd')
select a.attname::text, a.attnum,
    case when t.typnamespace = 'pg_catalog'::regnamespace or t.typname = 'citext' then t.typname::text else '' end,
    a.attnotnull, a.attgenerated::text,
    format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_attribute a join base b on b.oid = a.atttypid
join pg_catalog.pg_type t on t.oid = b.of and t.typtype <> 'd'
where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
_UNDER_SQL = """
with recursive under(oid) as (
    select %s::oid union select i.inhrelid from pg_catalog.pg_inherits i join under u on i.inhparent = u.oid)
select oid::bigint from under
"""
_UNIQUE_SQL = """
select i.indexrelid::regclass::text, i.indnkeyatts from pg_catalog.pg_index i
where i.indrelid = %s::oid and i.indisunique and %s = any(i.indkey::int2[])
"""
_CONSTRAINTS_SQL = """
select conname::text, contype::text, conrelid::bigint, confrelid::bigint, conkey::int2[], confkey::int2[],
    conrelid::regclass::text, confrelid::regclass::text
from pg_catalog.pg_constraint
where contype = 'c' and conrelid = %(oid)s::oid and %(number)s = any(conkey)
   or contype = 'f' and (conrelid = %(oid)s::oid and %(number)s = any(conkey)
                         or confrelid = %(oid)s::oid and %(number)s = any(confkey))
"""
_PARTITIONED_SQL = """
select 1 from pg_catalog.pg_partitioned_table p where p.partrelid = %s::oid
  and (%s = any(p.partattrs::int2[]) or p.partexprs is not null)
"""


@dataclass(frozen=True)
class Mask:
    """A column and its masking method, as the user wrote them."""

    words: str
    names: tuple[str, ...]
    method: str
    constant: str | None = None

    @property
    def column(self) -> str:
        """Return the column's name."""
        return self.names[-1]

    @property
    def method_text(self) -> str:
        """Return the method with its constant, as stored in a moved column's `mask`."""
        return self.method if self.constant is None else f"{self.method}:{self.constant}"


@dataclass(frozen=True)
class _Masked:
    """A mask and its column in the catalog."""

    mask: Mask
    oid: int
    number: int
    base: str
    pg_type: str


def read_masks(given: Iterable[str]) -> tuple[Mask, ...]:
    """Return the masks from the user's texts.

    Raises:
        MoveError: A text is not a mask, has an unknown method, or names a column a second time.
    """
    masks: dict[tuple[str, ...], Mask] = {}
    for words in given:
        found = _MASK.fullmatch(words)
        if found is None:
            raise MoveError("is not a mask", where=f"--mask {words}", next_step=_WRITE)
        method = found[2].lower()
        if method not in METHODS:
            raise MoveError(
                f"there is no mask method {method!r}",
                where=f"--mask {words}",
                next_step=f"use one of: {', '.join(METHODS)}",
            )
        constant = None if found[3] is None else found[3].strip()
        if (method == "constant") != (constant is not None):
            says = "constant needs a value" if constant is None else f"{method} takes no value"
            raise MoveError(says, where=f"--mask {words}", next_step=_WRITE_CONSTANT)
        names = tuple(fold_name(part) for part in _PART.findall(found[1]))
        if names in masks:
            raise MoveError(
                "masks a column that another --mask already masks",
                where=f"--mask {words}",
                next_step="leave one of the two masks out",
            )
        masks[names] = Mask(words.strip(), names, method, constant)
    return tuple(masks.values())


def apply_masks(snapshot: Snapshot, inventory: Inventory, masks: Sequence[Mask]) -> Inventory:
    """Return the inventory with masked columns and with notes on objects that the masks may break.

    The snapshot's tables are masked, too.

    Raises:
        MoveError: A mask names no column that can be masked, or the target could not store the masked values.
    """
    conn = snapshot.conn
    if masks and conn.info.server_version < OLDEST:
        raise MoveError(
            "masks need PostgreSQL 11 or newer as the source",
            where="--mask",
            next_step="use a newer source server, or leave --mask out",
        )
    found = [_resolve(conn, one) for one in masks]
    notes = [note for one in found for note in _check(conn, one, found)]
    methods: dict[tuple[int, str], str] = {}
    for one in found:
        for (oid,) in conn.execute(_UNDER_SQL, [one.oid]):
            methods[oid, one.mask.column] = one.mask.method_text
    tables = tuple(
        replace(
            table,
            columns=tuple(
                replace(one, mask=methods.get((table.relations[0].oid, one.name), "")) for one in table.columns
            ),
        )
        for table in inventory.tables
    )
    if masks and inventory.facts.large_objects:
        notes.append("large objects are copied unchanged: masks apply to columns only")
    snapshot.tables = list(tables)
    words = tuple(one.words for one in masks)
    return replace(inventory, tables=tables, masks=words, mask_notes=tuple(notes))


def fold_name(name: str) -> str:
    """Return a name without its quotes, or in lower case if it has none, as the server reads it."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _resolve(conn: psycopg.Connection[Any], mask: Mask) -> _Masked:
    where = f"--mask {mask.words}"
    tables = conn.execute(_TABLES_SQL).fetchall()
    wanted = mask.names[:-1]
    fits = [row for row in tables if (row[1:3] if len(wanted) == 2 else row[2:3]) == wanted]
    if not fits:
        names = [".".join(row[3 - len(wanted) : 3]) for row in tables]
        near = difflib.get_close_matches(".".join(wanted), names, 3)
        step = f"did you mean {' or '.join(near)}?" if near else _WRITE
        raise MoveError(f"there is no table {'.'.join(wanted)}", where=where, next_step=step)
    if len(fits) > 1:
        names = [f"{row[1]}.{row[2]}" for row in fits]
        raise MoveError(
            f"the name is ambiguous; tables with this name: {', '.join(names)}",
            where=where,
            next_step="write the schema before the table, as in schema.table.column",
        )
    oid, schema, name, kind = fits[0]
    if kind not in ("r", "p"):
        raise MoveError(
            f"{schema}.{name} has no rows of its own that could be masked",
            where=where,
            next_step="mask the table that holds the rows",
        )
    columns = conn.execute(_COLUMNS_SQL, [oid]).fetchall()
    row = next((one for one in columns if one[0] == mask.column), None)
    if row is None:
        raise MoveError(
            f"{schema}.{name} has no column {mask.column}",
            where=where,
            next_step=f"name one of its columns: {', '.join(one[0] for one in columns[:20])}",
        )
    _, number, base, is_required, generated, pg_type = row
    if generated:
        raise MoveError(
            "the column cannot be masked: the server computes it from other columns",
            where=where,
            next_step="mask the columns it is computed from",
        )
    _refuse_type(mask, where, base, pg_type, is_required=is_required)
    _refuse_constant(conn, mask, where, pg_type)
    return _Masked(mask, oid, number, base, pg_type)


def _refuse_type(mask: Mask, where: str, base: str, pg_type: str, *, is_required: bool) -> None:
    types = METHODS[mask.method]
    if types is not None and base not in types:
        fitting = [name for name, one in METHODS.items() if one is None or base in one]
        raise MoveError(
            f"{mask.method} does not support the type {pg_type}",
            where=where,
            next_step=f"use one of: {', '.join(fitting)}",
        )
    if mask.method == "null" and is_required:
        raise MoveError(
            "the method null cannot be used: the column is NOT NULL",
            where=where,
            next_step="use hash, keep-length or constant:VALUE",
        )


def _refuse_constant(conn: psycopg.Connection[Any], mask: Mask, where: str, pg_type: str) -> None:
    """Raise an error for a constant that the column's type does not accept."""
    if mask.constant is None:
        return
    try:
        conn.execute(sql.SQL("select {}::" + pg_type).format(mask.constant))  # quoted by the server
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        step = f"write a value of the type {pg_type} after constant:"
        raise MoveError(f"the server refused the constant: {said}", where=where, next_step=step) from None


def _check(conn: psycopg.Connection[Any], masked_column: _Masked, masked_columns: Sequence[_Masked]) -> list[str]:
    """Return the objects that a mask may break, as sentences.

    Raises:
        MoveError: The mask would break a unique key, a foreign key or the partitioning of the table.
    """
    where, method = f"--mask {masked_column.mask.words}", masked_column.mask.method
    if conn.execute(_PARTITIONED_SQL, [masked_column.oid, masked_column.number]).fetchone():
        raise MoveError(
            "the table is partitioned by this column: masked rows would belong to other partitions",
            where=where,
            next_step="mask other columns",
        )
    notes = []
    for index, width in conn.execute(_UNIQUE_SQL, [masked_column.oid, masked_column.number]).fetchall():
        if width == 1 and (
            method in ("year", "constant") or (method == "hash" and masked_column.base.startswith("int"))
        ):
            raise MoveError(
                f"the values of the column must be unique ({index}), and {method} produces equal values",
                where=where,
                next_step="leave the mask out if the values are numbers without meaning, or use null if the column "
                "is not part of a key",
            )
        if method == "constant":
            notes.append(f"{index} is unique: rows that differ only in {masked_column.mask.column} end the move")
        if method == "keep-length":
            notes.append(
                f"{index} is unique: short values of {masked_column.mask.column} may become equal, which ends the move"
            )
    constraints = conn.execute(_CONSTRAINTS_SQL, {"oid": masked_column.oid, "number": masked_column.number}).fetchall()
    for name, kind, *row in constraints:
        if kind == "c":
            notes.append(
                f"the check constraint {name} names {masked_column.mask.column}: a value that breaks it ends the move"
            )
        else:
            _refuse_half(masked_column, name, row, masked_columns)
    return notes


def _refuse_half(masked_column: _Masked, name: str, row: Sequence[Any], masked_columns: Sequence[_Masked]) -> None:
    """Raise an error for a mask on only one side of a foreign key, unless it removes the reference."""
    oid, to_oid, numbers, to_numbers, table, to_table = row
    known = {(other.oid, other.number): (other.mask.method_text, other.base) for other in masked_columns}
    for number, to_number in zip(numbers, to_numbers, strict=True):
        side, other = known.get((oid, number)), known.get((to_oid, to_number))
        if (oid, number) != (masked_column.oid, masked_column.number) and (to_oid, to_number) != (
            masked_column.oid,
            masked_column.number,
        ):
            continue
        if side != other and (side is None or side[0] != "null"):
            raise MoveError(
                f"{name} is a foreign key of {table} to {to_table}: both sides need the same mask",
                where=f"--mask {masked_column.mask.words}",
                next_step="mask the column of the other table with the same method",
            )
