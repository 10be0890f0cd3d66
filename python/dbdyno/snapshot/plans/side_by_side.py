"""The plans of one statement side by side, each as a tree with rows and time per node of its longest execution.

The two plans of the last change are shown, or the two with most executions. A node's own time is its time without the
nodes below it; under a Gather it is added up over the workers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.sections import Heading, Part, Row, Table, columns, missing_measurement, section, table
from dbdyno.base.sql_text import literal
from dbdyno.snapshot.model import instant_text
from dbdyno.snapshot.plans.executions import tree_from_values
from dbdyno.snapshot.plans.flips import flips, plan_tree
from dbdyno.snapshot.plans.generic import VIEW
from dbdyno.snapshot.plans.interval_tables import attach_log_seen
from dbdyno.snapshot.plans.misestimates import FACTOR, NodeNumbers, misestimate_factor
from dbdyno.snapshot.plans.page import ANALYZE
from dbdyno.snapshot.plans.tree import Node, walk
from dbdyno.snapshot.wording import duration_text

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

NAME = "trees"
TITLE = "Plans side by side"
ABOUT = (
    "Rows and time of each node in the longest measured execution. Own time: without the nodes below; off: how many "
    "times more or fewer rows were returned than estimated. Marked: a node that the other plan lacks."
)
ONLY_HERE = "only here"
_MEASURED = columns("tree:text:node own:ns:own_time rows:count planned:count:estimated off:times loops conditions:text")
_BARE = columns("tree:text:node conditions:text")


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan with its title, and the measurements of its nodes in the order of `walk`; empty if there are none."""

    title: str
    plan: Node
    numbers: Sequence[NodeNumbers] = ()


def side_by_side(interval: Interval, statement: str) -> Part | None:
    """Return the section with the plans of a statement, or None if no plan of it is stored.

    Raises:
        EvidenceError: A stored plan is damaged.
    """
    shown = list(_of_logs(interval, statement)) or list(_of_snapshots(interval, statement))
    if not shown:
        return None
    titles = [{node.title for _, node in walk(one.plan)} for one in shown]
    tables = [
        _tree_table(one, set().union(*(titles[:at] + titles[at + 1 :])) if len(shown) > 1 else None)
        for at, one in enumerate(shown)
    ]
    unmeasured = not any(one.numbers for one in shown)
    lacks = (
        [missing_measurement("rows and times of the nodes", "auto_explain.log_analyze is off", ANALYZE)]
        if unmeasured
        else []
    )
    return section(NAME, TITLE, tables, about=ABOUT, not_measured=lacks)


def _of_logs(interval: Interval, statement: str) -> Iterator[ShownPlan]:
    """Yield the two plans of the last change in the logs of the interval, or the two with most executions."""
    if interval.before.engine != "postgres" or not attach_log_seen(interval, interval):
        return
    mine = [one for one in flips(interval.connection) if one.statement == statement]
    last = max(mine, key=lambda one: one.at_us, default=None)
    rows = interval.query(
        f"""select plan, count(*) as n, median(duration_us) * 1000 as middle, min(at_us) as first, max(at_us) as last
        from log_seen where statement = {literal(statement)} and plan is not null group by 1 order by n desc"""
    )
    wanted = [last.old, last.new] if last else [row["plan"] for row in rows[:2]]
    for row in sorted((one for one in rows if one["plan"] in wanted), key=lambda one: int(one["first"])):
        often = f"{row['n']:,} execution{'' if row['n'] == 1 else 's'}"
        times = f"{instant_text(row['first'])} to {instant_text(row['last'])}"
        title = f"{times}: {often}, p50 {duration_text(row['middle'] / 1e6)}"
        yield ShownPlan(title, plan_tree(interval.connection, row["plan"]), _numbers_of(interval, row["plan"]))


def _numbers_of(interval: Interval, plan: str) -> list[NodeNumbers]:
    rows = interval.query(
        f"select nodes from log_plans where plan = {literal(plan)} and nodes is not null order by nodes_us desc limit 1"
    )
    try:
        return [
            NodeNumbers(
                int(planned), None if found is None else float(found), int(loops), None if ms is None else float(ms)
            )
            for planned, found, loops, ms in json.loads(rows[0]["nodes"])
        ]
    except (LookupError, TypeError, ValueError, RecursionError):  # none was taken, or the stored value is no list
        return []


def _of_snapshots(interval: Interval, statement: str) -> Iterator[ShownPlan]:
    """Yield the generic plans at both ends of the interval; only one if they are equal."""
    if VIEW not in interval.before.views or VIEW not in interval.after.views:
        return
    known = None
    for end, source in zip((interval.before, interval.after), interval.ends(VIEW), strict=True):
        rows = interval.query(
            f"select plan, tree from {source}"
            f" where queryid::varchar = {literal(statement)} and tree is not null limit 1"
        )
        if rows and rows[0]["plan"] != known:
            known = rows[0]["plan"]
            try:
                yield ShownPlan(
                    f"Generic plan at {instant_text(end.at_ns // 1000)}", tree_from_values(json.loads(rows[0]["tree"]))
                )
            except (TypeError, ValueError, RecursionError):  # the stored value is not a tree
                continue


def _tree_table(shown_plan: ShownPlan, others: set[str] | None) -> Table:
    nodes = list(walk(shown_plan.plan))
    numbers = shown_plan.numbers if len(shown_plan.numbers) == len(nodes) else ()
    totals = [_total_ns(each) for each in numbers]
    own = _own_ns([depth for depth, _ in nodes], totals)
    rows = []
    for at, (depth, node) in enumerate(nodes):
        row: Row = {
            "depth": depth,
            "tree": f"{node.label}: {node.title}" if node.label else node.title,
            "conditions": "; ".join(f"{name}: {words}" for name, words in node.conditions),
        }
        if others is not None and node.title not in others:
            row["verdict"] = ONLY_HERE
        if numbers:
            row |= _measured(numbers[at], own[at])
        rows.append(row)
    shown: list[Heading] = _MEASURED if numbers else _BARE
    return table(shown_plan.title, shown, rows)


def _measured(numbers: NodeNumbers, own: float | None) -> Row:
    off = misestimate_factor(numbers.planned, numbers.found) if numbers.found is not None and numbers.loops else None
    return {
        "own": own,
        "rows": None if numbers.found is None else round(numbers.found),
        "planned": numbers.planned,
        "off": off if off is not None and off >= FACTOR else None,
        "loops": numbers.loops,
    }


def _total_ns(numbers: NodeNumbers) -> float | None:
    return None if numbers.ms is None else numbers.ms * numbers.loops * 1e6


def _own_ns(depths: Sequence[int], totals: Sequence[float | None]) -> list[float | None]:
    """Return the time of each node excluding its direct children."""
    found = list(totals)
    above: list[int] = []
    for at, total in enumerate(totals):
        above = above[: depths[at]]
        if above and total is not None and found[above[-1]] is not None:
            found[above[-1]] = max((found[above[-1]] or 0.0) - total, 0.0)
        above.append(at)
    return found
