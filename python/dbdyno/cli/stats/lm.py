"""`dbdyno stats lm`: linear regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbdyno.cli.stats.options import (
    Input,
    Part,
    PartsOutput,
    level_option,
    p_fields,
    reading_options,
    x_options,
    y_option,
)

if TYPE_CHECKING:
    from dbdyno.stats.regression import LinearFit


@click.command("lm")
@reading_options
@x_options
@y_option
@click.option("--degree", type=click.IntRange(1, 20), default=1, help="Degree of the polynomial in the column of -x.")
@click.option("--no-intercept", is_flag=True, help="Fit without an intercept.")
@level_option
def command(
    given: Input, output: PartsOutput, xs: tuple[str, ...], y: str, degree: int, no_intercept: bool, level: float
) -> None:
    """Least squares of -y on one or several -x, with the table that R's summary(lm) prints.

    \b
    dbdyno stats lm runs.csv -y elapsed_ms -x rows -x sessions
    """
    from dbdyno.cli.stats.read import pairs
    from dbdyno.stats.regression import lm

    if degree > 1 and len(xs) > 1:
        raise click.UsageError("--degree works with one -x only")
    *columns, target = pairs(given, [*xs, y])
    fit = lm(target, *columns, names=xs, intercept=not no_intercept, degree=degree, level=level)
    output.show_parts(fit_parts(fit), head={"y": y})


def fit_parts(fit: LinearFit) -> list[Part]:
    """Return the residuals, the coefficients, and the figures of the whole fit, as parts of the answer."""
    names = ("min", "q1", "median", "q3", "max")
    whole = {
        "n": fit.n,
        "df": fit.df,
        "residual_error": fit.residual_error,
        "r2": fit.r2,
        "adjusted_r2": fit.adjusted_r2,
        "f": fit.f,
        "f_df": f"{fit.f_df[0]}, {fit.f_df[1]}",
        **p_fields(fit.f_log10_p),
        "note": fit.note,
    }
    rows = [
        {
            "coefficient": c.name,
            "estimate": c.estimate,
            "error": c.error,
            "t": c.t,
            **p_fields(c.log10_p),
            "low": c.low,
            "high": c.high,
        }
        for c in fit.coefficients
    ]
    residuals = dict(zip(names, fit.residual_quartiles, strict=True))
    return [
        ("residuals", "Residuals", [residuals]),
        ("coefficients", "Coefficients", rows),
        ("fit", "Fit", [whole]),
    ]
