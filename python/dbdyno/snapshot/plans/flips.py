"""Statements and their plans over time, and the instants at which a statement's plan changed.

    create_log_seen(connection)     # the table `log_seen`: executions, each with its statement's name
    for flip in flips(connection): ...

A statement's plan flips at an execution if at least the share `SHARE` of the `WINDOW` executions from this one on have
the new plan, and at least the same share of as many executions just before it had the old plan. If the log ends before
`WINDOW` executions, all of them must have the new plan, and it must not have been seen before. A statement that
alternates between plans, for different values, has no flip.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.plans.executions import tree_from_values
from dbdyno.snapshot.plans.tree import Node, describe_change, differ_only_in_verbosity

if TYPE_CHECKING:
    import duckdb

    from dbdyno.snapshot.store.folder import Snapshot

WINDOW = 20
SHARE = 0.9
LEAST_BEFORE = 2
RUNS_MOST = 500_000
Place = tuple[int, int, int]
"""When an execution ended [µs since 1970], its file and its line: the key by which executions are ordered."""
LAST_PLACE: Place = (1 << 62, 0, 0)
_SAME = "at_us, duration_us, plan, source, fingerprint"
"""Columns by which an execution is recognized in two logs of one server."""


@dataclass(frozen=True, slots=True)
class PlanSpan:
    """Consecutive executions of a statement with one plan.

    Times are in microseconds since 1970; `file` and `line` are the place of the first execution.
    """

    plan: str
    first_us: int
    last_us: int
    count: int
    file: int = 0
    line: int = 0

    @property
    def place(self) -> Place:
        """Return the place of the first execution, which is unique even if the log has only whole seconds."""
        return self.first_us, self.file, self.line


@dataclass(frozen=True, slots=True)
class Flip:
    """A change of a statement's plan.

    Attributes:
        statement: Name of the statement.
        text: Its text without values.
        at_us: When the first execution with the new plan ended, in µs since 1970.
        old: Identity of the old plan.
        new: Identity of the new plan.
        what: The difference in words.
        before: Number of executions with the old plan, from the previous flip to this one.
        after: Number of executions with the new plan, from this flip to the next.
        old_ns: Median time of the executions with the old plan, in nanoseconds.
        new_ns: Median time of the executions with the new plan, in nanoseconds.
        file: Number of the log of the first execution with the new plan.
        line: Its line in that log.
    """

    statement: str
    text: str
    at_us: int
    old: str
    new: str
    what: str
    before: int
    after: int
    old_ns: float
    new_ns: float
    file: int
    line: int


def create_log_seen(connection: duckdb.DuckDBPyConnection, names: Iterable[tuple[str, int]] = ()) -> None:
    """Create the table `log_seen`: every execution once, with the name of its statement.

    An execution in two logs of one server, such as a text log and a csvlog, counts once. `names` are
    fingerprints with identifiers known from elsewhere (a snapshot's texts); a fingerprint with several identifiers is
    not used.
    """
    connection.execute("create or replace temp table log_names (fingerprint varchar, queryid bigint)")
    rows = [list(one) for one in names]
    if rows:
        connection.executemany("insert into log_names values (?, ?)", rows)
    connection.execute(
        """insert into log_names
          select distinct fingerprint, queryid from log_executions where queryid is not null and fingerprint <> ''"""
    )
    connection.execute(
        f"""create or replace temp table log_seen as
        with one as (select fingerprint, min(queryid) as queryid from log_names group by 1
          having count(distinct queryid) = 1),
        text as (select queryid, min(fingerprint) as fingerprint from log_executions
          where fingerprint <> '' and queryid is not null group by 1),
        each as (select *, row_number() over (partition by file, {_SAME} order by line) as copy from log_executions),
        once as (select * exclude (copy) from each
          qualify row_number() over (partition by {_SAME}, copy order by queryid nulls last, file) = 1)
        select e.* exclude (queryid, fingerprint), coalesce(e.queryid, one.queryid) as queryid,
          coalesce(nullif(e.fingerprint, ''), text.fingerprint) as fingerprint,
          coalesce(e.queryid, one.queryid)::varchar as known, coalesce(known, e.fingerprint) as statement
        from once e left join one using (fingerprint) left join text on text.queryid = e.queryid"""
    )


def statement_names(last: Snapshot | None) -> list[tuple[str, int]]:
    """Return the fingerprints and identifiers of a snapshot's statements; empty without a snapshot or texts."""
    if last is None or last.problem("statement_texts") is not None:
        return []
    source = last.relation("statement_texts")
    if source is None:
        return []

    with file_connection() as connection:
        rows = connection.execute(f"select fingerprint, queryid from {source}").fetchall()
    return [(str(one), int(number)) for one, number in rows]


def flips(connection: duckdb.DuckDBPyConnection) -> list[Flip]:
    """Return all flips in `log_seen`, costliest first (executions since the flip, times the growth of the median)."""
    found = [one for statement, runs in _runs(connection) for one in _of(connection, statement, list(runs))]
    return sorted(found, key=lambda one: (-(one.new_ns - one.old_ns) * one.after, one.at_us))


def _runs(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Iterable[PlanSpan]]]:
    rows = connection.execute(
        f"""with several as (
          select statement from log_seen where plan is not null group by 1 having count(distinct plan) > 1),
        each as (select statement, plan, at_us, file, line, lag(plan) over w as before from log_seen
          where plan is not null and statement in (from several)
          window w as (partition by statement order by at_us, file, line)),
        numbered as (select *, count(*) filter (plan is distinct from before)
          over (partition by statement order by at_us, file, line) as run from each)
        select statement, run, any_value(plan), min(at_us), max(at_us), count(*), arg_min(file, (at_us, line)),
          arg_min(line, (at_us, line)) from numbered group by 1, 2 order by 1, 2 limit {RUNS_MOST}"""
    ).fetchall()
    for statement, some in groupby(rows, key=lambda row: row[0]):
        yield statement, [PlanSpan(*row[2:]) for row in some]


