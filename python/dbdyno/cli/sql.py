"""`dbdyno sql`: DuckDB over the evidence of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import FORMATS, STREAMED, folder_option, form_of, format_options, show_rows, stream_rows
from dbdyno.evidence import find_run

if TYPE_CHECKING:
    from dbdyno.evidence.query import Answer

TOP = 1000


@click.command("sql")
@click.argument("query")
@click.option("--run", "run_name", default="last", show_default=True, help="Run to query.")
@click.option("--top", type=Count(), default=TOP, show_default=True, help="Show the top N rows of a table.")
@folder_option
@format_options
def command(query: str, run_name: str, top: int, folder: Path, form: str | None, output: Path | None) -> None:
    """Query the evidence: tables `calls`, `waits` and `metrics` of one run.

    QUERY is one SELECT; nothing else is carried out, and no other file can be read. CSV, JSON and Arrow
    have all rows, as they come; a table shows the first ones.

    \b
    dbdyno sql "select arm, count(*), median(elapsed_ns) from calls
                where kind = 'commit' group by arm" --run last
    """
    from dbdyno.evidence.query import Answer

    form = form_of(form, output, FORMATS)
    with Answer(find_run(run_name, folder), query) as answer:
        for sentence in answer.broken:
            click.echo(f"warning: left out: {sentence}", err=True)
        if form == "arrow":
            from dbdyno.cli import arrow
            from dbdyno.report.tabular import arrow_library

            arrow_library()
            arrow.put_batches(answer.batches(), answer.names, output)
        elif form in STREAMED:
            stream_rows(answer.names, answer.rows(), form, output)
        else:
            _show_table(answer, top, output)
    if answer.broken:
        raise click.exceptions.Exit(2)


def _show_table(answer: Answer, top: int, output: Path | None) -> None:
    rows = list(answer.rows(top + 1))
    show_rows([dict(zip(answer.names, row, strict=True)) for row in rows[:top]], "table", output)
    if len(rows) > top:
        click.echo(
            f"the first {top:,} rows; there are more\n  next: --top N shows more, --format csv has all of them",
            err=True,
        )
