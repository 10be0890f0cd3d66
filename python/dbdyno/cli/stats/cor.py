"""`dbdyno stats cor`: correlation of two columns."""

from __future__ import annotations

import click

from dbdyno.cli.stats.options import (
    Input,
    PartsOutput,
    Row,
    level_option,
    p_fields,
    reading_options,
    x_options,
    y_option,
)


@click.command("cor")
@reading_options
@x_options
@y_option
@click.option("--kendall", is_flag=True, help="Also compute Kendall's tau.")
@level_option
def command(given: Input, output: PartsOutput, xs: tuple[str, ...], y: str, kendall: bool, level: float) -> None:
    """Correlate -x with -y: Pearson's r with interval and p, Spearman's rho with p.

    \b
    dbdyno stats cor statements.csv -x hit_ratio -y elapsed_ms
    """
    from dbdyno.cli.stats.read import pairs
    from dbdyno.stats.correlation import correlate

    *columns, target = pairs(given, [*xs, y])
    rows: list[Row] = []
    for name, column in zip(xs, columns, strict=True):
        for c in correlate(column, target, level=level, tau=kendall):
            rows.append(
                {
                    "x": name,
                    "y": y,
                    "method": c.method,
                    "value": c.value,
                    "n": c.n,
                    "low": c.low,
                    "high": c.high,
                    "statistic": c.statistic,
                    "of": c.statistic_name,
                    "df": c.df,
                    **p_fields(c.log10_p),
                    "how": c.how,
                    "note": c.note,
                }
            )
    output.show_parts([("correlations", "", rows)])
