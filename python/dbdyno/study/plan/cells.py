"""The study flash-log on storage cells: its factors, and the plan that follows from them.

dbdyno run flash-log --target cells:exa1cel[01-14] --set database=SALES
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.bench.cells.plan import CELLS, CellsPlan
from dbdyno.study.plan.factors import option_values
from dbdyno.study.plan.plan import Plan, Schedule

FACTORS = {"database": "", "flash_log": "off,on", "turn": "120s", "patience": "5min", "held": "refuse"}
"""Factors of flash-log on cells, with their defaults."""
_BLOCKS, _BLOCKS_QUICK = 10, 4


def flash_log(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    """Return the plan of flash-log on cells, converted to a `Plan`.

    Raises:
        PlanError: As in `flash_log_on_cells`.
    """
    return flash_log_on_cells(options, quick, target).to_plan()


def flash_log_on_cells(options: Mapping[str, str], quick: bool, target: str) -> CellsPlan:
    """Return the plan of flash-log on cells as a `CellsPlan`.

    Raises:
        PlanError: No cell is named, or an option has an invalid value.
    """
    from dbdyno.trace.units import length_ns

    chosen = {**FACTORS, **options}
    if not target.removeprefix(CELLS).strip(", "):
        raise PlanError(
            "no cell is given",
            where="--target",
            next_step="name the cells with --target cells:HOST1,HOST2 or cells:@FILE",
        )
    return CellsPlan(
        hosts=target.removeprefix(CELLS),
        databases=tuple(option_values(chosen["database"], "database")) if chosen["database"] else (),
        arms=_arms(chosen["flash_log"]),
        turn_ns=length_ns(chosen["turn"], "--set turn"),
        patience_s=length_ns(chosen["patience"], "--set patience") / 1e9,
        held=_parse_held(chosen["held"]),
        schedule=Schedule(blocks=_BLOCKS_QUICK if quick else _BLOCKS, warmup_blocks=0),
    )


def _arms(text: str) -> tuple[bool, ...]:
    levels = option_values(text, "flash_log")
    if sorted(levels) != ["off", "on"]:
        raise PlanError(
            f"{text!r} does not name both arms",
            where="--set flash_log",
            next_step="write off,on or on,off (the first is the base), or add --aa to run the base against itself",
        )
    return tuple(level == "on" for level in levels)


def _parse_held(text: str) -> bool:
    if text not in ("refuse", "ours"):
        raise PlanError(
            f"expected refuse or ours, found {text!r}",
            where="--set held",
            next_step="write --set held=ours if the flashLog= in the IORM plan is yours; dbdyno restores it unchanged",
        )
    return text == "ours"
