"""DuckDB's plans from EXPLAIN ANALYZE, with rows and time of each step, with and without its optimizer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError, FlowError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.memory import memory_connection
from dbdyno.evidence.query_limits import require_select
from dbdyno.flow.conditions import atoms
from dbdyno.flow.step import Flow, Kind, Step
from dbdyno.flow.tables import InputTable

if TYPE_CHECKING:
    import duckdb

OFF = "pragma disable_optimizer"
_KINDS = {
    "TABLE_SCAN": Kind.SCAN,
    "READ_CSV": Kind.SCAN,
    "READ_PARQUET": Kind.SCAN,
    "SEQ_SCAN": Kind.SCAN,
    "FILTER": Kind.FILTER,
    "PROJECTION": Kind.PROJECT,
    "ORDER_BY": Kind.SORT,
    "TOP_N": Kind.TOP,
    "LIMIT": Kind.LIMIT,
    "STREAMING_LIMIT": Kind.LIMIT,
    "UNION": Kind.UNION,
    "WINDOW": Kind.WINDOW,
    "STREAMING_WINDOW": Kind.WINDOW,
    "CROSS_PRODUCT": Kind.JOIN,
}
_WRAPPERS = ("RESULT_COLLECTOR", "EXPLAIN_ANALYZE", "QUERY")


def flow(text: str, tables: Sequence[InputTable]) -> Flow:
    """Execute a SELECT without and with the optimizer, and return both plans.

    Raises:
        FlowError: The text is not one SELECT, or DuckDB reports an error.
    """
    return Flow("duckdb", _plan(text, tables, optimized=False), _plan(text, tables, optimized=True), OFF)


def rows(text: str, tables: Sequence[InputTable]) -> tuple[list[Any], list[Any]]:
    """Return the rows of the answer without the optimizer, and those with it.

    Raises:
        FlowError: The text is not one SELECT, or DuckDB reports an error.
    """
    found = []
    for optimized in (False, True):
        with _connect(text, tables, optimized=optimized) as connection:
            found.append(connection.execute(text).fetchall())
    return found[0], found[1]


def _plan(text: str, tables: Sequence[InputTable], *, optimized: bool) -> Step:
    files = {one.path.name: one.name for one in tables}
    with _connect(text, tables, optimized=optimized) as connection:
        row = connection.execute(f"explain (analyze, format json) {text}").fetchone()
        return _step(_root(json.loads(row[1] if row else "{}")), files)


@contextlib.contextmanager
def _connect(text: str, tables: Sequence[InputTable], *, optimized: bool) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB connection with the tables as views, after checking that the text is a single SELECT."""
    import duckdb

    connection = memory_connection()
    try:
        for one in tables:
            read = connection.read_csv(str(one.path)) if one.is_csv else connection.read_parquet(str(one.path))
            read.create_view(one.name)
        require_select(connection, text)
        connection.execute("rollback")
        if not optimized:
            connection.execute(OFF)
        yield connection
    except EvidenceError as error:
        raise FlowError(error.message, where="the query", next_step="give one SELECT") from None
    except duckdb.Error as error:
        raise FlowError(str(error).splitlines()[0], where="the query", next_step="correct the SQL") from None
    finally:
        connection.close()


def _root(given: Mapping[str, Any]) -> JsonObject:
    found = given.get("operator", given.get("children", []))
    node: JsonObject = found[0]
    while node.get("type") in _WRAPPERS and node.get("children"):
        node = node["children"][0]
    return node


def _step(node: Mapping[str, Any], files: dict[str, str]) -> Step:
    name, info = str(node.get("type", "")), node.get("extra_info") or {}
    inputs = tuple(_step(one, files) for one in node.get("children") or [])
    kind = _KINDS.get(name) or (
        Kind.JOIN if "JOIN" in name else Kind.GROUP if "GROUP_BY" in name or "AGGREGATE" in name else Kind.OTHER
    )
    if kind == Kind.GROUP and not info.get("Aggregates") and inputs:
        kind = Kind.DISTINCT
    if kind == Kind.JOIN and any(one.kind == Kind.OTHER and "DELIM" in one.text for one in inputs):
        inputs = tuple(one for one in inputs if "DELIM" not in one.text)
    text, parts = _words(kind, name, info, files)
    rows = node.get("intermediate_rows", node.get("operator_cardinality"))
    spent = node.get("timing", node.get("operator_timing"))
    return Step(kind, text, parts, inputs, rows, None if spent is None else round(spent * 1e9))


def _words(kind: str, name: str, info: Mapping[str, Any], files: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    if kind == Kind.SCAN:
        file = str(info.get("Filename(s)", info.get("Table", ""))).rpartition("/")[2]
        parts = tuple(atom for one in _list(info.get("Filters")) for atom in atoms(one))
        return files.get(file, file or str(info.get("Function", name)).lower()), parts
    if kind == Kind.FILTER:
        parts = tuple(atom for one in _list(info.get("Expression")) for atom in atoms(one))
        return " and ".join(parts), parts
    if kind == Kind.JOIN:
        parts = tuple(atom for one in _list(info.get("Conditions")) for atom in atoms(one))
        how = str(info.get("Join Type", "CROSS")).lower()
        return f"{how} on {' and '.join(parts)}" if parts else "cross", ()
    for key in ("Order By", "Groups"):
        if info.get(key):
            return f"by {', '.join(_list(info[key]))}", ()
    return name.lower().replace("_", " "), ()


def _list(value: Any) -> list[str]:
    return [] if value in (None, "") else [str(one) for one in value] if isinstance(value, list) else [str(value)]
