"""Parsing of the shapes of statements by sqlglot."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Collection, Iterator
from typing import Any

_END = re.compile(r'"(?:[^"]|"")*"|(;)')
_WORD = re.compile(r"[\s(]*(\w+)")
_CURSOR = re.compile(r'\s*declare\s+(?:"[^"]*"|\w+)[\w\s]*?\scursor\s[\w\s]*?\bfor\s', re.IGNORECASE)
READ = frozenset(("select", "insert", "update", "delete", "merge", "with", "values", "table"))
"""First words of the statements that are parsed."""
OPAQUE = frozenset(("execute", "call", "prepare", "explain", "do"))
"""First words of statements that may use keys and are not parsed."""


def statements(shape: str) -> Iterator[tuple[str, str]]:
    """Yield first word and text of each statement in a shape; for a cursor declaration, those of its query."""
    begin = 0
    for found in [*_END.finditer(shape), None]:
        if found is not None and found[1] is None:
            continue
        text = shape[begin : found.start() if found is not None else len(shape)]
        begin = found.end() if found is not None else begin
        if (cursor := _CURSOR.match(text)) is not None:
            text = text[cursor.end() :]
        if (word := _WORD.match(text)) is not None:
            yield word[1].lower(), text


def parse_statement(text: str) -> Any:
    """Return a statement's tree, or None if it cannot be parsed."""
    import sqlglot

    with quiet_parser():
        try:
            tree = sqlglot.parse_one(text, read="postgres")
        except (sqlglot.errors.SqlglotError, RecursionError):
            return None
    return None if isinstance(tree, sqlglot.exp.Command) else tree


def may_write(tree: Any, writers: Collection[str]) -> bool:
    """Return True if a statement has a part that changes data, or calls one of the functions `writers`."""
    from sqlglot import exp

    if any(True for _ in tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into)):
        return True
    return any(str(call.name).lower() in writers for call in tree.find_all(exp.Anonymous))


@contextlib.contextmanager
def quiet_parser() -> Iterator[None]:
    """Stop the parser from logging what it does not support."""
    logger = logging.getLogger("sqlglot")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
