"""Generic plans of the statements with the most time, stored with a snapshot on request; no statement is executed.

    snap take --plans 20 ─ candidates ─ generic_plan_rows ─ view `statement_plans` ─ generic_flips (causes), report

A generic plan is what `EXPLAIN (GENERIC_PLAN)` shows on PostgreSQL 16 and later. Here it is requested by PREPARE and
EXPLAIN EXECUTE under `plan_cache_mode = force_generic_plan`. That gives the same plan on every version, and it is
safer: PREPARE uses the extended protocol, which accepts one statement and no second one after a semicolon. The
transaction is read-only and is rolled back, savepoint by savepoint, so that locks on tables are released after each
statement. Planning may call functions that are declared immutable or stable. Limit: the plan is that of dbdyno's role,
with its settings and search path.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.plans.executions import tree_as_values
from dbdyno.snapshot.plans.executions import tree_from_values as tree_of
from dbdyno.snapshot.plans.explain import UnreadPlanError, plan_from_values
from dbdyno.snapshot.plans.tree import Node, describe_change, differ_only_in_verbosity, identity, sketch, walk

if TYPE_CHECKING:
    import psycopg

    from dbdyno.snapshot.reading.interval import Interval

    Connection = psycopg.Connection[tuple[Any, ...]]

VIEW = "statement_plans"
MOST_S = 2.0
"""Time limit in seconds for requesting plans in one snapshot; the remaining statements are left out of it."""
LONGEST = 100_000
EXPLAINED = re.compile(r"(?:\s|--[^\n]*+\n|/\*.*?\*/)*+(?:select|with|insert|update|delete)\b", re.I | re.S)
COLUMNS = (
    Column("dbid", "key", "count", "BIGINT"),
    Column("queryid", "key", "count", "BIGINT"),
    Column("plan", "text", "text", "VARCHAR"),
    Column("sketch", "text", "text", "VARCHAR"),
    Column("tree", "text", "text", "VARCHAR"),
    Column("rows_planned", "gauge", "count", "BIGINT"),
    Column("problem", "text", "text", "VARCHAR"),
)
Row = tuple[int, int, str | None, str | None, str | None, int | None, str | None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement to be planned, and its database."""

    database: int
    queryid: int
    text: str


def candidates(
    connection: Connection, schema: str, time_column: str, databases: Sequence[int], limit: int
) -> list[Candidate]:
    """Return the statements with the most time in pg_stat_statements of these databases, at most `limit`.

    Only statements that can be planned and whose text may be read are included, each once.
    """
    rows = connection.execute(
        f"select /* dbdyno */ dbid::bigint, queryid::bigint, max(query) from {schema}.pg_stat_statements"
        " where queryid is not null and dbid = any(%s::oid[])"
        " and query ~* '^(\\s|--[^\\n]*\\n|/\\*.*?\\*/)*(select|with|insert|update|delete)'"
        f" group by 1, 2 order by sum({time_column}) desc limit %s".encode(),
        [list(databases), 5 * limit],
    ).fetchall()
    found = [Candidate(int(database), int(number), str(text)) for database, number, text in rows]
    return [one for one in found if may_be_planned(one.text)][:limit]


def may_be_planned(text: str) -> bool:
    """Return True if a text is complete, is not dbdyno's own, and begins like a statement that can be explained."""
    from dbdyno.snapshot.engines.postgres.facts import is_ours  # that module's report imports plans

    return len(text) <= LONGEST and EXPLAINED.match(text) is not None and not is_ours(text)


