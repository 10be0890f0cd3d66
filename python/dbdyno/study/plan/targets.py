"""A plan on the bench that `--target` names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.bench.kinds import EMBEDDED, Kind, kind_of
from dbdyno.study.plan.plan import Plan

STARTED = (*EMBEDDED, "mariadb")
"""Engines of which dbdyno starts servers itself."""
HOST, COMMANDS = "host", "programs:"
"""This host; and what a plan with a command runs on."""


def on_target(plan: Plan, target: str | None) -> Plan:
    """The plan on another target, unchanged where none is named; `postgres` and `embedded` are the
    embedded engine. Raises `PlanError` for a bench, named here or in the plan, on which only studies of its own run."""
    if plan.workload.command is not None:
        if target not in (None, HOST, COMMANDS):
            raise PlanError(
                f"runs commands of this host, not on {kind_of(target).word}",
                where=plan.title,
                next_step="leave --target out",
            )
        return plan
    refuse_without_plans(plan.dsn if target is None else target, plan.title)
    if target is None:
        return plan
    if target not in STARTED and plan.arms and all(arm.server for arm in plan.arms):
        raise PlanError(
            "every arm has a server of its own, which dbdyno starts on this host",
            where=plan.title,
            next_step=f"leave --target out, or name an embedded engine: {', '.join(STARTED)}",
        )
    return replace(plan, dsn=None if target in EMBEDDED else target)


def refuse_without_plans(target: str | None, where: str) -> None:
    """Raises `PlanError` where a target is of a kind that runs studies of its own only."""
    kind = kind_of(target)
    if not kind.has_plans:
        raise no_plan(kind, where)


def no_plan(kind: Kind, where: str) -> PlanError:
    """What is said where a plan or a study is to run on a bench that has studies of its own."""
    return PlanError(
        f"does not run on {kind.word}",
        where=where,
        next_step=f"flash-log does: dbdyno run flash-log --target {kind.usage}",
    )


def beside(plan_file: Path, target: str | None) -> str | None:
    """A target as a plan file names it: a file in it is relative to the plan, as scripts are."""
    if target in EMBEDDED:
        return None
    kind = kind_of(target)
    if target is None or not kind.in_file or not target.endswith(".toml"):
        return target
    return f"{kind.begins}{plan_file.parent / kind.rest(target)}"
