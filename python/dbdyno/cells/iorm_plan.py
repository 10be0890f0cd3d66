"""A cell's IORM plan: parsed from LIST IORMPLAN DETAIL, and the ALTER command that restores it.

    dbPlan:    name=sales,share=8,flashLog=on       alter iormplan dbplan=
               name=default,share=1           ->      ((name=sales,share=8,flashLog=on),
                                                       (name=default,share=1))

ALTER IORMPLAN dbplan= replaces the whole plan of the databases and nothing else. Therefore a plan may be changed only
if every directive can be written back: a directive that is not made of name=value words is refused, as is a plan that
is not in effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.base.errors import CellsError
from dbdyno.cells.listing import read_text

LIST_COMMAND = "cellcli -e list iormplan detail"
REST_DIRECTIVES = ("other", "default")
"""Names of the directive for all databases that have none: in plans by allocation, and in plans by share."""
_WORD = re.compile(r"[A-Za-z]\w*=[A-Za-z0-9_.$#%-]+")
_NAME = re.compile(r"[A-Za-z][\w.$#]{0,29}")

Directive = tuple[tuple[str, str], ...]
"""Attributes of the directive for one database, in their order, including `name`."""


@dataclass(frozen=True)
class IormPlan:
    """IORM plan as a cell shows it."""

    directives: tuple[Directive, ...]
    objective: str = ""
    status: str = ""
    categories: str = ""

    @property
    def active(self) -> bool:
        """Return True if the plan is in effect."""
        return self.status.lower() == "active"


def plan_of(text: str, cell: str) -> IormPlan:
    """Parse the plan from the output of LIST IORMPLAN DETAIL on `cell`.

    Raises:
        CellsError: There is no plan, or a directive could not be written back.
    """
    details = [one for one in read_text(text).details if "dbPlan" in one]
    if len(details) != 1:
        raise CellsError(
            "shows no readable IORM plan",
            where=cell,
            next_step="see its output with `dbdyno cells run 'list iormplan detail'`",
        )
    found = details[0]
    lines = found["dbPlan"].strip().strip('"').splitlines()
    return IormPlan(
        tuple(_directive(line, cell) for line in lines if line.strip()),
        found.get("objective", ""),
        found.get("status", ""),
        found.get("catPlan", ""),
    )


def _directive(line: str, cell: str) -> Directive:
    words = [word.strip() for word in line.strip().rstrip(",").split(",")]
    directive = tuple((word.partition("=")[0], word.partition("=")[2]) for word in words)
    keys = [key.lower() for key, _ in directive]
    if not all(_WORD.fullmatch(word) for word in words) or keys.count("name") != 1:
        raise CellsError(
            f"its IORM plan cannot be restored, because a directive is not understood: {line.strip()[:60]!r}",
            where=cell,
            next_step="change the plan manually with `dbdyno cells run`; nothing was changed",
        )
    return directive


def check_plan(wire: object) -> tuple[Directive, ...]:
    """Check directives that come from a file, under the same rules as those read from a cell.

    Raises:
        CellsError: The values are not directives.
    """
    if not isinstance(wire, list | tuple):
        raise CellsError("the directives of a plan are not a list")
    directives = []
    for one in wire:
        pairs = one if isinstance(one, list | tuple) else ()
        if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise CellsError(f"{str(one)[:60]!r} is not a directive of a plan")
        directives.append(_directive(",".join(f"{key}={value}" for key, value in pairs), "the run's folder"))
    return tuple(directives)


def alter_command(directives: Sequence[Directive]) -> str:
    """Return the CellCLI command that sets these database directives, or removes the plan if there are none."""
    if not directives:
        return 'alter iormplan dbplan=""'
    texts = (",".join(f"{key}={value}" for key, value in one) for one in directives)
    return f"alter iormplan dbplan=({','.join(f'({text})' for text in texts)})"


def is_same_plan(first: Sequence[Directive], second: Sequence[Directive]) -> bool:
    """Return True if two plans mean the same, regardless of case and of the order of attributes and directives.

    The order of directives does not matter, because no two name the same database.
    """
    return _meaning(first) == _meaning(second)


def _meaning(directives: Sequence[Directive]) -> list[list[tuple[str, str]]]:
    return sorted(sorted((key.lower(), value.lower()) for key, value in one) for one in directives)


def with_flash_log(plan: IormPlan, databases: Sequence[str], on: bool) -> tuple[Directive, ...]:
    """Return the plan's directives with flashLog of these databases switched on or off, and everything else unchanged.

    A database without a directive gets one with the attributes of the directive for all other databases. If the plan
    has no directives, a directive for all other databases is added too, with the flash log on, as it is without a plan.

    Raises:
        CellsError: A name is not valid, or a new directive would move resources because the plan is by allocation.
    """
    found = list(plan.directives)
    for database in databases:
        if not _NAME.fullmatch(database):
            raise CellsError(
                f"{database!r} is not a database name", next_step="use letters, digits and the characters _ $ #"
            )
        at = next((n for n, one in enumerate(found) if _name(one) == database.lower()), None)
        if at is None:
            found.insert(_before_rest(found), _like_rest(found, database))
            at = next(n for n, one in enumerate(found) if _name(one) == database.lower())
        found[at] = _with_value(found[at], "flashLog", "on" if on else "off")
    if not plan.directives:
        found.append((("name", "other"), ("flashLog", "on")))
    return tuple(found)


def _name(directive: Directive) -> str:
    return next(value.lower() for key, value in directive if key.lower() == "name")


def _before_rest(directives: list[Directive]) -> int:
    return next((at for at, one in enumerate(directives) if _name(one) in REST_DIRECTIVES), len(directives))


def _like_rest(directives: list[Directive], database: str) -> Directive:
    """Return a directive for a database to which the directive for all other databases has applied so far."""
    if any(key.lower() in ("level", "allocation") for one in directives for key, _ in one):
        raise CellsError(
            f"database {database} has no directive in the plan, which is based on allocation: a new directive "
            f"would take resources from other databases",
            next_step="give the database a directive manually first, or choose a database that has one",
        )
    rest = next((one for one in directives if _name(one) in REST_DIRECTIVES), ())
    return (("name", database), *((k, v) for k, v in rest if k.lower() not in ("name", "flashlog")))


def _with_value(directive: Directive, key: str, value: str) -> Directive:
    if any(own.lower() == key.lower() for own, _ in directive):
        return tuple((k, value if k.lower() == key.lower() else v) for k, v in directive)
    return (*directive, (key, value))
