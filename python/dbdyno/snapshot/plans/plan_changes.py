"""What stored logs prove about an interval of snapshots: latencies of statements, and changes of their plans.

A change is proved if executions before and after it were logged with their plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.snapshot.plans.flips import SHARE, Flip, flips, plan_tree
from dbdyno.snapshot.plans.generic import VIEW, generic_flips
from dbdyno.snapshot.plans.interval_tables import attach_log_seen
from dbdyno.snapshot.plans.latency import LATENCY_SQL
from dbdyno.snapshot.plans.page import FLIPS, flip_row, flip_sentence
from dbdyno.snapshot.plans.tree import describe_change, differ_only_in_verbosity, walk
from dbdyno.snapshot.reading.statement_texts import statement_texts

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

LEAST_EXECUTIONS = 2
NEXT_STEP = (
    "turn on auto_explain in the server and run `dbdyno snap plans --log FILE`, or run `dbdyno snap watch --plans 20`"
)


@dataclass(frozen=True, slots=True)
class Proof:
    """A statement whose executions had one plan in the first period and another in the second.

    Attributes:
        what: The difference in words.
        before: Number of executions with the old plan.
        after: Number of executions with the new plan.
        old_ns: Median time of the executions with the old plan, in nanoseconds.
        new_ns: Median time of the executions with the new plan, in nanoseconds.
        relations: Names of the relations in both plans.
        at_us: When the first execution with the new plan ended, in µs since 1970; None if the log has no flip.
    """

    what: str
    before: int
    after: int
    old_ns: float
    new_ns: float
    relations: frozenset[str]
    at_us: int | None


def proofs(before: Interval, after: Interval) -> Mapping[int | str, Proof]:
    """Return the statements whose main plan in the second period differs from that in the first.

    The point between the periods is where statement time changed, which need not be where the plan changed. If most but
    not nearly all executions of a period have its main plan, the log must have a flip from the one plan to the other.
    """
    if before.before.engine != "postgres" or not attach_log_seen(before, after):
        return {}
    connection = before.connection
    olds, news = (_main_plans(one, connection) for one in (before, after))
    known = {(one.statement, one.old, one.new): one.at_us for one in flips(connection)}
    found: dict[int | str, Proof] = {}
    for statement in olds.keys() & news.keys():
        old, new = olds[statement], news[statement]
        at_us = known.get((statement, old.plan, new.plan))
        if old.plan == new.plan or (at_us is None and min(old.share, new.share) < SHARE):
            continue
        trees = [plan_tree(connection, one.plan) for one in (old, new)]
        if differ_only_in_verbosity(*trees):
            continue
        relations = frozenset(node.relation for plan in trees for _, node in walk(plan) if node.relation)
        found[int(statement)] = Proof(
            describe_change(*trees), old.count, new.count, old.middle_ns, new.middle_ns, relations, at_us
        )
    return found


@dataclass(frozen=True, slots=True)
class _Main:
    """The plan of most executions of a statement: their number, their share, and their median time in nanoseconds."""

    plan: str
    count: int
    share: float
    middle_ns: float


def _main_plans(interval: Interval, connection: Any) -> dict[str, _Main]:
    rows = connection.execute(
        f"""with each as (select known, plan, count(*) as n, median(duration_us) * 1000 as middle from log_seen
          where known is not null and plan is not null
            and at_us > {interval.before.at_ns // 1000} and at_us <= {interval.after.at_ns // 1000} group by 1, 2)
        select known, plan, n, n / sum(n) over (partition by known) as share, middle from each
        qualify n >= {LEAST_EXECUTIONS} and share > 0.5"""
    ).fetchall()
    return {name: _Main(plan, int(count), float(share), float(middle)) for name, plan, count, share, middle in rows}


def latencies(interval: Interval) -> dict[str, Row]:
    """Return quantiles of the logged executions by statement; empty if no log of this time is stored."""
    if not attach_log_seen(interval, interval):
        return {}
    return {one["statement"]: one for one in interval.query(LATENCY_SQL)}


def plans(interval: Interval, top: int) -> Part:
    """Return the section of a report on plans that changed within the interval."""
    title = "Plans that changed"
    found = attach_log_seen(interval, interval)
    if not any(one.manifest.get("plans") for one in found):
        return _generic(interval, title, top)
    changes: list[Flip] = flips(interval.connection)
    rows = [flip_row(one, f"{found[one.file].manifest['log']}:{one.line}") for one in changes]
    logs = dict.fromkeys(one.manifest["log"] for one in found if one.manifest.get("plans"))
    about = f"From {', '.join(logs)}; see dbdyno snap plans."
    notes = [flip_sentence(one) for one in changes[:3]] or ["none"]
    return section("plans", title, [table("", columns(FLIPS), rows, top=top)], about=about, notes=notes)


_GENERIC = "text:text:statement what:text:change was:text:plan_before now:text:plan_after statement:code:identifier"


def _generic(interval: Interval, title: str, top: int) -> Part:
    """Return the section on generic plans that changed between the two ends, for an interval without logs."""
    if VIEW not in interval.before.views or VIEW not in interval.after.views:
        lacks = missing_measurement("plans", "no log of this time is stored; the snapshots have no plans", NEXT_STEP)
        return section("plans", title, not_measured=[lacks])
    texts = statement_texts(interval)
    rows: list[Row] = [
        {"statement": str(number), "text": texts.get(str(number), ""), "what": one.what, "was": one.old, "now": one.new}
        for number, one in generic_flips(interval, interval).items()
    ]
    about = "Generic plans at both snapshots (--plans); executions may use other plans for their values."
    made = [table("", columns(_GENERIC), rows, top=top)] if rows else []
    return section("plans", title, made, about=about, notes=[] if rows else ["none"])
