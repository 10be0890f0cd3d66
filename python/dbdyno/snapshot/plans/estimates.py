"""Estimated and actual row counts of logged executions, by statement, plan and node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.snapshot.plans.flips import plan_tree
from dbdyno.snapshot.plans.interval_tables import attach_log_seen
from dbdyno.snapshot.plans.tree import Node, walk

if TYPE_CHECKING:
    import duckdb

    from dbdyno.snapshot.reading.interval import Interval


ESTIMATES_SQL = """
with measured as (
  select statement, plan, any_value(fingerprint) as fingerprint, count(*) as measured, sum(duration_us) as spent
  from log_seen where plan is not null and misestimate is not null group by 1, 2),
off as (
  select statement, plan, wrong_node as node, count(*) as executions, median(wrong_planned) as planned,
    median(wrong_rows) as "found", median(wrong_loops) as loops, arg_min(file, (at_us, line)) as file,
    arg_min(line, (at_us, line)) as line
  from log_seen where wrong_node is not null group by all)
select m.statement, m.plan, m.measured, m.spent, o.* exclude (statement, plan), texts.text
from measured m left join off o using (statement, plan)
  left join (select fingerprint, any_value(query) as text from log_statements group by 1) texts using (fingerprint)
order by m.spent desc, m.statement, m.plan, o.executions desc
"""
"""SQL query for executions with counted rows, by statement and plan, with the nodes where misestimates begin."""


@dataclass(frozen=True, slots=True)
class PlanEstimates:
    """Executions of a statement with one plan whose rows were counted.

    Attributes:
        statement: Name of the statement.
        text: Its text without values.
        plan: Identity of the plan.
        measured: Number of executions with counted rows.
        spent_us: Total time of these executions in microseconds.
        node: The node at which the estimate began to be wrong, or None if it was right.
        executions: Number of executions in which that node was wrong.
        planned: Estimated rows of the node per loop, the median.
        found: Actual rows of the node per loop, the median.
        loops: Loops of the node, the median.
        file: Number of the log of the first such execution.
        line: Its line in that log.
    """

    statement: str
    text: str
    plan: str
    measured: int
    spent_us: int
    node: Node | None = None
    executions: int = 0
    planned: float = 0.0
    found: float = 0.0
    loops: float = 0.0
    file: int = 0
    line: int = 0


def estimates(connection: duckdb.DuckDBPyConnection) -> list[PlanEstimates]:
    """Return the estimates in `log_seen`, sorted by decreasing total time of statement and plan.

    Raises:
        EvidenceError: A stored plan is damaged.
    """
    found = []
    for row in connection.execute(ESTIMATES_SQL).fetchall():
        statement, plan, measured, spent, number, executions, planned, rows, loops, file, line, text = row
        own = (str(statement), str(text or ""), str(plan), int(measured), int(spent))
        if number is None:
            found.append(PlanEstimates(*own))
            continue
        nodes = [node for _, node in walk(plan_tree(connection, plan))]
        if 0 <= number < len(nodes):
            numbers = (float(planned), float(rows), float(loops), int(file), int(line))
            found.append(PlanEstimates(*own, nodes[number], int(executions), *numbers))
    return found


def interval_estimates(interval: Interval) -> list[tuple[PlanEstimates, str]] | None:
    """Return the estimates, each with its place in the log; None if no log of the interval's time is stored."""
    found = attach_log_seen(interval, interval)
    if not found:
        return None
    return [(one, f"{found[one.file].manifest['log']}:{one.line}") for one in estimates(interval.connection)]
