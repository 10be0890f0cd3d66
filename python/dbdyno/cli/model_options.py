"""What the commands on models share: forms of output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dbdyno.cli.output import show_rows, write_text
from dbdyno.cli.trace_options import terminal
from dbdyno.errors import Error

FORMATS = ("table", "csv", "json", "jsonl", "html")
F = TypeVar("F", bound=Callable[..., Any])


def output_options(function: F) -> F:
    """Adds --format and -o; the suffix of -o names the format where --format does not."""
    function = click.option(
        "--format", "form", type=click.Choice(FORMATS), help="Form of the output."
    )(function)
    return click.option(
        "-o",
        "output",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write to this file; its suffix tells the format.",
    )(function)


def show_page(model: dict[str, Any], form: str | None, output: Path | None) -> None:
    """Writes a page in the form asked for; `.svg` is a machine's drawing, `.toml` a device."""
    from dbdyno.report import model as pages
    from dbdyno.report.model.drawing import svg

    kind = form or (output.suffix.removeprefix(".").lower() if output else "table")
    if kind == "svg" and output is not None and model["page"] == "machine":
        write_text(output, svg(model) + "\n")
    elif kind == "toml" and output is not None and model["page"] == "calibration":
        write_text(output, str(model["toml"]))
    elif kind == "html":
        from dbdyno.report.html import render_html, write_html

        if output is None:
            click.echo(render_html(model))
        else:
            click.echo(str(write_html(model, output)), err=True)
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
            next_step=f"add --format with one of {', '.join(FORMATS)}",
        )


def _put(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
