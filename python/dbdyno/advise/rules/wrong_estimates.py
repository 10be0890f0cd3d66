"""Rule: statements that find far more or far fewer rows than the planner's statistics predict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, share
from dbdyno.advise.kinds import Column, Estimate, Statement, Table
from dbdyno.advise.rule import Advice, Evidence, Rule

FACTOR, LEAST_CALLS, LEAST_SHARE, LEAST_ROWS, MOST = 10, 10, 0.01, 100, 10
"""Error factor; minimum calls; minimum share of time; minimum of the larger row count; maximum number of findings."""
LONGEST = 4000
LEAST_LOGGED = 5
_NAME = r'(?:\w+\.)?"?(\w+)"?'
_EQUALS = rf"{_NAME}\s*=\s*\$\d+"
_LOOK_UP = re.compile(
    rf"(?:select\s[^()]*?\sfrom|delete\s+from|update)\s+(?:only\s+)?(?:\w+\.)?\"?(?P<table>\w+)\"?(?:\s+(?:as\s+)?\w+)??"
    rf"(?:\s+set\s[^()]*?)?\s+where\s+(?P<condition>{_EQUALS}(?:\s+and\s+{_EQUALS})*)(?:\s+order\s+by\s[\w\s.,]*)?"
    r"(?:\s+for\s+(?:update|share))?\s*;?",
    re.I,
)
"""Pattern of a look-up: one table with columns that are each compared with one value; no limit, join or grouping."""


@dataclass(frozen=True, slots=True)
class _LookUp:
    """A look-up statement, its table and compared columns, and the rows per call that are expected and found."""

    statement: Statement
    table: Table
    columns: tuple[Column, ...]
    expected: float
    found: float

    @property
    def correlated(self) -> bool:
        """Return True if each column alone explains the actual rows: only the estimates' product is then wrong."""
        alone = min(max(self.table.rows, 1) / one.values for one in self.columns)
        return len(self.columns) > 1 and self.found > FACTOR * self.expected and self.found <= FACTOR * alone


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement, most time first."""
    total = sum(one.ms for one in facts.rows_of(Statement))
    columns: dict[str, dict[str, Column]] = {}
    for column in facts.rows_of(Column):
        columns.setdefault(column.table, {})[column.name.lower()] = column
    tables = {one.name.rpartition(".")[2].strip('"').lower(): one for one in facts.rows_of(Table)}
    logged = {one.statement for one in facts.rows.get(Estimate, ()) if one.measured >= LEAST_LOGGED}
    told = 0
    for one in facts.rows_of(Statement)[:200]:
        if one.identifier in logged:
            continue  # `logged_estimates` judges it better, from plans with counted rows
        if told == MOST or one.calls < LEAST_CALLS or one.ms < LEAST_SHARE * total:
            continue
        found = _look_up(one, tables, columns)
        if found is not None and _is_off(found):
            told += 1
            yield _advice(found, one.ms / total)


def _look_up(
    statement: Statement, tables: Mapping[str, Table], columns: Mapping[str, Mapping[str, Column]]
) -> _LookUp | None:
    text = _LOOK_UP.fullmatch(" ".join(statement.text.split())) if len(statement.text) <= LONGEST else None
    table = tables.get(text["table"].lower()) if text else None
    if text is None or table is None or re.match(r"select\s+(distinct|all)\b", statement.text, re.I):
        return None
    named = [each.lower() for each in re.findall(_EQUALS, text["condition"])]
    known = tuple(columns.get(table.name, {}).get(each) for each in named)
    if None in known or len(set(named)) < len(named):
        return None
    compared = tuple(each for each in known if each is not None)
    expected = float(max(table.rows, 1))
    for each in compared:
        expected /= max(each.values, 1.0)
    return _LookUp(statement, table, compared, max(expected, 1.0), statement.rows / statement.calls)


def _is_off(look_up: _LookUp) -> bool:
    """Return True if no choice of compared values explains the difference.

    If more rows than expected were found, common values may have been looked up: the rows of the most common value are
    then the limit. If fewer rows were found, the statement may look up values that do not exist: less than half a row
    per call is not counted as an error.
    """
    commonest = max(look_up.table.rows, 1) * min(
        max(each.commonest, 1 / max(each.values, 1.0)) for each in look_up.columns
    )
    if len(look_up.columns) > 1:
        several = max(look_up.table.rows, 1.0)
        for each in look_up.columns:
            several *= max(each.commonest, 1 / max(each.values, 1.0))
        commonest = several
    more = look_up.found > FACTOR * max(look_up.expected, commonest) and look_up.found >= LEAST_ROWS
    fewer = (
        look_up.expected > FACTOR * max(look_up.found, 1.0) and look_up.found >= 0.5 and look_up.expected >= LEAST_ROWS
    )
    return more or fewer


def _advice(look_up: _LookUp, part: float) -> Advice:
    names = " and ".join(each.name for each in look_up.columns)
    table, statement = look_up.table.name, look_up.statement
    place = f"pg_stat_statements, queryid {statement.identifier}"
    fewer = look_up.found < look_up.expected
    listed = ", ".join(each.name for each in look_up.columns)
    if look_up.correlated:
        why = f"the values of {names} are correlated, but the planner treats them as independent"
        fix: tuple[str, ...] = (
            f"create statistics (dependencies, mcv) on {listed} from {table}",
            f"analyze {table}",
        )
    else:
        why = f"the statistics of {names} are wrong: too few rows were sampled, they are old, or n_distinct was set"
        fix = (
            f"analyze (verbose) {table}",
            *(f"alter table {table} alter column {each.name} set statistics 1000" for each in look_up.columns),
            f"-- if it stays wrong: alter table {table} alter column ... set (n_distinct = ...), after counting",
            f"analyze {table}",
        )
    return Advice(
        f"“{beginning(statement.text)}” finds {count(look_up.found)} rows a call where the planner's statistics say"
        f" {count(look_up.expected)}: {why}",
        (
            Evidence("rows a call", look_up.found, "number", f"{place}, rows / calls"),
            Evidence("rows expected", look_up.expected, "number", f"pg_stats, {table}, {listed}: rows / n_distinct"),
            Evidence("rows of the table", look_up.table.rows, "count", f"pg_stat_user_tables, {table}, n_live_tup"),
            *(
                Evidence(f"values of {each.name}", each.values, "count", f"pg_stats, {table}")
                for each in look_up.columns
            ),
            Evidence("calls", statement.calls, "count", f"{place}, calls"),
            Evidence("time", statement.ms * 1e6, "ns", f"{place}, total_exec_time"),
        ),
        f"only where a plan changes: this statement has {share(part)} of the time, and joins with {table} are planned"
        " by the same figures",
        fix,
        level="hint" if fewer else "warning",
        subject=f"statement {statement.identifier}",
        risk="most of its look-ups may be for values that do not exist: count some of them first" if fewer else "",
    )


RULE = Rule(
    name="wrong_estimates",
    family="planner",
    title="Statistics that mislead the planner",
    reads=(Table, Column, Statement),
    condition="a statement compares columns of one table (of 100 pages or more) with one value each, and has 10 calls "
    "and 1 % of statement time. Per call it finds 10 times fewer rows than the statistics say, or 10 times "
    "more rows than both the statistics say and the most common value has. At least 100 rows are estimated or "
    "found",
    expects="time of statements whose plan depends on the estimate",
    risk="plans change, and some may become worse",
    source="PostgreSQL documentation, Row Estimation Examples, Extended Statistics (2025)",
    refuted="after the fix EXPLAIN (ANALYZE) shows the same plans, here and in joins with that table",
    judge=judge,
)
