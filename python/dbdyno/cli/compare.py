"""`dbdyno compare`: recompute and show one run, or lay two runs side by side."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.output import folder_option, format_options, show_rows, write_text
from dbdyno.evidence import find_run


@click.command("compare")
@click.argument("names", metavar="RUN [RUN]", nargs=-1, required=True)
@folder_option
@format_options
def command(names: tuple[str, ...], folder: Path, form: str | None, output: Path | None) -> None:
    """Recompute RUN from its evidence; with two runs, compare their base arms.

    Exit 1 when an arm is slower than the base.
    """
    from dbdyno.study.analyse import analyse, analyse_pair

    if len(names) > 2:
        raise click.UsageError("compare takes one run or two")
    runs = [find_run(name, folder) for name in names]
    analysis = analyse(runs[0]) if len(runs) == 1 else analyse_pair(*runs)
    _show(analysis, form, output)
    if analysis["verdict"]["decision"] == "slower":
        raise click.exceptions.Exit(1)


def _show(analysis: dict[str, Any], form: str | None, output: Path | None) -> None:
    from dbdyno.report.flat import rows
    from dbdyno.report.html import write_html

    if output is not None and output.suffix == ".html":
        write_html(analysis, output)
        click.echo(str(output))
    elif form == "json" or (form is None and output is not None and output.suffix == ".json"):
        text = json.dumps(analysis, indent=1, ensure_ascii=False) + "\n"
        if output is None:
            click.echo(text, nl=False)
        else:
            write_text(output, text)
    elif form in (None, "table") and output is None:
        print_analysis(analysis)
    else:
        show_rows(rows(analysis), form, output)


def print_analysis(analysis: dict[str, Any]) -> None:
    """The essentials of an analysis on stdout: in colour on a terminal."""
    from dbdyno.report.terminal import render_text

    terminal = sys.stdout.isatty()
    color = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    width = shutil.get_terminal_size().columns if terminal else 100
    click.echo(render_text(analysis, width=width, color=color), nl=False)
