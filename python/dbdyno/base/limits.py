"""Numbers on the command line: each has both limits, and is a number.

`nan` passes every limit, since each comparison with it is false; a count that no machine integer holds ends in the
core or in SQL, where nobody says which option it came from.
"""

from __future__ import annotations

import math
from typing import Any

import click

COUNT_MOST = 10**9
DAY_S = 86_400.0


class Number(click.FloatRange):
    """A finite number between two limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises `click.BadParameter` for what is none, or out of its limits."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Count(click.IntRange):
    """How many: from `least` on; more than a billion are told to be too many."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(least, COUNT_MOST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises `click.BadParameter` for what is none, too few or too many."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if error.message.endswith(f"{self._describe_range()}."):
                self.fail(f"{value} is not in the range {self.min:,} to {COUNT_MOST:,}.", param, ctx)
            raise

    def _describe_range(self) -> str:
        """For the help, where the upper limit tells nobody anything."""
        return f"x>={self.min}"
