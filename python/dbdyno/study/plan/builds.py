"""One plan for several builds of a program: an arm for each build, whose folder replaces `{build}` in the plan.

    [workload]
    command = "{build}/bench --rows 1000"

A plan for builds has one arm. Builds can differ only in values that a single arm can have: scripts, command, variables,
server, client.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import PlanError
from dbdyno.base.files import read_user_file
from dbdyno.study.plan.file import read_plan
from dbdyno.study.plan.plan import Arm, Plan

PLACE = "{build}"
SAFE = re.compile(r"[\w./+@%,=-]+")
"""Pattern of characters that have no special meaning in a command, a script or a path."""


def plan_of_builds(path: Path, folders: Mapping[str, Path]) -> Plan:
    """Return the plan with an arm for each build, by name; the first is the base.

    Raises:
        PlanError: The plan has several arms, does not name `{build}`, or names it where arms cannot differ.
    """
    plans = {name: read_plan(path, words={PLACE: _safe(folder)}) for name, folder in folders.items()}
    first = next(iter(plans.values()))
    if len(first.arms) != 1:
        raise PlanError(
            f"has {len(first.arms)} arms; expected one, because --build makes one arm per build",
            where=str(path),
            next_step="keep only one [[arm]]",
        )
    if PLACE not in first.toml:
        raise PlanError(
            f"does not use the build, because {PLACE} does not occur in the plan",
            where=str(path),
            next_step=f'write the folder of the build as {PLACE}, such as command = "{PLACE}/bench"',
        )
    if any(_shared_plan(plan) != _shared_plan(first) for plan in plans.values()):
        raise PlanError(
            f"has {PLACE} in a value that all arms share",
            where=str(path),
            next_step=f"use {PLACE} in scripts, command, variables, or in the server or client of the arm",
        )
    return replace(first, arms=[_arm(plan, name) for name, plan in plans.items()], of_builds=True)


def text_for_builds(path: Path) -> str | None:
    """Return the text of a plan file that contains `{build}`; None for any other file, or for an unreadable one."""
    try:
        text = read_user_file(path)
    except (OSError, UnicodeDecodeError):
        return None
    return text if PLACE in text else None


def _safe(folder: Path) -> str:
    """Return the absolute path of a folder as text.

    Raises:
        PlanError: The path has a character with a special meaning in commands or scripts, such as a space.
    """
    text = str(folder.absolute())
    if not SAFE.fullmatch(text):
        raise PlanError(
            "is a folder whose name contains a space or a character that is special in commands",
            where=text,
            next_step="use a folder with only letters, digits and -_./",
        )
    return text


def _arm(plan: Plan, name: str) -> Arm:
    """Return the arm of a build, with the scripts, command and variables that the plan defines for it."""
    arm = plan.arms[0]
    return replace(
        arm,
        name=name,
        scripts=plan.scripts_of(arm) or None,
        command=plan.command_of(arm) or None,
        variables={**plan.workload.variables, **arm.variables},
    )


def _shared_plan(plan: Plan) -> Plan:
    """Return the plan without settings that belong to a single arm."""
    work = replace(plan.workload, scripts=[], command=None, variables={})
    return replace(plan, workload=work, arms=[])
