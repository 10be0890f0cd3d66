"""`dbdyno sql`: DuckDB over the evidence of a run."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import folder_option, format_options, show_rows
from dbdyno.evidence import find_run


@click.command("sql")
@click.argument("query")
@click.option("--run", "run_name", default="last", show_default=True, help="Run to query.")
@folder_option
@format_options
def command(query: str, run_name: str, folder: Path, form: str | None, output: Path | None) -> None:
    """Query the evidence: tables `calls`, `waits` and `metrics` of one run.

    \b
    dbdyno sql "select arm, count(*), median(elapsed_ns) from calls
                where kind = 'commit' group by arm" --run last
    """
    from dbdyno.evidence.query import query as run_query

    names, rows, broken = run_query(find_run(run_name, folder), query)
    for sentence in broken:
        click.echo(f"warning: left out: {sentence}", err=True)
    show_rows([dict(zip(names, row, strict=True)) for row in rows], form, output)
    if broken:
        raise click.exceptions.Exit(2)
