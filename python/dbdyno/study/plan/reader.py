"""Interface of the plan reader for modules that read one table: it checks values and names lines in errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, Protocol

from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.key import Key


class PlanReader(Protocol):
    """The reader of one plan. `where` names a table, `at` is its index among the tables of that name."""

    arms_most: int
    """Largest number of arms that the plan's factors can make."""

    path: Path
    """The plan's file."""

    def check(self, table: dict[str, object], allowed: tuple[Key, ...], where: str, at: int) -> JsonObject:
        """Return the table's values in the form that the plan needs; fail at the first invalid value."""
        ...

    def value(self, key: Key, value: Any, where: str, at: int) -> Any:
        """Return one value in the form that the plan needs."""
        ...

    def arm_values(self, own: dict[str, object], where: str, at: int) -> JsonObject:
        """Return an arm's values in the form that `Arm` needs."""
        ...

    def fail(self, message: str, table: str, key: str, at: int, step: str | None = None) -> NoReturn:
        """Raise an error with the line of the key.

        Raises:
            PlanError: Always.
        """
        ...
