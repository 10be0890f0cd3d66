"""The tables that a statement can reach, according to its text and the catalog.

A statement reaches the tables that its text names, and those behind views, foreign keys, triggers and user-defined
functions. The text is parsed by sqlglot; if that fails, all of its words count as names. Statements inside a function
or a trigger are not known, so a user-defined function or trigger may reach any table. If a store was written by an
earlier version that did not read the catalog, nothing is excluded.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import cast

from dbdyno.base.sections import Row
from dbdyno.snapshot.causes.change import Change, Key, Pair
from dbdyno.snapshot.reading.statement_names import Names, names_of

WRITE = re.compile(r"\s*(?:insert|update|delete|merge)\b", re.I)
_VIEWS = ("pg_constraint", "pg_trigger", "pg_rewrite", "pg_proc")


@dataclass(frozen=True, slots=True)
class AccessPath:
    """How a statement reaches a table that its text does not name.

    Attributes:
        kind: `foreign key`, `trigger`, `view` or `function`; empty if not known.
        name: The name of that object.
        lacks: The columns of a foreign key without an index, as text; empty if there is an index.
    """

    kind: str
    name: str
    lacks: str = ""


def access_path(change: Change, number: Key, table: Hashable) -> AccessPath | None:
    """Return how a statement reaches a table that its text does not name, or None if it cannot."""
    one = change.statements[number]
    known = change.compute_once("catalog", lambda: _catalog(change))
    if known is None:
        return AccessPath("", "")
    named = names_of(one.text)
    found = [
        *_by_foreign_keys(change, known, one, named, table),
        *_by_triggers(change, known, one, named, table),
        *(
            AccessPath("view", row["name"])
            for row in known["pg_rewrite"]
            if _is(row, "relid", table) and _named(row, named)
        ),
        *(AccessPath("function", row["name"]) for row in known["pg_proc"] if _short(row["name"]) in named.functions),
    ]
    return next(iter(found), None)


def _catalog(change: Change) -> dict[str, list[Row]] | None:
    """Return the rows of the catalog views at the end of the second period, or None if these were not read."""
    if not all(change.after.has(view) for view in _VIEWS):
        return None
    return {view: change.after.query(f"from {change.after.ends(view)[1]}") for view in _VIEWS}


def _by_foreign_keys(
    change: Change, known: dict[str, list[Row]], pair: Pair, named: Names, table: Hashable
) -> list[AccessPath]:
    """Return the foreign keys to `table` from a table that the statement writes; those without an index come first."""
    if not WRITE.match(pair.text):
        return []
    ways = []
    for row in known["pg_constraint"]:
        sides = [change.tables.get((row["datid"], row[side])) for side in ("conrelid", "confrelid")]
        written = [_short(side.name) in named.tables for side in sides if side is not None]
        if any(written) and (_is(row, "conrelid", table) or _is(row, "confrelid", table)):
            lacking = _is(row, "conrelid", table) and not _indexed(change, row)
            ways.append(AccessPath("foreign key", row["conname"], row["columns"] if lacking else ""))
    return sorted(ways, key=lambda way: not way.lacks)


def _indexed(change: Change, key: Row) -> bool:
    """Return True if an index begins with the first column of a foreign key, or if that is not known."""
    if not change.after.has("pg_index") or "first_column" not in change.after.columns("pg_index"):
        return True
    source = change.after.ends("pg_index")[1]
    which = f"datid = {int(key['datid'])} and relid = {int(key['conrelid'])}"
    return bool(change.after.query(f"select 1 from {source} where {which} and first_column = {key['first_column']}"))


def _by_triggers(
    change: Change, known: dict[str, list[Row]], pair: Pair, named: Names, table: Hashable
) -> list[AccessPath]:
    """Return the triggers of the tables that a statement writes to; a trigger may reach any table."""
    del table
    if not WRITE.match(pair.text):
        return []
    owners = ((row, change.tables.get((row["datid"], row["tgrelid"]))) for row in known["pg_trigger"])
    return [
        AccessPath("trigger", row["tgname"]) for row, owner in owners if owner and _short(owner.name) in named.tables
    ]


def _is(row: Row, column: str, table: Hashable) -> bool:
    return (row["datid"], row[column]) == cast("tuple[int, int]", table)


def _named(row: Row, named: Names) -> bool:
    return str(row["name"]).lower() in named.tables


def _short(name: str) -> str:
    return name.rpartition(".")[2].lower()
