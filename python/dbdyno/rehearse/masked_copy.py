"""Effects of a masked copy on a load: statements that look for masked values, and those that return masked values.

>>> from dbdyno.move.database.masks import read_masks
>>> masks = read_masks(["people.email = hash"])
>>> effect_of("select name from people where email = $1", masks)
('it looks for a value of people.email, which is masked on the new side', '')
>>> effect_of("select * from people where id = $1", masks)
('', 'it may return people.email, which is masked on the new side')
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.masks import Mask
from dbdyno.rehearse.sql_tree import parse_sql
from dbdyno.rehearse.statement import Load

_SIDE = "which is masked on the new side"
_VIEWS_SQL = """
with recursive over(oid) as (
    select r.ev_class from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attname = %(column)s
    join pg_catalog.pg_depend d on d.refobjid = c.oid and d.refobjsubid = a.attnum
    join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
    where c.relname = %(table)s and (%(schema)s::text is null or n.nspname = %(schema)s)
    union
    select r.ev_class from over o join pg_catalog.pg_depend d on d.refobjid = o.oid
    join pg_catalog.pg_rewrite r on r.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass)
select distinct c.relname::text from over join pg_catalog.pg_class c using (oid)
"""


def masked_load(load: Load, masks: Sequence[Mask], server: Postgres) -> Load:
    """Return a load without statements that look for masked values; no answer with masked values is compared."""
    views = _views(server, masks)
    statements = []
    for one in load.statements:
        left_out, uncompared = effect_of(one.text, masks, views)
        statements.append(replace(one, left_out=one.left_out or left_out, uncompared=uncompared))
    note = f"The new side is masked: {'; '.join(one.words for one in masks)}."
    return replace(load, statements=statements, notes=(*load.notes, note))


def effect_of(text: str, masks: Iterable[Mask], views: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Return why a statement cannot be rehearsed on a masked copy, and why its answers cannot be compared.

    Args:
        text: The statement.
        masks: The masked columns.
        views: Names of views that read a masked column, with that column.
    """
    tree = parse_sql(text)
    words = {word.lower() for word in re.findall(r"[^\W\d][\w$]*", text)}
    uncompared = next(
        (f"it reads {view}, a view of {_is(of)}" for view, of in (views or {}).items() if view in words), ""
    )
    for mask in masks:
        name = ".".join(mask.names[-2:])
        if tree is None:
            if mask.column.lower() in words:
                return f"it cannot be parsed, and may look for {_is(name)}", ""
            continue
        if mask.names[-2] not in _tables(tree):
            continue
        columns = _columns(tree, mask.column)
        if any(map(_looks_for_a_value, columns)):
            return f"it looks for a value of {_is(name)}", ""
        if columns or _returns_all(tree):
            uncompared = uncompared or f"it may return {_is(name)}"
    return "", uncompared


def _is(name: str) -> str:
    return f"{name}, {_SIDE}"


def _views(server: Postgres, masks: Iterable[Mask]) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.closing(server.connect()) as conn:
        for mask in masks:
            schema = mask.names[0] if len(mask.names) == 3 else None
            about = {"schema": schema, "table": mask.names[-2], "column": mask.column}
            for (view,) in conn.execute(_VIEWS_SQL, about):
                found.setdefault(view.lower(), ".".join(mask.names[-2:]))
    return found


def _tables(tree: Any) -> set[str]:
    from sqlglot import expressions as exp

    return {table.name for table in tree.find_all(exp.Table)}


def _columns(tree: Any, name: str) -> list[Any]:
    from sqlglot import expressions as exp

    return [one for one in tree.find_all(exp.Column) if one.name == name]


def _looks_for_a_value(column: Any) -> bool:
    """Return True if a column is compared with a literal or a parameter."""
    from sqlglot import expressions as exp

    condition = column.find_ancestor(exp.Predicate)
    is_assigned = isinstance(column.parent, exp.EQ) and isinstance(column.parent.parent, exp.Update)
    if condition is None or is_assigned:
        return False
    return condition.find(exp.Literal, exp.Placeholder, exp.Parameter) is not None


def _returns_all(tree: Any) -> bool:
    from sqlglot import expressions as exp

    return tree.find(exp.Star) is not None or (tree.find(exp.Returning) is not None)
