"""Tables and functions that a statement names, found by parsing its text with sqlglot."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dbdyno.bench.postgres.keys.parsing import quiet_parser

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Names:
    """The relations and functions that a statement names, in lower case and without their schemas."""

    tables: frozenset[str]
    functions: frozenset[str]


@lru_cache(maxsize=4096)
def names_of(text: str) -> Names:
    """Return what a statement names; all of its words if it cannot be parsed."""
    import sqlglot
    from sqlglot import exp

    with quiet_parser():
        try:
            tree = sqlglot.parse_one(text, read="postgres")
        except (sqlglot.errors.SqlglotError, RecursionError):
            words = frozenset(word.lower() for word in _WORD.findall(text))
            return Names(words, words)
    tables = {one.name.lower() for one in tree.find_all(exp.Table)}
    functions = {one.name.lower() for one in tree.find_all(exp.Anonymous)}
    functions |= {one.sql_name().lower() for one in tree.find_all(exp.Func) if not isinstance(one, exp.Anonymous)}
    return Names(frozenset(tables), frozenset(functions))


def short_name(name: str) -> str:
    """Return a relation's name without its schema, in lower case."""
    return name.rpartition(".")[2].lower()


def statements_naming(texts: Mapping[str, str], table: str) -> list[str]:
    """Return the identifiers of the statements whose text names a table, given as `schema.table` or `table`."""
    return [name for name, text in texts.items() if short_name(table) in names_of(text).tables]
