"""ALTER IORMPLAN of a modelled cell: resource management, checked and put in effect.

    alter iormplan dbplan=((name=ORCL, share=4, flashLog=off), (name=other, share=1))

Shares, levels with allocations, limits, flashCache and flashLog per database take effect in the model immediately;
directives without a share, a level and a limit do not affect disks. An objective is stored and shown, but has no
effect; categories are not supported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.cells.numbers import number_and_unit
from dbdyno_rig.language import Change, Value, raise_syntax_error, refusal, text_of
from dbdyno_rig.state import CellState

OBJECTIVES = ("basic", "auto", "low_latency", "balanced", "high_throughput")
SPELLINGS = {
    "name": "name",
    "share": "share",
    "level": "level",
    "allocation": "allocation",
    "limit": "limit",
    "flashcache": "flashCache",
    "flashlog": "flashLog",
}
"""Attributes of a directive that the model supports, by lower-case name."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_$#.]{0,29}")


def alter_iorm_plan(cell: CellState, change: Change) -> str:
    """Change the IORM plan and return what CellCLI prints."""
    if change.words in (("active",), ("inactive",)) and not change.options:
        cell.plan.active = change.words == ("active",)
        _put_plan(cell, cell.plan.database)
        return "IORMPLAN successfully altered\n"
    if change.words or not change.options or set(change.options) - {"objective", "dbplan", "catplan"}:
        raise_syntax_error()
    objective = text_of(change.options.get("objective", cell.plan.objective)).lower()
    if objective not in OBJECTIVES:
        raise_syntax_error()
    if change.options.get("catplan", "") not in ("", []):
        raise refusal("this model does not support categories")
    if "dbplan" in change.options:
        lines = _lines(change.options["dbplan"])
        _put_plan(cell, lines)
        cell.plan.database = lines
    cell.plan.objective = objective
    return "IORMPLAN successfully altered\n"


def _put_plan(cell: CellState, lines: Sequence[str]) -> None:
    """Put directives in effect in the model; an inactive plan has no effect."""
    directives = [dict(word.split("=", 1) for word in line.split(",")) for line in lines]
    plan = {_known_as(one["name"]): _in_model(one) for one in directives}
    cell.rack.run_command(cell.number, "plan", plan=plan if cell.plan.active else {})


def _known_as(name: str) -> str:
    return "other" if name.lower() in ("other", "default") else name


def _in_model(directive: dict[str, str]) -> JsonObject:
    return {
        "share": int(directive.get("share", 0)),
        "level": int(directive.get("level", 0)),
        "allocation": float(directive.get("allocation", 0)),
        "limit": float(directive.get("limit", 100)),
        "flash_cache": directive.get("flashCache", "on") == "on",
        "flash_log": directive.get("flashLog", "on") == "on",
    }


def _lines(value: Value) -> list[str]:
    """Return the directives of a dbplan, checked, as one text each; no directives for '', which removes the plan."""
    if value in ("", []):
        return []
    directives = [value] if isinstance(value, dict) else value
    if not isinstance(directives, list):
        raise_syntax_error()
    lines, names = [], []
    for directive in directives:
        if not isinstance(directive, dict):
            raise_syntax_error()
        checked = _directive(directive)
        names.append(checked["name"].lower())
        lines.append(",".join(f"{key}={text}" for key, text in checked.items()))
    if len(set(names)) < len(names):
        raise refusal("the plan has two directives for the same database")
    _check_levels(directives, names)
    return lines


def _directive(directive: dict[str, Value]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for key, value in directive.items():
        if key not in SPELLINGS:
            raise refusal(f"this model does not support {key} in a directive")
        text = text_of(value)
        if key == "name":
            good = _NAME.fullmatch(text) is not None
        elif key in ("flashcache", "flashlog"):
            text = text.lower()
            good = text in ("on", "off")
        else:
            number = number_and_unit(text)
            low, high = {"share": (1, 32), "level": (1, 8)}.get(key, (0 if key == "allocation" else 1, 100))
            good = number is not None and number[1] == "" and low <= number[0] <= high
            good = good and text.isdigit()
        if not good:
            raise_syntax_error()
        checked[SPELLINGS[key]] = text
    if "name" not in checked or ("share" in checked and "allocation" in checked):
        raise_syntax_error()
    if ("level" in checked) != ("allocation" in checked):
        raise_syntax_error()
    return checked


def _check_levels(directives: Sequence[Any], names: Sequence[str]) -> None:
    sums: dict[str, int] = {}
    for directive in directives:
        if "level" in directive:
            sums[directive["level"]] = sums.get(directive["level"], 0) + int(directive["allocation"])
    if sums and "other" not in names:
        raise refusal("a plan with allocations must have a directive for other")
    for level, total in sums.items():
        if total > 100:
            raise refusal(f"the allocations of level {level} add up to {total}, which is more than 100")
