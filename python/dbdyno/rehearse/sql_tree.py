"""Statements as sqlglot trees, with parameters that sqlglot cannot read (`$1`) as named placeholders.

>>> sorted(number_of(one) for one in parameters(parse_sql("select * from t where id = $1 limit $2")))
[1, 2]
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from dbdyno.bench.postgres.keys.parsing import quiet_parser

_SCHEMAS = ("pg_catalog", "information_schema")
_CATALOGS = re.compile(r"\b(pg_|information_schema\b)")
_PARAMETER, _NUMBERED = re.compile(r"\$(\d+)"), re.compile(r"p\d+")


@functools.lru_cache(maxsize=4096)
def parse_sql(text: str) -> Any:
    """Return the tree of a statement, or None if it cannot be parsed; the tree is shared and must not be changed."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    with quiet_parser():
        try:
            return sqlglot.parse_one(_PARAMETER.sub(r":p\1", text), dialect="postgres")
        except (SqlglotError, RecursionError, ValueError):
            return None


def reads_catalogs_only(text: str) -> bool:
    """Return True if a statement reads system catalogs and no other table, as tools and drivers do.

    >>> reads_catalogs_only("select c.relname from pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace")
    True
    >>> reads_catalogs_only("select count(*) from orders, pg_class")
    False
    """
    from sqlglot import expressions as exp

    if not _CATALOGS.search(text) or not isinstance(tree := parse_sql(text), exp.Query):
        return False
    own = {one.alias for one in tree.find_all(exp.CTE)}
    tables = [one for one in tree.find_all(exp.Table) if one.db or one.name not in own]
    return bool(tables) and all(one.db in _SCHEMAS or (not one.db and one.name.startswith("pg_")) for one in tables)


def parameters(tree: Any) -> Iterator[Any]:
    """Yield the placeholders of a tree."""
    from sqlglot import expressions as exp

    for one in tree.find_all(exp.Placeholder) if tree is not None else ():
        if _NUMBERED.fullmatch(one.name):
            yield one


def number_of(placeholder: Any) -> int:
    """Return the parameter number of a placeholder."""
    return int(placeholder.name[1:])
