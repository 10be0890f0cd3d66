"""Parameter types for numbers on the command line: both limits are checked, and NaN is refused.

`nan` would pass every limit, since each comparison with it is false. A count too large for a machine integer would fail
in the core or in SQL, where the error cannot name the option it came from.
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
        """Convert the value to a finite float.

        Raises:
            click.BadParameter: the value is not a finite number, or is out of range.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Count(click.IntRange):
    """A whole number from `least` to one billion."""

    def __init__(self, least: int = 1) -> None:
        super().__init__(least, COUNT_MOST)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the value to an integer.

        Raises:
            click.BadParameter: the value is not an integer, too small or too large.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if error.message.endswith(f"{self._describe_range()}."):
                self.fail(f"{value} is not in the range {self.min:,} to {COUNT_MOST:,}.", param, ctx)
            raise

    def _describe_range(self) -> str:
        """Return the range as text for the help, without an upper limit that is only a safeguard."""
        return f"x>={self.min}"
