"""Plans of prepared statements: whether the server uses the generic plan, and the estimated costs.

PostgreSQL plans the first five executions of a prepared statement for their values. From the sixth on it uses the
generic plan, which is made without values, if its cost is not above the average cost of the plans for values, planning
included. Two servers may decide differently.

>>> plan_choice('[{"Plan": {"Filter": "(a = $1)", "Total Cost": 8.0}}]', ['[{"Plan": {"Total Cost": 9.0}}]'])
PlanChoice(is_generic=True, cost=8.0, custom_cost=9.0)
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_PARAMETER = re.compile(r"\$\d")


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The kind of plan that a server uses for a prepared statement.

    Attributes:
        is_generic: True for the generic plan.
        cost: Estimated cost of the plan that is executed; None if unknown.
        custom_cost: Mean estimated cost of the plans for values; None if unknown.
    """

    is_generic: bool
    cost: float | None
    custom_cost: float | None

    @property
    def as_text(self) -> str:
        """Describe the choice in words."""
        if not self.is_generic:
            return "plans for the values of each execution"
        costs = f"cost {self.cost:,.0f}" if self.cost is not None else "cost unknown"
        against = f", plans for its values {self.custom_cost:,.0f}" if self.custom_cost is not None else ""
        return f"its generic plan ({costs}{against})"


def plan_choice(executed: str, custom: Sequence[str]) -> PlanChoice:
    """Return the plan choice that a plan reveals.

    Args:
        executed: EXPLAIN of the prepared statement, as JSON.
        custom: EXPLAINs of the statement with sets of its values, as JSON; empty ones are skipped.
    """
    has_literals_only = not any(_PARAMETER.search(text) for text in custom)
    costs = [cost for text in custom if (cost := _cost(text)) is not None]
    return PlanChoice(
        has_literals_only and _PARAMETER.search(executed) is not None,
        _cost(executed),
        statistics.fmean(costs) if costs else None,
    )


def _cost(text: str) -> float | None:
    try:
        return float(json.loads(text)[0]["Plan"]["Total Cost"])
    except (ValueError, LookupError, TypeError):
        return None
