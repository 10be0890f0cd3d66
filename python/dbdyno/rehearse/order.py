"""What a statement determines about its answer: the order, which rows a LIMIT keeps, or nothing at all.

>>> determined_parts("select id, name from t order by name, id limit 3", ("id", "name"))
DeterminedParts(keys=(1, 0), cuts_begin=False, cuts_end=True, keys_only=False)
>>> undetermined_reason("select * from t limit 10")
'LIMIT without ORDER BY'
>>> undetermined_reason("select array_agg(id) from t")
'array_agg without ORDER BY'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dbdyno.rehearse.answer import DeterminedParts
from dbdyno.rehearse.sql_tree import parse_sql

_CHANGING = re.compile(
    r"\b(random|clock_timestamp|statement_timestamp|transaction_timestamp|now|timeofday|gen_random_uuid"
    r"|uuid_generate_v[14]|uuidv7|pg_backend_pid|txid_current|pg_current_xact_id|nextval|currval|lastval)\s*\("
    r"|\b(current_timestamp|current_time|localtimestamp|localtime|current_date)\b",
    re.I,
)
_SERVERS_OWN = re.compile(
    r"\b(version|inet_server_(?:addr|port)|inet_client_port|pg_postmaster_start_time|pg_conf_load_time"
    r"|pg_(?:relation|table|indexes|total_relation|database|tablespace|column)_size|pg_current_wal_\w+|txid_\w+"
    r"|pg_current_snapshot|current_database)\s*\(",
    re.I,
)
_SYSTEM_COLUMNS = ("ctid", "xmin", "xmax", "cmin", "cmax", "tableoid")
_IN_SEQUENCE = {
    "array_agg",
    "json_agg",
    "json_arrayagg",
    "json_object_agg",
    "json_objectagg",
    "jsonb_agg",
    "string_agg",
    "xmlagg",
}
"""Aggregates whose result depends on the order of their input rows."""
_BY_PLACE = {"row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"}
"""Window functions whose result differs between rows with equal keys."""


def determined_parts(text: str, columns: Sequence[str]) -> DeterminedParts:
    """Return which parts of an answer are determined, for a statement without an `undetermined_reason`."""
    from sqlglot import expressions as exp

    tree = parse_sql(text)
    if tree is None:
        return DeterminedParts()
    chosen, has_order = tree.args.get("distinct"), tree.args.get("order") is not None
    return DeterminedParts(
        tuple(sort_columns(text, columns)),
        has_order and tree.args.get("offset") is not None,
        has_order and tree.args.get("limit") is not None,
        isinstance(chosen, exp.Distinct) and chosen.args.get("on") is not None,
    )


def sort_columns(text: str, columns: Sequence[str]) -> list[int]:
    """Return the indexes of the answer's columns named in ORDER BY; empty if there are none, or it cannot be parsed.

    Keys after one that is not a column of the answer are left out: they only order rows that are equal in that one.
    """
    tree = parse_sql(text)
    order = tree.args.get("order") if tree is not None else None
    places: list[int] = []
    for key in order.expressions if order is not None else ():
        place = _place(key.this, tree, columns)
        if place is None:
            break
        places.append(place)
    return places


def undetermined_reason(text: str) -> str:
    """Return why two executions may legitimately return different answers; empty if the answers must be equal."""
    if found := _CHANGING.search(text):
        return f"{(found[1] or found[2]).lower()}, whose value changes"
    if found := _SERVERS_OWN.search(text):
        return f"{found[1].lower()}, whose value differs from server to server"
    tree = parse_sql(text)
    if tree is None:
        return ""
    for cut in ("limit", "offset"):
        if tree.args.get(cut) is not None and tree.args.get("order") is None:
            return f"{cut.upper()} without ORDER BY"
    return next(_inside(tree), "")


def _inside(tree: Any) -> Iterator[str]:
    """Yield the reasons, found in a statement's tree, why its result is not determined."""
    from sqlglot import expressions as exp

    for cut in tree.find_all(exp.Limit, exp.Fetch, exp.Offset):
        if cut.parent is not tree and cut.find_ancestor(exp.Exists) is None:
            yield "LIMIT in a subquery: it may cut between rows with equal keys"
    for chosen in tree.find_all(exp.Distinct):
        if chosen.args.get("on") is not None and chosen.parent is not tree:
            yield "DISTINCT ON in a subquery: it may choose any of the rows with equal keys"
    for call in tree.find_all(exp.Func):
        name = _name(call)
        if name in _IN_SEQUENCE and call.find(exp.Order) is None:
            yield f"{name} without ORDER BY"
        if name in _BY_PLACE:
            yield f"{name}, which distinguishes rows with equal keys"
    for array in tree.find_all(exp.Array):
        if any(isinstance(one, exp.Query) and one.args.get("order") is None for one in array.expressions):
            yield "array without ORDER BY"
    yield from _of_the_server(tree)


def _of_the_server(tree: Any) -> Iterator[str]:
    """Yield, in words, what a statement reads that differs between servers or executions."""
    from sqlglot import expressions as exp

    if tree.find(exp.TableSample) is not None:
        yield "TABLESAMPLE, which reads different rows each time"
    for table in tree.find_all(exp.Table):
        if table.db.lower() == "information_schema" or table.name.lower().startswith("pg_"):
            yield f"{table.name.lower()}, which describes the server"
    for column in tree.find_all(exp.Column):
        if column.name.lower() in _SYSTEM_COLUMNS:
            yield f"{column.name.lower()}, which depends on where or when the server stored the row"


_NAMES = {"GroupConcat": "string_agg", "JSONArrayAgg": "json_agg", "JSONObjectAgg": "json_object_agg"}


def _name(call: Any) -> str:
    """Return PostgreSQL's name of a function, for the functions that this module handles."""
    from sqlglot import expressions as exp

    if isinstance(call, exp.Anonymous):
        return str(call.name).lower()
    return _NAMES.get(type(call).__name__, str(call.sql_name()).lower())


def _place(key: Any, tree: Any, columns: Sequence[str]) -> int | None:
    from sqlglot import expressions as exp

    if isinstance(key, exp.Literal) and key.is_int:
        place = int(key.this) - 1
        return place if 0 <= place < len(columns) else None
    if isinstance(key, exp.Column) and columns.count(key.name) == 1:
        return columns.index(key.name)
    chosen = [one.unalias().sql() for one in getattr(tree, "selects", ())]
    return chosen.index(key.sql()) if chosen.count(key.sql()) == 1 and len(chosen) == len(columns) else None
