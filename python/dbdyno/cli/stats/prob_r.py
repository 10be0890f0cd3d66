"""`dbdyno stats prob-r`: significance of a correlation, from r and n only."""

from __future__ import annotations

import math
from typing import Any

import click

from dbdyno.cli.stats.options import PartsOutput, level_option, output_options, p_fields


class WholeNumber(click.ParamType[int]):
    """Parameter type for an integer, which may also be written as 1e6 or 1_000_000."""

    name = "whole number"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Convert the value to an int.

        Raises:
            click.BadParameter: the value is not a whole number.
        """
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not number.is_integer():
            self.fail(f"{value!r} is not a whole number such as 600 or 1e6", param, ctx)
        return int(value) if str(value).lstrip("-").isdigit() else int(number)


@click.command("prob-r", context_settings={"ignore_unknown_options": True})
@click.argument("r", type=float)
@click.argument("n", type=WholeNumber())
@level_option
@output_options
def command(r: float, n: int, level: float, output: PartsOutput) -> None:
    """Two-sided p of a correlation R over N independent pairs, and its interval.

    \b
    dbdyno stats prob-r 0.33 600
    dbdyno sql "select prob_r(corr(a, b), count(*)) from ..."
    """
    from dbdyno.stats.correlation import NOTE, fisher_interval, prob_r_log10

    low, high = fisher_interval(r, n, level) if -1 <= r <= 1 else (float("nan"),) * 2
    row = {"r": r, "n": n, **p_fields(prob_r_log10(r, n)), "low": low, "high": high, "note": NOTE}
    output.show_list([row])
