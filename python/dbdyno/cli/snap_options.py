"""What the commands on snapshots share: the store, the target, output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dbdyno.cli.output import show_rows, write_text
from dbdyno.cli.trace_options import terminal
from dbdyno.errors import Error
from dbdyno.snapshot.view import Options

FORMATS = ("table", "csv", "json", "jsonl", "html")
F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store", type=click.Path(path_type=Path, file_okay=False), default=Path("snaps"),
    show_default=True, envvar="DBDYNO_SNAPS", help="Folder with the snapshots.",
)  # fmt: skip

name_option = click.option(
    "--target", metavar="NAME",
    help="Which target of the store, where it holds several (see `dbdyno snap list`).",
)  # fmt: skip


def target_options(function: F) -> F:
    """Adds --target and what is read of it."""
    options = (
        click.option("--target", "dsn", required=True, metavar="DSN", envvar="DBDYNO_TARGET",
                     help="Connection string: postgresql://user@host/database"),
        click.option("--name", metavar="NAME", help="Its name in the store (default: host:port)."),
        click.option("--database", "databases", multiple=True, metavar="NAME",
                     help="Read the objects of this database too; several times for several."),
        click.option("--all-databases", is_flag=True, help="Read the objects of every database."),
        click.option("--redact", is_flag=True, help="Store no text of any statement."),
        click.option("--statement-timeout", type=click.FloatRange(0.01), default=5.0,
                     show_default=True, metavar="SECONDS", help="For each query of ours."),
        click.option("--lock-timeout", type=click.FloatRange(0.01), default=0.5,
                     show_default=True, metavar="SECONDS", help="For each lock that we wait for."),
        click.option("--note", default="", help="A name for the snapshot, such as 'before batch'."),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def options_of(
    name: str | None,
    databases: tuple[str, ...],
    all_databases: bool,
    redact: bool,
    statement_timeout: float,
    lock_timeout: float,
) -> Options:
    """How to collect, from the command line."""
    return Options(
        ("*",) if all_databases else databases or None,
        redact,
        round(statement_timeout * 1000),
        round(lock_timeout * 1000),
        name,
    )


def output_options(function: F) -> F:
    """Adds --format and -o; the suffix of -o names the format where --format does not."""
    function = click.option(
        "--format", "form", type=click.Choice(FORMATS), help="Form of the output."
    )(function)
    return click.option(
        "-o", "output", type=click.Path(path_type=Path, dir_okay=False),
        help="Write to this file; its suffix tells the format (txt, html, json, csv, png, svg).",
    )(function)  # fmt: skip


def show_model(model: dict[str, Any], form: str | None, output: Path | None) -> None:
    """Writes a model of kind snapshot in the form asked for."""
    from dbdyno.report import snapshot as pages

    kind = form or (output.suffix.removeprefix(".").lower() if output else "table")
    if kind in ("svg", "png") and output is not None:
        from dbdyno.report.figures import write_figure

        write_figure(model, output)
    elif kind == "html":
        from dbdyno.report.html import render_html, write_html

        if output is None:
            click.echo(render_html(model))
        else:
            write_html(model, output)
    elif kind == "json":
        _put(json.dumps(model, indent=1, ensure_ascii=False, default=str) + "\n", output)
    elif kind in ("csv", "jsonl"):
        show_rows(pages.rows(model), kind, output)
    elif kind in ("table", "txt"):
        width, color = terminal(output)
        _put(pages.render_text(model, width=width, color=color), output)
    else:
        raise Error(
            f"the suffix of {output} names no format",
            next_step=f"add --format with one of {', '.join(FORMATS)}, or write to .svg or .png",
        )
    if output is not None:
        click.echo(str(output), err=True)


def _put(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
