"""`dbdyno stats prob-r`: the significance of a correlation from r and n alone."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import format_options
from dbdyno.cli.stats_options import level_option, p_fields, show_list


@click.command("prob-r", context_settings={"ignore_unknown_options": True})
@click.argument("r", type=float)
@click.argument("n", type=int)
@level_option
@format_options
def command(r: float, n: int, level: float, form: str | None, output: Path | None) -> None:
    """Two-sided p of a correlation R over N independent pairs, and its interval.

    \b
    dbdyno stats prob-r 0.33 600
    dbdyno sql "select prob_r(corr(a, b), count(*)) from ..."
    """
    from dbdyno.stats.correlation import NOTE, fisher_interval, prob_r_log10

    low, high = fisher_interval(r, n, level) if -1 <= r <= 1 else (float("nan"),) * 2
    row = {"r": r, "n": n, **p_fields(prob_r_log10(r, n)), "low": low, "high": high, "note": NOTE}
    show_list([row], form, output)
