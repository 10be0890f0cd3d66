"""`dbdyno flow check`: whether all engines return the same answers, before times are compared."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.parameters import FILE, option_with_default

table_option = click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME=FILE",
    help="Table that the query reads, and the file with its rows. Repeatable.",
)


@click.command("check")
@click.argument("query", type=FILE)
@option_with_default(
    "--engine", "engines", default="duckdb", help="Engines on which to run the query, comma-separated."
)
@click.option("--pig", type=FILE, help="Pig script that must return the same rows as QUERY.")
@table_option
def command(query: Path, engines: str, pig: Path | None, tables: tuple[str, ...]) -> None:
    """Run QUERY on each engine, with its optimizer and without, and compare the rows.

    Exit 1 if the rows differ, because comparing times is then pointless.

    \b
    dbdyno flow check query.sql --engine duckdb,polars,spark --pig script.pig --table orders=orders.csv
    """
    from dbdyno.flow.answers import answers, difference
    from dbdyno.flow.page_model import ENGINES
    from dbdyno.flow.tables import input_tables, text_of

    chosen = [one.strip() for one in engines.split(",") if one.strip()]
    odd = next((one for one in chosen if one not in ENGINES), None)
    if odd is not None:
        raise click.UsageError(f"--engine {odd}: expected one or several of {', '.join(ENGINES)}")
    if pig is not None and "pig" not in chosen:
        chosen.append("pig")
    found = list(answers(text_of(query).rstrip(";"), pig, chosen, input_tables(tables)))
    differing = [said for one in found[1:] if (said := difference(found[0], one)) is not None]
    for said in differing:
        click.echo(f"DIFFERS: {said}.")
    if differing:
        raise click.exceptions.Exit(1)
    rows = sum(found[0].rows.values())
    click.echo(f"The same {rows:,} rows from all: {'; '.join(one.name for one in found)}.")
