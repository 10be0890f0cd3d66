"""Output of pages about traces, models, snapshots and so on: --format and -o, the same for all packages.

JSON output imports nothing from the report package.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from dbdyno.cli.output import FLAT, Output, echo_unchanged, form_of, output_options, show_rows, write_text

FORMATS = ("table", "csv", "json", "jsonl", "arrow", "html", "markdown")
DRAWN = ("svg", "png")

page_options = output_options(FORMATS, " (txt, csv, json, html, md, svg, png)")
analysis_options = output_options((*FORMATS, "junit"), " (txt, csv, json, html, md, xml)")
"""Options for output that has a verdict."""


def show_page(model: Mapping[str, Any], output: Output, **words: Any) -> None:
    """Write a page in the requested form, and report the file written.

    `words` are passed to the page's `render_text`.
    """
    path = output.path
    own = _own_file(model, path.suffix.removeprefix(".").lower()) if path is not None and output.form is None else None
    kind = "own" if own is not None else form_of(output, FORMATS if path is None else (*FORMATS, *DRAWN))
    if own is not None:
        write_output(own, path)
    elif kind == "json":
        write_output(json.dumps(model, indent=1, ensure_ascii=False, default=str) + "\n", path)
    elif kind == "html":
        from dbdyno.report.html import render_html, write_html

        if path is None:
            echo_unchanged(render_html(model) + "\n")
        else:
            write_html(model, path)
    elif kind == "markdown":
        from dbdyno.report.markdown import render_markdown

        write_output(render_markdown(model), path)
    elif kind in DRAWN and path is not None:
        from dbdyno.report.figures import write_figure

        write_figure(model, path)
    elif kind in FLAT:
        from dbdyno.report.flat import rows

        show_rows(rows(model), output.as_form(kind))
    else:
        from dbdyno.report.terminal import render_text

        width, color = terminal(path)
        write_output(render_text(model, width=width, color=color, **words), path)
    if path is not None:
        click.echo(str(path), err=True)


def write_output(text: str, output: Path | None) -> None:
    """Write text to a file or to stdout."""
    if output is None:
        echo_unchanged(text)
    else:
        write_text(output, text)


def terminal(output: Path | None) -> tuple[int, bool]:
    """Return the width in columns and whether to use colours; without a terminal $COLUMNS or 100, and no colours."""
    is_terminal = sys.stdout.isatty() and output is None
    color = is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    if is_terminal:
        import shutil

        return shutil.get_terminal_size().columns, color
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdigit() and int(columns) > 0 else 100, color


def _own_file(model: Mapping[str, Any], suffix: str) -> str | None:
    """Return the page in a form that only its kind has (a machine as SVG, a fit as TOML), else None."""
    page = model.get("page")
    if page == "machine" and suffix == "svg":
        from dbdyno.pages import reading
        from dbdyno.report.figures import machine

        return machine.svg(reading.read(model)) + "\n"
    return str(model["toml"]) if page in ("calibration", "calibrated", "device_fit") and suffix == "toml" else None