def boundaries(runs: Sequence[PlanSpan]) -> list[int]:
    """Return the indexes of the spans in `runs` at which a new plan took over."""
    found, current, met, begun = [], "", set[str](), 0
    for at, run in enumerate(runs):
        if at == 0:
            current = run.plan
        elif run.plan != current and _takes_over(runs, at, met) and _held(runs, begun, at, current):
            found.append(at)
            current, begun = run.plan, at
        met.add(run.plan)
    return found


def _takes_over(runs: Sequence[PlanSpan], at: int, met: set[str]) -> bool:
    own, others, plan = 0, 0, runs[at].plan
    for place in range(at, len(runs)):
        room = WINDOW - own - others
        if runs[place].plan == plan:
            own += min(runs[place].count, room)
        else:
            others += min(runs[place].count, room)
        if own + others >= WINDOW:
            return own >= SHARE * WINDOW
    return others == 0 and plan not in met


def _held(runs: Sequence[PlanSpan], begun: int, at: int, plan: str) -> bool:
    own, others = 0, 0
    for place in range(at - 1, begun - 1, -1):
        room = WINDOW - own - others
        if room == 0:
            break
        if runs[place].plan == plan:
            own += min(runs[place].count, room)
        else:
            others += min(runs[place].count, room)
    return own >= LEAST_BEFORE and own >= SHARE * (own + others)


def _of(connection: duckdb.DuckDBPyConnection, statement: str, runs: list[PlanSpan]) -> Iterator[Flip]:
    places = boundaries(runs)
    begins = [0, *places]
    for number, at in enumerate(places):
        start = begins[number]
        end = runs[begins[number + 2]].place if number + 2 < len(begins) else LAST_PLACE
        old, new = runs[start].plan, runs[at].plan
        trees = [plan_tree(connection, one) for one in (old, new)]
        if differ_only_in_verbosity(*trees):
            continue
        spans = [(old, runs[start].place, runs[at].place), (new, runs[at].place, end)]
        counts, medians = zip(*(_median(connection, statement, *span) for span in spans), strict=True)
        row = connection.execute(
            "select query from log_statements where fingerprint in"
            " (select fingerprint from log_seen where statement = ? limit 1)",
            [statement],
        ).fetchone()
        yield Flip(
            *(statement, str(row[0]) if row and row[0] else "", runs[at].first_us, old, new, describe_change(*trees)),
            *(*counts, *medians, runs[at].file, runs[at].line),
        )


def _median(
    connection: duckdb.DuckDBPyConnection, statement: str, plan: str, first: Place, end: Place
) -> tuple[int, float]:
    after = "(at_us > $us or (at_us = $us and (file > $file or (file = $file and line >= $line))))"
    until = "(at_us < $to_us or (at_us = $to_us and (file < $to_file or (file = $to_file and line < $to_line))))"
    row: Any = connection.execute(
        "select count(*), median(duration_us) * 1000 from log_seen"
        f" where statement = $statement and plan = $plan and {after} and {until}",
        {"statement": statement, "plan": plan}
        | dict(zip(("us", "file", "line", "to_us", "to_file", "to_line"), (*first, *end), strict=True)),
    ).fetchone()
    return int(row[0]), float(row[1])


def plan_tree(connection: duckdb.DuckDBPyConnection, plan: str) -> Node:
    """Return the tree of a plan.

    Raises:
        EvidenceError: The stored plan is damaged.
    """
    row: Any = connection.execute("select tree from log_plans where plan = ? limit 1", [plan]).fetchone()
    try:
        return tree_from_values(json.loads(row[0]))
    except (TypeError, ValueError, RecursionError) as error:
        raise EvidenceError(
            f"plan {plan!r:.40} is damaged", next_step="read its log again with `dbdyno snap plans`"
        ) from error
