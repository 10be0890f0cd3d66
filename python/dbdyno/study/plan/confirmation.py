"""Plan that confirms the result of a race: two of its arms in new blocks, as a file that can be run separately."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from dbdyno.base.errors import PlanError
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import Arm, Plan, Script, Server

_TABLE = re.compile(r"^\s*\[\[?\s*([\w.-]+)\s*\]\]?\s*(#.*)?$")
_DESIGN = re.compile(r"^\s*design\s*=")


def confirming_plan(plan: Plan, base: Arm, winner: Arm, blocks: int) -> Plan:
    """Return the two arms as an ordinary experiment; `toml` is empty if the plan cannot be written as TOML."""
    own = [replace(base, against=None, levels={}), replace(winner, against=None, levels={})]
    made = replace(
        plan,
        title=f"{plan.title}: {winner.name} against {base.name}",
        arms=own,
        factors=[],
        kind="experiment",
        schedule=replace(plan.schedule, blocks=blocks),
    )
    return replace(made, toml=_text(plan, made, own))


def _text(plan: Plan, made: Plan, arms: list[Arm]) -> str:
    """Return the plan's text with its factors and arms replaced; empty if reading that text gives another plan."""
    kept, skipping, inside = [], False, False
    for line in plan.toml.splitlines():
        match = _TABLE.match(line)
        if match:
            inside, skipping = True, match[1].split(".")[0] in ("factor", "arm")
        if not skipping and (inside or not _DESIGN.match(line)):
            kept.append(line)
    text = "\n".join([*kept, "", *(_arm(arm) for arm in arms)])
    try:
        read = parse_plan(text, Path("confirm.toml"))
    except PlanError:
        return ""
    return text if read.arms == made.arms and read.workload == made.workload else ""


def _arm(arm: Arm) -> str:
    lines = ["[[arm]]"]
    for field in fields(Arm):
        value = getattr(arm, field.name)
        if field.name not in ("levels", "against") and (value or field.name == "name"):
            lines.append(f"{field.name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Script):
        return _toml({"name": value.name, "text": value.text, "weight": value.weight})
    if isinstance(value, Server):
        return _toml({name: own for name, own in asdict(value).items() if own})
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    # A JSON string is a valid TOML string: every escape of JSON also exists in TOML.
    return json.dumps(value, ensure_ascii=False)
