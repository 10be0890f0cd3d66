"""`dbdyno model list`: the machines that come with dbdyno."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import format_options, show_rows


@click.command("list")
@format_options
def command(form: str | None, output: Path | None) -> None:
    """The machines that come with dbdyno: name, title, parts, and the studies that suit them."""
    from dbdyno.model.describe import listed

    show_rows(listed(), form, output)
