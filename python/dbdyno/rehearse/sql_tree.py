"""Statements as sqlglot trees, with parameters that sqlglot cannot read (`$1`) as named placeholders.

>>> [number_of(one) for one in parameters(parsed("select * from t where id = $1 limit $2"))]
[1, 2]
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

_PARAMETER, _NUMBERED = re.compile(r"\$(\d+)"), re.compile(r"p\d+")


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> Any:
    """Return the tree of a statement, or None if it cannot be parsed; the tree is shared and must not be changed."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(_PARAMETER.sub(r":p\1", text), dialect="postgres")
    except (SqlglotError, RecursionError, ValueError):
        return None


def parameters(tree: Any) -> Iterator[Any]:
    """Yield the placeholders of a tree."""
    from sqlglot import expressions as exp

    for one in tree.find_all(exp.Placeholder) if tree is not None else ():
        if _NUMBERED.fullmatch(one.name):
            yield one


def number_of(placeholder: Any) -> int:
    """Return the parameter number of a placeholder."""
    return int(placeholder.name[1:])
