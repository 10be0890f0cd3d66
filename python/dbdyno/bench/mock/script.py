"""The script of a mock: the times of each arm, and the effects planted in them.

The script is written as parameters of a workload of kind `mock`; an arm's parameters override the plan's:

    mean_us      mean time of an operation; by default 1000
    shape        "lognormal" (spread 0.3), "exponential" or "constant"
    drift        share by which the mean has grown at the last block: 0.5 ends at one and a half times
    outliers     share of operations that take a hundred times as long
    errors       share of operations that fail, with SQLSTATE 40001
    stall_block  number of a block in which everything stalls for `stall_ms`
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dbdyno.base.errors import PlanError

SHAPES = ("lognormal", "exponential", "constant")
SPREAD = 0.3
OUTLIER = 100


@dataclass(frozen=True)
class Script:
    """Distribution of one arm's operation times."""

    mean_us: float = 1000.0
    shape: str = "lognormal"
    drift: float = 0.0
    outliers: float = 0.0
    errors: float = 0.0
    stall_block: int = -1
    stall_ms: float = 500.0

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Script:
        """Return the script with a workload's parameters.

        Raises:
            PlanError: A parameter or the shape is unknown.
        """
        known = {field.name for field in fields(cls)}
        for name in parameters:
            if name not in known:
                raise PlanError(
                    f"a mock has no parameter {name!r}",
                    where=f"workload.parameters.{name}",
                    next_step=f"use only the parameters {', '.join(sorted(known))}",
                )
        script = cls(**parameters)
        if script.shape not in SHAPES:
            raise PlanError(
                f"{script.shape!r} is not a shape of a mock script", next_step=f"use one of {', '.join(SHAPES)}"
            )
        return script

    def elapsed_ns(self, dice: random.Random, progress: float) -> int:
        """Draw the time of one operation in ns; `progress` is 0 at the first counted block and 1 at the last."""
        mean_ns = self.mean_us * 1000 * (1 + self.drift * progress)
        drawn = {
            "lognormal": lambda: mean_ns * dice.lognormvariate(-SPREAD * SPREAD / 2, SPREAD),
            "exponential": lambda: dice.expovariate(1 / mean_ns),
            "constant": lambda: mean_ns,
        }[self.shape]()
        return max(1, round(drawn * (OUTLIER if dice.random() < self.outliers else 1)))
