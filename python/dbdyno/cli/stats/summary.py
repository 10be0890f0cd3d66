"""`dbdyno stats summary`: the figures of R's summary(), and quantiles of the tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbdyno.cli.stats import options as shared

if TYPE_CHECKING:
    from dbdyno.stats.description import Description


@click.command("summary")
@shared.reading_options
@shared.column_option
@shared.by_option
@shared.level_option
@shared.engine_option
def command(
    given: shared.Input, output: shared.PartsOutput, column: str | None, by: str | None, level: float, engine: str
) -> None:
    """Count, minimum, quartiles, mean, maximum, standard deviation and tail of a column.

    \b
    dbdyno stats summary last:calls --by arm --where "kind = 'commit'"
    dbdyno stats summary 'waits/*.parquet' -y elapsed_ns --by event --format csv

    Quantiles are exact, of type 7 as in R; a quantile is shown only if at least ten values are beyond it.
    """
    from dbdyno.cli.stats.read import describe_operands

    found, used, _ = describe_operands(given, column=column, by=by, level=level, engine=engine)
    if found.approximate:
        click.echo(f"note: {found.approximate}", err=True)
    shared.note_infinite(found.groups)
    rows = summary_rows(found, used if by is None and len(given.operands) == 1 else None)
    output.show_list(rows)


def summary_rows(described: Description, name: str | None = None) -> list[shared.Row]:
    """Return one row per group; `name` replaces the group's name if there is only one."""
    rows = []
    for group in described.groups:
        quartiles = {q.name: q.value for q in group.quantiles if q.q in (0.25, 0.5, 0.75)}
        row: shared.Row = {
            "group": name if name is not None else group.name,
            "n": group.n,
            "missing": group.missing,
            "min": group.min,
            "q1": quartiles["p25"],
            "median": quartiles["p50"],
            "mean": group.mean,
            "q3": quartiles["p75"],
            "max": group.max,
            "sd": group.sd,
        }
        row |= {q.name: q.value for q in group.quantiles if q.q > 0.75}
        rows.append(row)
    return rows
