"""Interface of the plan reader for modules that read one table of a plan: checked values, errors with lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, Protocol

from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.key import Key


class PlanReader(Protocol):
    """The reader of one plan. `where` names a table, `at` is its index among the tables of that name."""

    arms_most: int
    """Largest number of arms that the plan's factors may make."""

    path: Path
    """The plan's file."""

    def check(self, table: dict[str, object], allowed: tuple[Key, ...], where: str, at: int) -> JsonObject:
        """Return the table's values in the form of the plan; fail at the first wrong one."""
        ...

    def value(self, key: Key, value: Any, where: str, at: int) -> Any:
        """Return one value in the form of the plan."""
        ...

    def arm_values(self, own: dict[str, object], where: str, at: int) -> JsonObject:
        """Return an arm's values as `Arm` has them."""
        ...

    def fail(self, message: str, table: str, key: str, at: int, step: str | None = None) -> NoReturn:
        """Raise an error with the line of the key.

        Raises:
            PlanError: Always.
        """
        ...
