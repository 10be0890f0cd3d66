"""Columns of an answer by which a statement orders its rows, and statements whose answer is not determined.

>>> ordered_by("select id, name from t order by name, id", ("id", "name"))
[1, 0]
>>> undetermined("select * from t limit 10")
'LIMIT without ORDER BY'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dbdyno.rehearse.sql_tree import parsed

_CHANGING = re.compile(
    r"\b(random|clock_timestamp|statement_timestamp|transaction_timestamp|now|timeofday|gen_random_uuid"
    r"|uuid_generate_v[14]|uuidv7|pg_backend_pid|txid_current|pg_current_xact_id|nextval|currval|lastval)\s*\("
    r"|\b(current_timestamp|current_time|localtimestamp|localtime|current_date)\b",
    re.I,
)


def ordered_by(text: str, columns: Sequence[str]) -> list[int]:
    """Return the places of the columns of the answer that ORDER BY names; empty if there is none, or it is unreadable.

    Keys after one that is not a column of the answer are left out: they only decide among equals.
    """
    tree = parsed(text)
    order = tree.args.get("order") if tree is not None else None
    places: list[int] = []
    for key in order.expressions if order is not None else ():
        place = _place(key.this, tree, columns)
        if place is None:
            break
        places.append(place)
    return places


def undetermined(text: str) -> str:
    """Return why two executions may answer differently by right; empty if they may not."""
    if found := _CHANGING.search(text):
        return f"{(found[1] or found[2]).lower()}, whose value changes"
    tree = parsed(text)
    if tree is not None and tree.args.get("limit") is not None and tree.args.get("order") is None:
        return "LIMIT without ORDER BY"
    return ""


def _place(key: Any, tree: Any, columns: Sequence[str]) -> int | None:
    from sqlglot import expressions as exp

    if isinstance(key, exp.Literal) and key.is_int:
        place = int(key.this) - 1
        return place if 0 <= place < len(columns) else None
    if isinstance(key, exp.Column) and columns.count(key.name) == 1:
        return columns.index(key.name)
    chosen = [one.unalias().sql() for one in getattr(tree, "selects", ())]
    return chosen.index(key.sql()) if chosen.count(key.sql()) == 1 and len(chosen) == len(columns) else None
