"""`dbdyno snap baseline`: give names to periods."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.snap.options import name_option, store_option


@click.command("baseline")
@click.argument("name", required=False)
@click.argument("wanted", metavar="[FIRST..LAST]", required=False)
@click.option("--remove", is_flag=True, help="Delete the name; the snapshots are kept.")
@store_option
@name_option
@format_options
def command(
    name: str | None,
    wanted: str | None,
    remove: bool,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Give the period FIRST..LAST the name NAME; without arguments list the names.

    \b
    dbdyno snap baseline monday 1..60
    dbdyno compare snap:monday snap:61..120
    """
    from dbdyno.snapshot.reading.periods import baselines, delete_baseline, period, save_baseline
    from dbdyno.snapshot.store.folder import Store

    holder = Store(store)
    if name is None:
        rows = baselines(holder)
        if not rows and output.form in (None, "table"):
            click.echo(f"no baselines in {store}/; `dbdyno snap baseline NAME 1..60` makes one", err=True)
            return
        show_rows(rows, output)
    elif remove:
        delete_baseline(holder, name)
    elif wanted is None:
        raise click.UsageError("name the period too, as in: dbdyno snap baseline NAME FIRST..LAST")
    else:
        show_rows([save_baseline(holder, name, period(holder, wanted, target))], output)
