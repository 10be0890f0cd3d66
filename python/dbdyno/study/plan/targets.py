"""Plans on the bench that `--target` names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.bench.kinds import EMBEDDED, Kind, kind_of
from dbdyno.study.plan.devices import split_target
from dbdyno.study.plan.plan import Plan

STARTABLE_ENGINES = (*EMBEDDED, "mariadb")
"""Engines whose servers dbdyno can start itself."""
HOST, COMMANDS = "host", "programs:"
"""This host, and the target of a plan with a command."""


def plan_on_target(plan: Plan, target: str | None) -> Plan:
    """Return the plan on another target, or unchanged if `target` is None.

    The targets `postgres` and `embedded` both mean the embedded PostgreSQL.

    Raises:
        PlanError: The plan cannot run on the target, for example because the bench runs only its own studies.
    """
    if plan.workload.command is not None:
        if target not in (None, HOST, COMMANDS):
            raise PlanError(
                f"runs commands on this host, not on {kind_of(target).word}",
                where=plan.title,
                next_step="leave --target out",
            )
        return plan
    refuse_without_plans(plan.dsn if target is None else target, plan.title)
    if target is None:
        return plan
    target, devices = split_target(target)
    if target not in STARTABLE_ENGINES and plan.arms and all(arm.server for arm in plan.arms):
        raise PlanError(
            "dbdyno starts a server on this host for each arm, so a target cannot be named",
            where=plan.title,
            next_step=f"leave --target out, or name an embedded engine: {', '.join(STARTABLE_ENGINES)}",
        )
    return replace(plan, dsn=None if target in EMBEDDED else target, device={**plan.device, **devices})


def refuse_without_plans(target: str | None, where: str) -> None:
    """Raise an error if a target runs only its own studies.

    Raises:
        PlanError: The target runs only its own studies.
    """
    kind = kind_of(target)
    if not kind.has_plans:
        raise no_plan_error(kind, where)


def no_plan_error(kind: Kind, where: str) -> PlanError:
    """Return the error for a plan or study on a bench that runs only its own studies."""
    return PlanError(
        f"does not run on {kind.word}",
        where=where,
        next_step=f"use the study flash-log: dbdyno run flash-log --target {kind.usage}",
    )


def target_of_plan_file(plan_file: Path, target: str | None) -> str | None:
    """Return a target from a plan file; a file name in it is relative to the plan, as for scripts."""
    if target in EMBEDDED:
        return None
    kind = kind_of(target)
    if target is None or not kind.in_file or not target.endswith(".toml"):
        return target
    return f"{kind.begins}{plan_file.parent / kind.without_prefix(target)}"
