"""`dbdyno model calibrate`: a device from measured latencies."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import folder_option
from dbdyno.cli.pages import page_options, show_page
from dbdyno.errors import ModelError

UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}


@click.command("calibrate")
@click.argument("operand", metavar="RUN|FILE")
@click.option("--event", help="Of a run: the waits for this event, such as 'WALSync'.")
@click.option("--calls", "kind", metavar="KIND", help="Of a run: the calls of this kind.")
@click.option("--column", "-y", help="Of a file: the column with the latencies.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="Its unit; else the column's ending.")
@click.option("--where", metavar="SQL", help="Only rows for which this holds.")
@click.option("--name", default="measured", show_default=True, help="The device's name.")
@page_options
@folder_option
def command(
    operand: str,
    event: str | None,
    kind: str | None,
    column: str | None,
    unit: str | None,
    where: str | None,
    name: str,
    form: str | None,
    output: Path | None,
    folder: Path,
) -> None:
    """Fit an empirical device to latencies of a RUN, or of a column of a CSV or Parquet FILE.

    Latencies are taken in the order of the rows, which should be the order measured. -o FILE.toml
    writes the device for a machine file.

    \b
    dbdyno model calibrate last --calls commit
    dbdyno model calibrate latencies.csv --column write_us -o device.toml
    """
    from dbdyno.cli import stats_source
    from dbdyno.model.calibrate import calibration

    if event and kind:
        raise ModelError("is it waits or calls?", next_step="give --event or --calls, not both")
    if event or kind:
        chosen, what = (event, "event") if event else (kind, "kind")
        quoted = "'" + str(chosen).replace("'", "''") + "'"
        where = f"{what} = {quoted}" + (f" and ({where})" if where else "")
        operand = f"{operand}:{'waits' if event else 'calls'}"
    elif stats_source.is_run(operand, folder):
        raise ModelError("which latencies of the run?", where=operand, next_step="add --event 'NAME' or --calls commit")
    source = stats_source.resolve(operand, folder)
    column = column or stats_source.default_column(stats_source.columns_of(source))
    ending = column.rpartition("_")[2]
    if unit is None and ending not in UNITS:
        raise ModelError(
            f"the column {column!r} does not tell its unit", next_step=f"add --unit with one of {', '.join(UNITS)}"
        )
    values = stats_source.take(source, [column], where=where).numbers[0] * UNITS[unit or ending]
    title = f"{column} of {operand}" + (f" where {where}" if where else "")
    show_page(calibration(values, name=name, title=title), form, output)
