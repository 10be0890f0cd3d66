"""`dbdyno flow show`: both plans of a flow, and what the optimizer changed."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.flow.check import table_option
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import FILE


@click.command("show")
@click.argument("script", type=FILE)
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "polars", "spark", "pig"]),
    help="Engine whose plans to show (default: Pig for a .pig file, DuckDB for other files).",
)
@table_option
@page_options
def command(script: Path, engine: str | None, tables: tuple[str, ...], output: Output) -> None:
    """Show the plan of SCRIPT as written and as executed, side by side.

    As written: with the engine's optimizer off. Steps that moved, merged or disappeared are marked, with rows and time
    where the engine reports them. DuckDB and Spark run the query; Pig and Polars only plan it.

    \b
    dbdyno flow show query.sql --engine spark --table orders=orders.csv --table customers=customers.csv
    dbdyno flow show script.pig -o plans.svg
    """
    from dbdyno.flow.page_model import model_of_script
    from dbdyno.flow.tables import input_tables

    chosen = engine or ("pig" if script.suffix == ".pig" else "duckdb")
    show_page(model_of_script(script, chosen, input_tables(tables)), output)
