"""The executions in logs, gathered in a temporary database on disk, because logs may be larger than memory.

log_executions   one row per execution: when it ended, its statement and plan, how long it took
log_statements   texts by fingerprint, without values
log_plans        by identity of the plan: a sketch, the tree as JSON, and rows and times of the nodes in its longest
                 execution that was measured
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dbdyno.base.signals import interruptible
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.plans.misestimates import NodeNumbers
from dbdyno.snapshot.plans.tree import Node, sketch

if TYPE_CHECKING:
    import duckdb

Execution = tuple[Any, ...]
_WRONG = (("wrong_node", "BIGINT"), ("wrong_planned", "BIGINT"), ("wrong_rows", "DOUBLE"), ("wrong_loops", "BIGINT"))
_MEASURED = (("nodes", "VARCHAR"), ("nodes_us", "BIGINT"))
LATER_COLUMNS = frozenset(name for name, _ in (*_WRONG, *_MEASURED))
"""Columns that are missing in logs stored by earlier versions."""
COLUMNS = (
    ("file", "BIGINT"),
    ("line", "BIGINT"),
    ("at_us", "BIGINT"),
    ("queryid", "BIGINT"),
    ("fingerprint", "VARCHAR"),
    ("plan", "VARCHAR"),
    ("duration_us", "BIGINT"),
    ("source", "VARCHAR"),
    ("nested", "BOOLEAN"),
    ("datname", "VARCHAR"),
    ("rows_planned", "BIGINT"),
    ("rows", "BIGINT"),
    ("misestimate", "DOUBLE"),
    ("hits", "BIGINT"),
    ("reads", "BIGINT"),
    *_WRONG,
)
STATEMENTS = (("fingerprint", "VARCHAR"), ("query", "VARCHAR"))
PLANS = (("plan", "VARCHAR"), ("sketch", "VARCHAR"), ("tree", "VARCHAR"), *_MEASURED)
TABLES = {"log_executions": COLUMNS, "log_statements": STATEMENTS, "log_plans": PLANS}
BATCH = 20_000
MEMORY = "256MB"


class GatheredExecutions:
    """Temporary database of the executions in logs, a context manager; `connection` has its three tables."""

    def __init__(self) -> None:
        from dbdyno.evidence.duck import duckdb

        self._folder = tempfile.TemporaryDirectory(prefix="dbdyno-plans-")
        database = str(Path(self._folder.name) / "plans.duckdb")
        self.connection: duckdb.DuckDBPyConnection = interruptible(duckdb.connect(database))
        self.connection.execute(f"set memory_limit = {literal(MEMORY)}")
        self.connection.execute("set threads = 2")
        for name, columns in TABLES.items():
            self.connection.execute(f"create table {name} ({', '.join(' '.join(one) for one in columns)})")
        self._rows: list[Execution] = []
        self._texts: dict[str, str] = {}
        self._plans: dict[str, Node] = {}
        self._measured: dict[str, tuple[int, Sequence[NodeNumbers]]] = {}

    def add(self, row: Execution) -> None:
        """Add an execution, with values in the order of `COLUMNS`."""
        self._rows.append(row)
        if len(self._rows) >= BATCH:
            self.flush()

    def add_text(self, known: str, text: str) -> None:
        """Add the text of a statement under its fingerprint."""
        self._texts.setdefault(known, text)

    def add_plan(self, known: str, plan: Node) -> None:
        """Add the tree of a plan under its identity."""
        self._plans.setdefault(known, plan)

    def add_measurements(self, known: str, duration_us: int, numbers: Sequence[NodeNumbers]) -> None:
        """Add rows and times of the nodes of an execution of a plan; those of the longest execution are kept."""
        before = self._measured.get(known)
        if before is None or duration_us > before[0]:
            self._measured[known] = duration_us, numbers

    def flush(self) -> None:
        """Write the rows that are buffered in memory to the tables."""
        self._executions()
        _insert(self.connection, "log_statements", STATEMENTS, list(self._texts.items()))
        trees = [
            (known, sketch(plan), json.dumps(tree_as_values(plan)), None, None) for known, plan in self._plans.items()
        ]
        longest = [(known, None, None, _numbers(one), at) for known, (at, one) in self._measured.items()]
        _insert(self.connection, "log_plans", PLANS, [*trees, *longest])
        self._rows, self._texts, self._plans, self._measured = [], {}, {}, {}
        self.connection.execute(
            "create or replace table log_statements as"
            " select fingerprint, any_value(query) as query from log_statements group by 1"
        )
        self.connection.execute(
            "create or replace table log_plans as select plan, any_value(sketch) as sketch, any_value(tree) as tree,"
            " arg_max(nodes, nodes_us) as nodes, max(nodes_us) as nodes_us from log_plans group by 1"
        )

    def _executions(self) -> None:
        """Insert the buffered rows through a CSV file: inserting value by value takes ten times as long."""
        if not self._rows:
            return
        aside = Path(self._folder.name) / "rows.csv"
        with aside.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            csv.writer(file, lineterminator="\n").writerows(self._rows)
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS)
        self.connection.execute(
            f"insert into log_executions from read_csv({literal(str(aside))}, header=false, delim=',', quote='\"',"
            f" escape='\"', nullstr='', new_line='\\n', auto_detect=false, columns={{{columns}}})"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self._folder.cleanup()


def _insert(
    connection: duckdb.DuckDBPyConnection, name: str, columns: tuple[tuple[str, str], ...], rows: list[Execution]
) -> None:
    if rows:
        values = [list(one) for one in zip(*rows, strict=True)]
        made = ", ".join(f"unnest(${at}::{kind}[])" for at, (_, kind) in enumerate(columns, 1))
        connection.execute(f"insert into {name} select {made}", values)


def _numbers(numbers: Sequence[NodeNumbers]) -> str:
    return json.dumps([[one.planned, one.found, one.loops, one.ms] for one in numbers])


def tree_as_values(node: Node) -> list[Any]:
    """Return a tree as plain JSON values."""
    return [
        *(node.kind, node.relation, node.index, node.alias, node.label),
        [list(one) for one in node.conditions],
        [tree_as_values(child) for child in node.children],
        *([node.schema] if node.schema else []),
    ]


def tree_from_values(given: Any) -> Node:
    """Return the tree for the values that `tree_as_values` made.

    Raises:
        TypeError: The values are not a tree.
        ValueError: The values are not a tree.
    """
    kind, relation, index, alias, label, conditions, children, *schema = given
    known = tuple((str(name), str(value)) for name, value in conditions)
    below = tuple(tree_from_values(one) for one in children)
    return Node(str(kind), str(relation), str(index), str(alias), str(label), known, below, "".join(map(str, schema)))
