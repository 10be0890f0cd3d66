"""Rule: nodes of logged plans with far more or fewer rows than estimated, although estimates below them are right."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.kinds import Estimate, Statement, Table
from dbdyno.advise.rule import Advice, Evidence, Rule

FACTOR, LEAST, OFTEN, LEAST_SHARE, MOST = 10, 5, 0.8, 0.01, 10
"""Error factor; minimum number and minimum share of executions with it; minimum share of time; maximum number of
findings."""
STALE = 0.1
_NAME = r"(\"[^\"]+\"|(?<![\w.\"])[A-Za-z_]\w*(?![\"\w]))"
_COMPARED = re.compile(rf"(?:{_NAME}|(?<![\w\"])\({_NAME}\)::[\w ]+) (?:=|<|>|<=|>=|~~) (?:ANY \()?\?")
"""Pattern of a column that is compared with a value, cast or not; a column inside a function does not count."""
_JOINED = re.compile(rf"{_NAME} = {_NAME}")
_TABLES = re.compile(r"(?:Parallel )?(?:Seq|Index|Index Only|Bitmap Heap|Sample) Scan(?: Backward)?")


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement and node, most plan time first."""
    every = facts.rows_of(Estimate)
    logged = sum({(one.statement, one.plan): one.spent_ms for one in every}.values())
    total = sum(one.ms for one in facts.rows.get(Statement, ()))
    times = {one.identifier: one.ms for one in facts.rows.get(Statement, ())}
    told = 0
    for one in every:
        part = times[one.statement] / total if total and one.statement in times else one.spent_ms / (logged or 1)
        if told < MOST and is_off(one) and part >= LEAST_SHARE:
            told += 1
            yield _advice(one, part, _table(facts, one))


def is_off(estimate: Estimate) -> bool:
    """Return True if this node's estimate was wrong by `FACTOR` in most executions with this plan."""
    a, b = max(estimate.planned, 1.0), max(estimate.found, 1.0)
    return estimate.executions >= max(LEAST, OFTEN * estimate.measured) and max(a / b, b / a) >= FACTOR


def _table(facts: Facts, estimate: Estimate) -> Table | None:
    own = estimate.table.rpartition(".")[2]
    found = [each for each in facts.rows.get(Table, ()) if each.name.rpartition(".")[2].strip('"') == own]
    return found[0] if len(found) == 1 else None


def _advice(estimate: Estimate, part: float, table: Table | None) -> Advice:
    fewer = estimate.found < estimate.planned
    why, fix = _reason(estimate, table)
    return Advice(
        f"“{beginning(estimate.text)}”: {estimate.node} finds {count(estimate.found)} rows where the planner expects"
        f" {count(estimate.planned)} ({estimate.executions} of {estimate.measured} logged executions): {why}",
        (
            Evidence("rows found", estimate.found, "number", f"{estimate.place}, {estimate.node}, median of a loop"),
            Evidence("rows expected", estimate.planned, "number", f"{estimate.place}, {estimate.node}"),
            Evidence("executions", estimate.executions, "count", f"the log, of {estimate.measured} with this plan"),
            Evidence("loops", estimate.loops, "number", f"{estimate.place}, {estimate.node}"),
            *(Evidence("condition", words, "text", estimate.place) for words in estimate.conditions),
            *(
                (Evidence("modified since analyze", table.modified, "count", f"pg_stat_user_tables, {table.name}"),)
                if table is not None
                else ()
            ),
        ),
        f"only where a plan changes: this statement has {share(part)} of the time; the nodes above are planned for the "
        f"wrong number of rows",
        fix,
        level="hint" if fewer else "warning",
        subject=f"statement {estimate.statement}",
        risk="other plans may be slower for common values" if fewer else "",
    )


def _reason(estimate: Estimate, table: Table | None) -> tuple[str, tuple[str, ...]]:
    """Return the cause and the remedy, as far as the node and its condition show them."""
    if "Function Scan" in estimate.kind:
        alter = f"alter function {estimate.table} rows {max(estimate.found, 1):.0f}"
        return "the estimate for a function is its ROWS option, not statistics", (alter,)
    if not _TABLES.fullmatch(estimate.kind):
        return (
            "the estimates below it are right, but no statistics span tables or groups",
            ("-- no setting corrects this: join on fewer or other columns, or use a separate step (materialized)",),
        )
    name = table.name if table is not None else estimate.table
    why, fix = _statistics(estimate, name)
    if table is not None and table.modified > STALE * max(table.rows, 1):
        changed = share(min(table.modified / max(table.rows, 1), 1.0))
        return (
            f"{changed} of the rows changed since {name} was analyzed",
            (f"analyze {name}", "-- if the estimate stays wrong:", *fix),
        )
    return why, fix


def _statistics(estimate: Estimate, name: str) -> tuple[str, tuple[str, ...]]:
    """Return cause and fix according to the columns that the node compares."""
    names = list(dict.fromkeys(a or b for words in estimate.conditions for a, b in _COMPARED.findall(words)))
    if len(names) > 1:
        return (
            f"the values of {' and '.join(names)} are correlated, but the planner treats them as independent",
            (f"create statistics (dependencies, mcv) on {', '.join(names)} from {name}", f"analyze {name}"),
        )
    joined = [found for words in estimate.conditions for found, _ in _JOINED.findall(words)]
    if names or joined:
        column = (names or joined)[0]
        why = f"the statistics of {column} are wrong: too few rows were sampled, or n_distinct was set"
        if not names:
            why = f"a value of {column} has more or fewer rows than its statistics say, or common values are looked up"
        return why, (f"alter table {name} alter column {column} set statistics 1000", f"analyze {name}")
    return (
        "the planner has no statistics for such a condition",
        (f"-- of an expression from version 14 on: create statistics on (...) from {name}", f"analyze {name}"),
    )


RULE = Rule(
    name="logged_estimates",
    family="planner",
    title="Plan nodes whose number of rows differs from the estimate",
    reads=(Estimate,),
    condition="a node finds at least 10 times more or fewer rows than estimated (one of the numbers is 100 or more), "
    "and the nodes below it do not. This happens in at least 5 logged executions and 80 % of those with the "
    "same plan, and the statement takes at least 1 % of the time of all statements",
    expects="time of statements whose plan depends on the estimate",
    risk="plans change, and some may become worse",
    source="PostgreSQL documentation, Row Estimation Examples, Extended Statistics, auto_explain (2025)",
    refuted="after the fix EXPLAIN (ANALYZE) shows the same plan, or the same estimate",
    judge=judge,
    of_statement=True,
)