def generic_plan_rows(connection: Connection, some: Iterable[Candidate], until_s: float) -> list[Row]:
    """Return a row per statement of the connection's database, until `time.monotonic()` exceeds `until_s`.

    A statement that cannot be planned gets a row with the problem.

    Raises:
        psycopg.Error: The connection broke.
    """
    import psycopg

    found: list[Row] = []
    with connection.transaction(force_rollback=True):
        connection.execute("set transaction read only")
        connection.execute("select set_config('plan_cache_mode', 'force_generic_plan', true)")
        for number, one in enumerate(some):
            if time.monotonic() > until_s:
                break
            try:
                with connection.transaction(force_rollback=True):
                    found.append(_row(one, _plan(connection, one.text, f"dbdyno_plan_{number}")))
            except (psycopg.Error, UnreadPlanError) as error:
                if connection.broken:
                    raise
                said = (str(error).strip().splitlines() or ["refused"])[0]
                found.append((one.database, one.queryid, None, None, None, None, said))
    return found


def _plan(connection: Connection, text: str, name: str) -> dict[str, Any]:
    import psycopg

    made = connection.pgconn.exec_params(f"prepare {name} as /* dbdyno */ {text}".encode(), None)
    if made.status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise psycopg.DatabaseError(made.error_message.decode(errors="replace"))
    connection.execute("savepoint planned")
    try:
        counted = connection.execute(
            "select cardinality(parameter_types) from pg_prepared_statements where name = %s", [name]
        ).fetchone()
        count = int(counted[0]) if counted else 0
        nulls = f"({', '.join(['null'] * count)})" if count else ""
        row = connection.execute(f"explain (format json) /* dbdyno */ execute {name}{nulls}".encode()).fetchone()
        connection.execute(f"deallocate {name}".encode())
    except psycopg.Error:
        connection.execute("rollback to savepoint planned")
        connection.execute(f"deallocate {name}".encode())
        raise
    whole = row[0] if row else None
    whole = json.loads(whole) if isinstance(whole, str) else whole
    return {"Query Text": "", **whole[0]} if isinstance(whole, list) and whole else {}


def _row(candidate: Candidate, given: dict[str, Any]) -> Row:
    known = plan_from_values(given)[1]
    tree = json.dumps(tree_as_values(known.plan))
    return (
        candidate.database,
        candidate.queryid,
        identity(known.plan),
        sketch(known.plan),
        tree,
        known.rows_planned,
        None,
    )


def view(rows: Sequence[Row], elapsed_ns: int) -> View:
    """Return the view that a snapshot stores."""
    return View(VIEW, "now", COLUMNS, sorted(rows, key=lambda row: row[:2]), elapsed_ns=elapsed_ns)


@dataclass(frozen=True, slots=True)
class GenericFlip:
    """A statement whose generic plan changed.

    Attributes:
        statement: The queryid.
        what: The difference in words.
        old: Sketch of the old plan.
        new: Sketch of the new plan.
        relations: Names of the relations in both plans.
    """

    statement: int
    what: str
    old: str
    new: str
    relations: frozenset[str]


def generic_flips(first: Interval, last: Interval) -> dict[int | str, GenericFlip]:
    """Return, by queryid, the statements whose generic plan changed from the start of `first` to the end of `last`.

    Only statements planned in both snapshots are compared. The result is empty if one of the snapshots has no plans.
    """
    if VIEW not in first.before.views or VIEW not in last.after.views:
        return {}
    sides = (first.ends(VIEW)[0], last.ends(VIEW)[1])
    rows = first.query(
        f"select a.queryid, a.tree as old, b.tree as new, a.sketch as was, b.sketch as now from {sides[0]} a"
        f" join {sides[1]} b using (dbid, queryid) where a.plan <> b.plan order by 1"
    )
    found: dict[int | str, GenericFlip] = {}
    for row in rows:
        with contextlib.suppress(TypeError, ValueError, RecursionError):  # the stored value is not a tree
            old, new = (tree_of(json.loads(row[name])) for name in ("old", "new"))
            if not differ_only_in_verbosity(old, new):
                number = int(row["queryid"])
                found[number] = GenericFlip(
                    number, describe_change(old, new), row["was"], row["now"], _relations(old, new)
                )
    return found


def _relations(*plans: Node) -> frozenset[str]:
    return frozenset(node.relation for plan in plans for _, node in walk(plan) if node.relation)
