"""INSERT, UPDATE and DELETE on a mapped table as CQL, with sentences on what Cassandra does not guarantee.

The rows to write are first queried by a SELECT over the map, so any condition and expression is possible, and an UPDATE
changes only existing rows. Each row is then written by its whole key. This is not a transaction: others may write
between the query and the write, and the last write wins.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.base.sql_text import quoted
from dbdyno.wide.address import Address, failure, open_session
from dbdyno.wide.answer import Answer
from dbdyno.wide.catalog import CLUSTERING, PARTITION, WideTable
from dbdyno.wide.mapping import ELEMENT, PARENT, Relation, WideMap
from dbdyno.wide.pushdown import quote_cql
from dbdyno.wide.query_analysis import DIALECT, parse_statement
from dbdyno.wide.types import Kind

AT_ONCE = 64
LAST_WRITE_WINS = "the last write to a cell wins"
LIMITS = {
    "insert": "an existing row is changed, not refused (Cassandra checks no key unless each row is written"
    " by a lightweight transaction), and no foreign key is checked",
    "update": f"rows were read, then written one by one: no transaction, and {LAST_WRITE_WINS}",
    "delete": "deleted rows stay as tombstones until compaction; a replica that was down and is not repaired within"
    " gc_grace_seconds brings them back",
    "element": "a collection is read completely before it is shown: use clustering columns for long ones",
}


@dataclass(frozen=True)
class Change:
    """A change of rows: the SELECT that yields the values, the CQL that writes them, and the type of each value."""

    verb: str
    relation: Relation
    select: str
    cql: str
    kinds: tuple[Kind, ...]
    promises: tuple[str, ...]


def is_change(text: str) -> bool:
    """Return True if the text is an INSERT, UPDATE or DELETE."""
    from sqlglot import exp

    return isinstance(parse_statement(text), exp.Insert | exp.Update | exp.Delete)


def translate_change(text: str, wide_map: WideMap, *, cascade: bool = False) -> Change:
    """Translate a statement into a change; `cascade` permits deleting a parent with all its rows.

    Raises:
        WideError: Cassandra cannot make this change.
    """
    from sqlglot import exp

    tree = parse_statement(text)
    relation = _relation(tree, wide_map)
    table = wide_map.tables[relation.of]
    if tree.args.get("returning") or tree.args.get("conflict") or tree.args.get("with_") or tree.args.get("with"):
        raise WideError("RETURNING, ON CONFLICT and WITH are not supported", next_step="write a plain statement")
    if isinstance(tree, exp.Insert):
        return _insert(tree, relation, table)
    if relation.rows == ELEMENT:
        raise WideError(
            f"rows of {relation.name} cannot be changed: they are elements of {table.name}.{relation.element}",
            next_step=f"add an element with INSERT; to change or remove one, write the whole value of "
            f"{relation.element} in cqlsh",
        )
    if isinstance(tree, exp.Update):
        return _update(tree, relation, table)
    return _delete(tree, relation, table, cascade=cascade)


def _relation(tree: Any, wide_map: WideMap) -> Relation:
    from sqlglot import exp

    place = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    relation = wide_map.relation(place.name) if isinstance(place, exp.Table) else None
    if relation is None or tree.args.get("from_") or tree.args.get("using") or place.args.get("joins"):
        names = ", ".join(one.name for one in wide_map.relations)
        raise WideError("expected a statement on one table of the map", next_step=f"name one of: {names}")
    return relation


def _key(relation: Relation, table: WideTable) -> list[str]:
    """Return the Cassandra columns that identify a row of the SQL table."""
    roles = (
        (PARTITION,) if relation.rows == PARENT and table.columns_with_roles(CLUSTERING) else (PARTITION, CLUSTERING)
    )
    if relation.rows == ELEMENT:
        roles = (PARTITION,) if table.column(relation.element).role == "static" else roles  # type: ignore[union-attr]
    return [one.name for one in table.columns_with_roles(*roles)]


def _insert(tree: Any, relation: Relation, table: WideTable) -> Change:
    from sqlglot import exp

    names = [one.name for one in tree.this.expressions] if isinstance(tree.this, exp.Schema) else None
    chosen = [relation.column(name) for name in names] if names else list(relation.columns)
    if any(one is None for one in chosen):
        lost = next(name for name, one in zip(names or [], chosen, strict=True) if one is None)
        raise WideError(f"has no column {lost!r}", where=relation.name, next_step="name a column of the map")
    of = [one.of for one in chosen if one is not None]
    missing = [name for name in _key(relation, table) if name not in of]
    if missing:
        raise WideError(
            f"a row needs its whole key; missing: {', '.join(missing)}",
            where=relation.name,
            next_step="give values for all columns of the key; Cassandra does not generate keys",
        )
    select = tree.expression.sql(DIALECT)
    if relation.rows == ELEMENT:
        return _insert_element(relation, table, of, select)
    marks = ", ".join("?" for _ in of)
    cql = f"insert into {quote_cql(table.name)} ({', '.join(map(quote_cql, of))}) values ({marks})"  # noqa: S608
    return Change("insert", relation, select, cql, _kinds(table, of), (LIMITS["insert"],))


def _insert_element(relation: Relation, table: WideTable, of: Sequence[str], select: str) -> Change:
    column = table.column(relation.element)
    assert column is not None
    kind, key, name = column.kind, _key(relation, table), quote_cql(relation.element)
    parts = [one for one in of if one.startswith("@")]
    takes = {"set": ["@value"], "map": ["@key", "@value"], "list": ["@value"]}.get(kind.name)
    if kind.frozen or takes is None or parts != takes or of != [*key, *takes]:
        raise WideError(
            f"{relation.element} is {'frozen' if kind.frozen else kind.name}: an element can be added only to "
            f"a set, a map or the end of a list, and the columns of the key must come first",
            where=relation.name,
            next_step="give columns " + ", ".join([*key, *(takes or [])]) + ", or write the whole value in cqlsh",
        )
    where = " and ".join(f"{quote_cql(one)} = ?" for one in key)
    change_of = {"set": f"{name} = {name} + ?", "map": f"{name}[?] = ?", "list": f"{name} = {name} + ?"}[kind.name]
    cql = f"update {quote_cql(table.name)} set {change_of} where {where}"  # noqa: S608
    kinds = (*kind.parts,) if kind.name == "map" else (kind,)
    moved = "select {} from ({}) as t({})"
    inner = [f"c{at}" for at in range(len(of))]
    order = [*inner[len(key) :], *inner[: len(key)]]
    turned = moved.format(", ".join(order), select, ", ".join(inner))
    return Change("insert", relation, turned, cql, (*kinds, *_kinds(table, key)), (LIMITS["insert"], LIMITS["element"]))


def _update(tree: Any, relation: Relation, table: WideTable) -> Change:
    key = _key(relation, table)
    sets, values = [], []
    for one in tree.expressions:
        column = relation.column(one.this.name)
        if column is None:
            raise WideError(
                f"has no column {one.this.name!r}", where=relation.name, next_step="name a column of the map"
            )
        if column.of in key:
            raise WideError(
                f"{column.name} is part of the key, which Cassandra cannot change",
                where=relation.name,
                next_step="INSERT the row under its new key, then DELETE the old one",
            )
        sets.append(column.of)
        values.append(one.expression.sql(DIALECT))
    where = tree.args.get("where")
    names = [_in_sql(relation, one) for one in key]
    select = f"select {', '.join([*values, *names])} from {quoted(relation.name)}"  # noqa: S608
    select += f" {where.sql(DIALECT)}" if where is not None else ""
    cql = f"update {quote_cql(table.name)} set {', '.join(f'{quote_cql(one)} = ?' for one in sets)}"  # noqa: S608
    cql += " where " + " and ".join(f"{quote_cql(one)} = ?" for one in key)
    return Change("update", relation, select, cql, _kinds(table, [*sets, *key]), (LIMITS["update"],))


def _delete(tree: Any, relation: Relation, table: WideTable, *, cascade: bool) -> Change:
    key = _key(relation, table)
    whole = relation.rows == PARENT and bool(table.columns_with_roles(CLUSTERING))
    if whole and not cascade:
        raise WideError(
            f"deleting a row of {relation.name} also deletes all rows of {table.name} in its partition",
            where=relation.name,
            next_step="add --cascade to delete all of them, or UPDATE the parent's columns to NULL to clear "
            "only the parent",
        )
    where = tree.args.get("where")
    names = ", ".join(_in_sql(relation, one) for one in key)
    select = f"select {names} from {quoted(relation.name)}{' ' + where.sql(DIALECT) if where is not None else ''}"  # noqa: S608
    cql = f"delete from {quote_cql(table.name)} where {' and '.join(f'{quote_cql(one)} = ?' for one in key)}"  # noqa: S608
    return Change("delete", relation, select, cql, _kinds(table, key), (LIMITS["update"], LIMITS["delete"]))


def _in_sql(relation: Relation, of: str) -> str:
    column = relation.column_of_source(of)
    if column is None:
        raise WideError(
            f"the map of {relation.name} leaves out {of}, which is part of the key",
            next_step="add the column to the map",
        )
    return quoted(column.name)


def _kinds(table: WideTable, of: Sequence[str]) -> tuple[Kind, ...]:
    return tuple(column.kind for name in of if (column := table.column(name)) is not None)


def execute_change(address: Address, wide_map: WideMap, change: Change, file: str) -> int:
    """Write the rows and return their number.

    Raises:
        WideError: Some rows were not written; the message says how many.
    """
    with Answer(address, wide_map, change.select, file) as answer:
        rows = list(answer.rows())
        wide = len(answer.names)
    if wide != len(change.kinds):
        raise WideError(
            f"expected {len(change.kinds)} values, found {wide}",
            where=change.relation.name,
            next_step=f"give {len(change.kinds)} values in each row",
        )
    values = [tuple(bound_value(kind, value) for kind, value in zip(change.kinds, row, strict=True)) for row in rows]
    from cassandra.concurrent import execute_concurrent_with_args

    with open_session(address) as session:
        prepared = session.prepare(change.cql)
        # Adding to a list twice adds the element twice, so only other changes may be retried.
        prepared.is_idempotent = change.kinds[0].name != "list"
        results = execute_concurrent_with_args(
            session, prepared, values, concurrency=AT_ONCE, raise_on_first_error=False
        )
        failed = [result for done, result in results if not done]
    if failed:
        made = failure(failed[0], address.safe)
        raise WideError(
            f"{len(failed):,} of {len(rows):,} rows were not written: {made.message}",
            where=made.where,
            next_step=made.next_step,
        )
    return len(rows)


def bound_value(kind: Kind, value: Any) -> Any:
    """Return DuckDB's value in the form that the driver accepts for this type."""
    if value is None:
        return None
    if kind.name in ("uuid", "timeuuid") and isinstance(value, str):
        return uuid.UUID(value)
    if kind.name in ("tinyint", "smallint", "int", "bigint", "varint", "counter") and isinstance(value, Decimal):
        return int(value)
    if kind.name in ("text", "ascii", "varchar", "decimal") and type(value) in (int, float, str, Decimal):
        return (Decimal if kind.name == "decimal" else str)(str(value))  # as SQL casts it
    if kind.name in ("set", "list"):
        inner = bound_value(kind.parts[0], value)
        return {inner} if kind.name == "set" else [inner]
    return value
