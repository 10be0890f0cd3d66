"""The shape of the studies that ask clients: one table made for the study, one script, a curve for each factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbdyno.study.plan.factors import Level, combined
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.targets import on_target

SCHEMA = "dbdyno"
"""Holds the table, and is removed with it."""


def client_plan(
    study: str,
    question: str,
    factors: Mapping[str, Sequence[Level]],
    script: Script,
    table: tuple[str, Sequence[str]],
    schedule: Schedule,
    judge: Judge,
    *,
    plans_counted: bool = False,
    caches_told: bool = False,
) -> Plan:
    """A sweep over every combination of the factors' levels; those with one level have no curve. `table` is its name
    and the SQL that makes it, in the schema; with `plans_counted` the server counts statements and their plans, with
    `caches_told` it is read what a session keeps of statements."""
    name, made = table
    return Plan(
        title=study,
        question=question,
        study=study,
        kind="sweep",
        arms=combined(*factors.values()),
        factors=[factor for factor, levels in factors.items() if len(levels) > 1],
        workload=Workload(
            scripts=[script],
            setup=[f"create schema {SCHEMA}", *made, f"vacuum analyze {SCHEMA}.{name}"],
            teardown=[f"drop schema if exists {SCHEMA} cascade"],
        ),
        schedule=schedule,
        watch=Watch(overhead_blocks=0, statements=plans_counted, statement_cache=caches_told),
        embedded_settings={"pg_stat_statements.track_planning": "on"} if plans_counted else {},
        judge=judge,
    )


def mariadb_plan(plan: Plan, table: tuple[str, Sequence[str]], target: str) -> Plan:
    """Such a plan on MariaDB: the table made by its SQL, all else as it is."""
    name, made = table
    work = replace(
        plan.workload,
        setup=[f"create schema {SCHEMA}", *made, f"analyze table {SCHEMA}.{name}"],
        teardown=[f"drop schema if exists {SCHEMA}"],
    )
    return on_target(replace(plan, workload=work), target)
