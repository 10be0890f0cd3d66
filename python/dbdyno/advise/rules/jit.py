"""Rule: statements whose JIT compilation takes longer than it can save."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, duration, share
from dbdyno.advise.kinds import Setting, Statement
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_OF_STATEMENT, LEAST_OF_ALL, LEAST_MS, MOST = 0.2, 0.01, 100.0, 5


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement, most compilation time first."""
    statements = facts.rows_of(Statement)
    total = sum(one.ms for one in statements)
    found = [(one.jit_ms, one) for one in statements if one.jit_ms is not None and one.jit_ms >= LEAST_MS]
    for jit_ms, one in sorted(found, key=lambda pair: -pair[0])[:MOST]:
        if jit_ms < LEAST_OF_STATEMENT * one.ms or jit_ms < LEAST_OF_ALL * total:
            continue
        place = f"pg_stat_statements, queryid {one.identifier}"
        yield Advice(
            f"compiling takes {share(min(jit_ms / one.ms, 1))} of the time of “{beginning(one.text)}”"
            f" ({duration(jit_ms / one.calls / 1000)} of {duration(one.ms / one.calls / 1000)} a call)",
            (
                Evidence("compiling", jit_ms * 1e6, "ns", f"{place}, jit_*_time"),
                Evidence("execution", one.ms * 1e6, "ns", f"{place}, total_exec_time"),
                Evidence("calls", one.calls, "count", f"{place}, calls"),
                Evidence("functions compiled", one.jit_functions, "count", f"{place}, jit_functions"),
            ),
            f"at most {share(jit_ms / total)} of all statement time, less what compiled code saves in"
            f" {count(one.calls)} calls",
            ("set local jit = off  -- in the transaction that runs it", "-- or raise jit_above_cost"),
            stake=min(jit_ms / total, 1.0),
            subject=f"statement {one.identifier}",
            proposed="off",
        )


RULE = Rule(
    name="jit",
    family="planner",
    title="Statements that JIT makes slower",
    reads=(Setting, Statement),
    condition="compiling takes at least 20 % of a statement's time, 100 ms, and 1 % of all statement time",
    expects="the time of compiling, minus the time that compiled code saves",
    risk="long scans with many expressions become slower without it",
    source="PostgreSQL documentation, Just-in-Time Compilation (2025); pg_stat_statements of version 15",
    refuted="the statement takes as long with jit = off",
    judge=judge,
    least=150000,
    setting="jit",
    of_statement=True,
)
