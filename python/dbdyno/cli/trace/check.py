"""`dbdyno trace check`: check whether a trace can be trusted."""

from __future__ import annotations

import click

from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.trace.options import (
    files_argument,
    options_of,
    progress,
    reading_options,
    report_refused,
)


@click.command("check")
@files_argument
@reading_options
@page_options
def command(files: tuple[str, ...], think_time: str, output: Output) -> None:
    """Show what was read from FILES, what was left unread and where, and whether the time adds up.

    Exit 0: everything was read. 1: something was left unread, or the time does not add up. 2: a file was refused, or
    nothing could be read.
    """
    from dbdyno.trace.check import check_page

    with progress() as shown:
        model = check_page(files, options_of(think_time), shown)
    if not output.is_screen:
        report_refused(model["refused"])
    show_page(model, output)
    if model["exit"]:
        raise click.exceptions.Exit(model["exit"])
