"""What the reader of a plan offers to those who read a table of it: checked values, errors with their line."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from dbdyno.study.plan.key import Key


class Reading(Protocol):
    """The reader at work on one plan. `where` names a table, `at` which of that name."""

    arms_most: int
    """How many arms the plan's factors may make."""

    def check(self, table: dict[str, object], allowed: tuple[Key, ...], where: str, at: int) -> dict[str, Any]:
        """The table's values in the form of the plan; fails at the first wrong one."""
        ...

    def value(self, key: Key, value: Any, where: str, at: int) -> Any:
        """One value in the form of the plan."""
        ...

    def arm_values(self, own: dict[str, object], where: str, at: int) -> dict[str, Any]:
        """An arm's values as `Arm` has them."""
        ...

    def fail(self, message: str, table: str, key: str, at: int, step: str | None = None) -> NoReturn:
        """Raises `PlanError` with the line of the key."""
        ...
