"""`dbdyno sql`: query the evidence of a run, or snapshots, with DuckDB."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import FORMATS, STREAMED, Output, folder_option, form_of, format_options, show_rows, stream_rows
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.snap.options import name_option, store_option
from dbdyno.evidence.run import find_run

if TYPE_CHECKING:
    from dbdyno.evidence.restricted_answer import RestrictedAnswer

TOP = 1000


@click.command("sql")
@click.argument("query")
@option_with_default("--run", "run_name", default="last", help="Run to query, or snap:FIRST..LAST.")
@click.option("--save", "name", metavar="NAME", help="Save the query under this name, for @NAME and `dbdyno ui`.")
@option_with_default("--top", type=Count(), default=TOP, help="Show the top N rows of a table.")
@folder_option
@store_option
@name_option
@format_options
def command(
    query: str,
    run_name: str,
    name: str | None,
    top: int,
    folder: Path,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Query the evidence of a run, or an interval of snapshots.

    QUERY is one SELECT, or @NAME for a saved query; nothing else is executed, and no other file can be read. A run has
    the tables `calls`, `waits` and `metrics`. Snapshots have a table with the differences of each view,
    VIEW_by_snapshot with its values over time, `sessions` and `snapshots`. CSV, JSON and Arrow contain all rows, in the
    order of the result; a table shows the first ones.

    \b
    dbdyno sql "select arm, count(*), median(elapsed_ns) from calls
                where kind = 'commit' group by arm" --run last
    dbdyno sql "select queryid, calls from pg_stat_statements
                order by calls desc" --run snap:1..60 --save most-called
    dbdyno sql @most-called --run snap:60..120
    """
    from dbdyno.evidence.saved_queries import MARK, save_query, saved_query

    form = form_of(output, FORMATS)
    text = saved_query(query.removeprefix(MARK)) if query.startswith(MARK) else query
    with contextlib.ExitStack() as stack:
        answer = stack.enter_context(_answer(text, run_name, folder, store, target, stack))
        for sentence in answer.broken:
            click.echo(f"warning: left out: {sentence}", err=True)
        if form == "arrow":
            from dbdyno.cli import arrow
            from dbdyno.report.tabular import arrow_library

            arrow_library()
            arrow.write_batches(answer.batches(), answer.names, output.path)
        elif form in STREAMED:
            stream_rows(answer.names, answer.rows(), form, output.path)
        else:
            _show_table(answer, top, output)
    if name is not None:
        click.echo(f"saved in {save_query(name, text)}", err=True)
    if answer.broken:
        raise click.exceptions.Exit(2)


def _answer(
    text: str, on: str, folder: Path, store: Path, target: str | None, stack: contextlib.ExitStack
) -> RestrictedAnswer:
    """Return the answer to a query on a run, or on an interval of snapshots, which stays open until `stack` closes."""
    if not on.startswith("snap:"):
        from dbdyno.evidence.query import Answer

        return Answer(find_run(on, folder), text)
    from dbdyno.evidence.memory import memory_connection
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.periods import period
    from dbdyno.snapshot.reading.store_query import StoreAnswer
    from dbdyno.snapshot.store.folder import Store

    holder = Store(store)
    chain = period(holder, on, target).chain
    interval = Interval(holder, chain[0], chain[-1], connection=memory_connection(in_order=True))
    return StoreAnswer(stack.enter_context(interval), text)


def _show_table(answer: RestrictedAnswer, top: int, output: Output) -> None:
    rows = list(answer.rows(top + 1))
    show_rows([dict(zip(answer.names, row, strict=True)) for row in rows[:top]], output.as_form("table"))
    if len(rows) > top:
        click.echo(
            f"the first {top:,} rows; there are more\n  next: --top N shows more, --format csv shows all of them",
            err=True,
        )
