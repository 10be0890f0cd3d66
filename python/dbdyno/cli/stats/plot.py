"""`dbdyno stats plot`: figures of one or two columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dbdyno.base.limits import Count
from dbdyno.cli.parameters import FILE, option_with_default
from dbdyno.cli.stats.options import Input, by_option, input_options

KINDS = ("scatter", "histogram", "density", "longest", "usl")


@click.command("plot")
@input_options
@click.option("-x", "x", metavar="COL", help="Column with the x values; for a histogram, with the values to count.")
@click.option("-y", "y", metavar="COL", help="Column with the y values; for a histogram, with the values to count.")
@by_option
@click.option(
    "--kind", type=click.Choice(KINDS), help="Kind of figure (default: scatter with -x and -y, else histogram)."
)
@click.option("--log/--linear", "log", default=None, help="Use logarithmic axes in a scatter plot.")
@option_with_default("--longest", type=Count(2), default=10_000, help="With --kind longest: number of rows.")
@click.option(
    "-o",
    "--output",
    type=FILE,
    help="Write the figure to this file, as PNG, SVG or HTML by its suffix (default: print it as text).",
)
def command(
    given: Input,
    x: str | None,
    y: str | None,
    by: str | None,
    kind: str | None,
    log: bool | None,
    longest: int,
    output: Path | None,
) -> None:
    """Draw two columns as points with their regression line, or the distribution of one column by group.

    \b
    dbdyno stats plot statements.csv -x hit_ratio -y elapsed_ms -o cor.png
    dbdyno stats plot last:waits --by arm --kind density -o waits.svg
    dbdyno stats plot last:waits --by arm --kind longest
    """
    kind = kind or ("scatter" if x is not None and y is not None else "histogram")
    if kind in ("scatter", "usl"):
        if x is None or y is None:
            raise click.UsageError(f"--kind {kind} needs -x and -y")
        if by is not None:
            raise click.UsageError(f"--by does not work with --kind {kind}")
        text, chart = _of_two(given, kind, x, y, log)
    else:
        if x is not None and y is not None:
            raise click.UsageError(f"--kind {kind} takes one column, with -x or -y")
        text, chart = _of_one(given, kind, x or y, by, longest)
    if output is None:
        click.echo(text())
        return
    from altair.utils.schemapi import debug_mode

    from dbdyno.report.charts import write_chart

    with debug_mode(False):
        write_chart(chart(), output)
    click.echo(str(output))


def _of_two(source: Input, kind: str, x: str, y: str, log: bool | None) -> tuple[Any, Any]:
    from dbdyno.cli.stats import draw as stats_draw
    from dbdyno.cli.stats.read import pairs
    from dbdyno.stats import plots

    a, b = pairs(source, [x, y])
    if kind == "scatter":
        from dbdyno.report.figures import scatter

        model = plots.scatter(a, b, log=log)
        return lambda: stats_draw.scatter(model, x, y), lambda: scatter.draw(model, x, y)
    from dbdyno.report.figures import usl as figure
    from dbdyno.stats.arrays import complete_rows
    from dbdyno.stats.scalability import usl

    a, b = complete_rows(a, b)
    fitted = plots.scaling_points(usl(a, b), a, b)
    return lambda: stats_draw.draw_scaling(fitted, x, y), lambda: figure.draw(fitted, x, y)


def _of_one(source: Input, kind: str, y: str | None, by: str | None, longest: int) -> tuple[Any, Any]:
    from dbdyno.base.errors import StatsError
    from dbdyno.cli.stats import draw as stats_draw
    from dbdyno.cli.stats.read import describe_operands
    from dbdyno.stats import plots

    found, column, _ = describe_operands(source, column=y, by=by, longest=longest if kind == "longest" else 0)
    if not any(group.n for group in found.groups):
        raise StatsError("there are no values to draw", next_step="check the condition of --where")
    if kind == "histogram":
        from dbdyno.report.figures import histogram

        few = plots.histogram(found, bins=24)
        model = plots.histogram(found)
        return lambda: stats_draw.bars(few["groups"]), lambda: histogram.draw(model, column)
    if kind == "density":
        from dbdyno.report.figures import density

        model = plots.density(found)
        return lambda: stats_draw.densities(model, column), lambda: density.draw(model, column)
    from dbdyno.report.figures import scatter_longest

    model = plots.longest_values(found)
    return lambda: stats_draw.ranks(model, column), lambda: scatter_longest.draw(model, column)
