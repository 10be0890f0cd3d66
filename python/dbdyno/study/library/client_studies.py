"""Common plan of the studies on clients: a table created for the study, one script, and a curve for each factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbdyno.study.plan.factors import Level, combine_levels
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Heading
from dbdyno.study.plan.targets import plan_on_target

SCHEMA = "dbdyno"
"""Schema of the table; it is dropped with the table."""


def client_plan(
    heading: Heading,
    factors: Mapping[str, Sequence[Level]],
    script: Script,
    table: tuple[str, Sequence[str]],
    schedule: Schedule,
    judge: Judge,
    *,
    plans_counted: bool = False,
    caches_recorded: bool = False,
) -> Plan:
    """Return a sweep over every combination of the factors' levels; a factor with one level has no curve.

    Args:
        heading: Name of the study, and the question that it answers.
        factors: Levels of each factor.
        script: The script that the sessions run.
        table: Name of the table, and the SQL that creates it in the schema.
        schedule: Schedule of the plan.
        judge: Rules of the verdict.
        plans_counted: True if the server must count statements and how often it plans them.
        caches_recorded: True to record what a session caches of its statements.
    """
    name, made = table
    return Plan(
        **heading,
        kind="sweep",
        arms=combine_levels(*factors.values()),
        factors=[factor for factor, levels in factors.items() if len(levels) > 1],
        workload=Workload(
            scripts=[script],
            setup=[f"create schema {SCHEMA}", *made, f"vacuum analyze {SCHEMA}.{name}"],
            teardown=[f"drop schema if exists {SCHEMA} cascade"],
        ),
        schedule=schedule,
        watch=Watch(overhead_blocks=0, statements=plans_counted, statement_cache=caches_recorded),
        embedded_settings={"pg_stat_statements.track_planning": "on"} if plans_counted else {},
        judge=judge,
    )


def mariadb_plan(plan: Plan, table: tuple[str, Sequence[str]], target: str) -> Plan:
    """Return the plan for MariaDB: other SQL creates the table, everything else is unchanged."""
    name, made = table
    work = replace(
        plan.workload,
        setup=[f"create schema {SCHEMA}", *made, f"analyze table {SCHEMA}.{name}"],
        teardown=[f"drop schema if exists {SCHEMA}"],
    )
    return plan_on_target(replace(plan, workload=work), target)
