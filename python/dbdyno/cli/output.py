"""Options and writers that the reading commands share: --format, -o, --folder."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from dbdyno.errors import Error

FORMATS = ("table", "csv", "json", "jsonl")
_DIGITS = r"[-+−]?(?:\d[\d,\u202f]*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?:[\s\u202f]?%)?"
_NUMBER = re.compile(rf"{_DIGITS}(?: to {_DIGITS})?")
NAME_MOST = 48
TEXT_LEAST = 24
F = TypeVar("F", bound=Callable[..., Any])

folder_option = click.option(
    "--runs",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs"),
    show_default=True,
    help="Folder with the runs.",
)


def written_as(formats: Sequence[str], suffixes: str = "") -> Callable[[F], F]:
    """Adds --format with these, and -o; the suffix of -o names the format where --format does
    not."""
    form = click.option("--format", "form", type=click.Choice(formats), help="Form of the output.")
    file = click.option(
        "-o",
        "output",
        type=click.Path(path_type=Path, dir_okay=False),
        help=f"Write to this file; its suffix tells the format{suffixes}.",
    )
    return lambda function: file(form(function))


format_options = written_as(FORMATS)


def form_of(form: str | None, output: Path | None, forms: Sequence[str], otherwise: str = "table") -> str:
    """The form asked for: by name, else by the suffix of the file, else `otherwise`.

    Raises:
        Error: the suffix names none of `forms`; a file of another kind than it says is not written.
    """
    if form is not None or output is None:
        return form or otherwise
    word = output.suffix.removeprefix(".").lower()
    word = "table" if word in ("txt", "text") and "table" in forms else word
    if word in forms:
        return word
    found = f"the suffix of {output} names no format" if word else f"{output} has no suffix that names a format"
    suffixes = ", ".join(f".{'txt' if known == 'table' else known}" for known in forms)
    raise Error(found, next_step=f"write to one of {suffixes}; or name the format by --format")


def show_rows(rows: list[dict[str, Any]], form: str | None, output: Path | None, *, title: str = "") -> None:
    """Writes rows as a table, CSV, JSON or JSON lines to stdout or a file."""
    form = form_of(form, output, FORMATS)
    text = _text(rows, form, title, sys.stdout.isatty() and output is None)
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        write_text(output, text)


def write_text(path: Path, text: str) -> None:
    """Writes a file; an error names it."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Error(f"cannot be written: {error.strerror}", where=str(path)) from error


def _text(rows: list[dict[str, Any]], form: str, title: str, terminal: bool) -> str:
    if form == "json":
        return json.dumps(rows, indent=1, ensure_ascii=False, default=str)
    if form == "jsonl":
        return "".join(json.dumps(r, ensure_ascii=False, default=str) + "\n" for r in rows)
    names = list(rows[0]) if rows else []
    if form == "csv":
        import csv

        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()
    return _table(rows, names, title, terminal)


def _table(rows: list[dict[str, Any]], names: list[str], title: str, terminal: bool) -> str:
    import shutil

    from rich.console import Console
    from rich.table import Table

    out = io.StringIO()
    columns = {name: [row[name] for row in rows] for name in names}
    whole = {name: _stays_whole(values) for name, values in columns.items()}
    width = shutil.get_terminal_size((200, 24)).columns if not terminal else shutil.get_terminal_size().columns
    needed = sum(
        max(len(name), *(len(_cell(value)) for value in values)) + 2 if whole[name] else TEXT_LEAST
        for name, values in columns.items()
    )
    console = Console(file=out, width=max(width, needed), force_terminal=terminal and None, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold", title=None)
    for name, values in columns.items():
        side: Literal["right", "left"] = "right" if is_numeric(values) else "left"
        table.add_column(name, justify=side, no_wrap=whole[name], overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[name]) for name in names))
    console.print(table)
    del title
    return out.getvalue()


def _stays_whole(values: Sequence[Any]) -> bool:
    """Whether a column may not be broken: numbers, and names, which are short and have no blank. A
    table of them may be wider than the screen: a number cut in two is none."""
    return is_numeric(values) or all(" " not in (text := str(value)) and len(text) <= NAME_MOST for value in values)


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether a column holds numbers, also as text (1,234.5, 1.5e+07, 3 to 7, –): it then stands to
    the right, digit under digit."""
    texts = [value for value in values if not (value is None or value in ("", "–", "-"))]
    return bool(texts) and all(
        isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)) for value in texts
    )


def _cell(value: Any) -> str:
    from rich.markup import escape

    return "" if value is None else escape(str(value))
