"""Statements as trees of sqlglot, with the parameters that it does not read (`$1`) as named placeholders.

>>> [one.name for one in parameters(parsed("select * from t where id = $1 limit $2"))]
['1', '2']
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

_PARAMETER = re.compile(r"\$(\d+)")


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> Any:
    """Return the tree of a statement, or None if it cannot be parsed; do not change it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(_PARAMETER.sub(r":\1", text), dialect="postgres")
    except (SqlglotError, RecursionError, ValueError):
        return None


def parameters(tree: Any) -> Iterator[Any]:
    """Yield the placeholders of a tree; the `name` of each is its number."""
    from sqlglot import expressions as exp

    for one in tree.find_all(exp.Placeholder) if tree is not None else ():
        if one.name.isdigit():
            yield one
