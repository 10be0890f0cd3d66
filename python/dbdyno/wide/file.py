"""The map's TOML file: written with explanations for those who edit it, read with the position of any error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.base.files import parse_toml, user_file_text
from dbdyno.wide.mapping import (
    CHILD,
    ELEMENT,
    PARENT,
    VERSION,
    Key,
    MappedColumn,
    Relation,
    WideMap,
    as_dict,
    default_type,
)
from dbdyno.wide.types import DECIMAL, SQL_TYPES

HEAD = """\
# Wide tables of keyspace {keyspace} as SQL tables. Rename tables, columns and keys as you like; leave out what you
# do not need. A column may have another type: {{ of = "amount", type = "decimal(38,2)" }}. Read with:
#   dbdyno wide sql "select ..." --map THIS_FILE --target cassandra://host/{keyspace}
"""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_KEYS = {"of", "rows", "element", "primary_key", "foreign_key", "columns"}
_TYPES = frozenset(SQL_TYPES.values())


def to_toml(wide_map: WideMap) -> str:
    """Return the map as TOML."""
    lines = [HEAD.format(keyspace=wide_map.keyspace), f"version = {VERSION}", f"keyspace = {_text(wide_map.keyspace)}"]
    for relation in wide_map.relations:
        lines += ["", *_relation_lines(relation, wide_map)]
    return "\n".join(lines) + "\n"


def _relation_lines(relation: Relation, wide_map: WideMap) -> Iterator[str]:
    name = _name(relation.name)
    yield f"[table.{name}]"
    yield f"of = {_text(relation.of)}"
    yield f"rows = {_text(relation.rows)}"
    if relation.element:
        yield f"element = {_text(relation.element)}"
    yield f"primary_key = {_key(relation.primary_key)}"
    if relation.foreign_key is not None:
        yield f"foreign_key = {_key(relation.foreign_key)}"
    yield f"[table.{name}.columns]"
    for column in relation.columns:
        if column.sql == default_type(relation, column.of, wide_map.tables):
            yield f"{_name(column.name)} = {_text(column.of)}"
        else:
            yield f"{_name(column.name)} = {{ of = {_text(column.of)}, type = {_text(column.sql)} }}"


def _key(key: Key) -> str:
    columns = ", ".join(_text(one) for one in key.columns)
    up = f", references = {_text(key.references)}" if key.references else ""
    return f"{{ name = {_text(key.name)}, columns = [{columns}]{up} }}"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _name(value: str) -> str:
    return value if _BARE.fullmatch(value) else _text(value)


def read(path: Path) -> WideMap:
    """Read a map that is not yet checked against its keyspace; types that it does not name are left empty.

    Raises:
        WideError: The file cannot be read or is not a valid map.
    """
    text = user_file_text(path, WideError, next_step="write one with `dbdyno wide map`")
    given = parse_toml(text, path, WideError, next_step="correct the file at this place")
    where = str(path)
    if given.get("version") != VERSION:
        raise WideError(f"has no version = {VERSION}", where=where, next_step="write one with `dbdyno wide map`")
    keyspace = _string(given.get("keyspace"), f"{where}: keyspace")
    tables = as_dict(given.get("table", {}), f"{where}: table")
    if not tables:
        raise WideError("maps no table", where=where, next_step="write a complete map with `dbdyno wide map`")
    relations = tuple(_relation(name, one, f"{where}: table.{name}") for name, one in tables.items())
    names = [one.name.lower() for one in relations]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise WideError(
            f"two tables have the name {twice!r} (SQL ignores case)", where=where, next_step="rename one of the two"
        )
    return WideMap(keyspace, relations)


def _relation(name: str, value: Any, where: str) -> Relation:
    given = as_dict(value, where)
    odd = next((key for key in given if key not in _KEYS), None)
    if odd is not None:
        raise WideError(
            f"has the unknown key {odd!r}", where=where, next_step=f"use only the keys {', '.join(sorted(_KEYS))}"
        )
    rows = _string(given.get("rows"), f"{where}.rows")
    if rows not in (PARENT, CHILD, ELEMENT):
        raise WideError(
            f"is {rows!r}, expected parent, child or element",
            where=f"{where}.rows",
            next_step='write "parent", "child" or "element"',
        )
    element = _string(given.get("element"), f"{where}.element") if rows == ELEMENT else ""
    columns = as_dict(given.get("columns"), f"{where}.columns")
    mapped = tuple(_mapped_column(column, one, f"{where}.columns.{column}") for column, one in columns.items())
    twice = next((one for one in mapped if sum(other.name.lower() == one.name.lower() for other in mapped) > 1), None)
    if twice is not None:
        raise WideError(
            f"two columns are named {twice.name!r}", where=f"{where}.columns", next_step="rename one of the two"
        )
    if not mapped:
        raise WideError("has no columns", where=f"{where}.columns", next_step="give the table columns, or leave it out")
    primary = _read_key(given.get("primary_key"), f"{where}.primary_key")
    up = given.get("foreign_key")
    foreign = _read_key(up, f"{where}.foreign_key") if up is not None else None
    of = _string(given.get("of"), f"{where}.of")
    return Relation(name, of, rows, mapped, primary, foreign, element)


def _mapped_column(name: str, value: Any, where: str) -> MappedColumn:
    if isinstance(value, str):
        return MappedColumn(name, value, "")
    given = as_dict(value, where)
    kind = str(given.get("type", "")).lower()
    found = DECIMAL.fullmatch(kind)
    if set(given) - {"of", "type"} or (kind and kind not in _TYPES and not found):
        kinds = ", ".join(sorted(one for one in _TYPES if "(" not in one))
        raise WideError(
            "expected { of = ..., type = ... }", where=where, next_step=f"use one of the types {kinds}, decimal(P,S)"
        )
    if found and not (0 < int(found[1]) <= 38 and int(found[2]) <= int(found[1])):
        raise WideError(
            f"expected a decimal type, found {kind}", where=where, next_step="write a type such as decimal(38,10)"
        )
    return MappedColumn(name, _string(given.get("of"), f"{where}.of"), kind)


def _read_key(value: Any, where: str) -> Key:
    given = as_dict(value, where)
    columns = given.get("columns")
    if not isinstance(columns, list) or not columns or not all(isinstance(one, str) for one in columns):
        raise WideError("has no list of columns", where=where, next_step='write { name = "pk", columns = ["id"] }')
    up = given.get("references", "")
    return Key(_string(given.get("name"), f"{where}.name"), tuple(columns), str(up))


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise WideError(
            f"must be text, found {value!r}",
            where=where,
            next_step="compare with the map that `dbdyno wide map` writes",
        )
    return value
