"""Options and writers shared by commands that print data: --format, -o, --folder."""

from __future__ import annotations

import functools
import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, cast

import click

from dbdyno.base import escaping
from dbdyno.base.errors import Error
from dbdyno.base.files import os_errors_as, share_new_folders, write_output
from dbdyno.cli.parameters import FILE, FOLDER, F, option_with_default
from dbdyno.report.tabular import csv_text, escape_formula, json_text

FORMATS = ("table", "csv", "json", "jsonl", "arrow")
FLAT = ("csv", "jsonl", "arrow")
"""Output forms that consist of flat rows."""
_SUFFIXES = {"txt": ("table", "text"), "text": ("table", "text"), "md": ("markdown",), "xml": ("junit",)}
CSV_SAFE = "dbdyno.csv_safe"
PIECE = 1 << 16
"""Number of characters of CSV that are written at a time."""
_DIGITS = r"[-+−]?(?:\d[\d,\u202f]*(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?:[\s\u202f]?%)?"
_NUMBER = re.compile(rf"{_DIGITS}(?: to {_DIGITS})?")
NAME_MOST = 48
TEXT_LEAST, TEXT_NARROW = 24, 12
"""Minimum width of a text column in characters: normally, and on a narrow terminal."""

folder_option = option_with_default("--runs", "folder", type=FOLDER, default=Path("runs"), help="Folder with the runs.")

out_option = option_with_default(
    "--out", type=FOLDER, default=Path("runs"), help="Folder in which the run folder is created."
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    help="Seed of all random choices; the seed of an earlier run repeats the choices of that run.",
)

key_file_option = click.option(
    "--key-file",
    type=FILE,
    metavar="FILE",
    help="File with the key of an encrypted capture: 32 random bytes in base64.",
)

share_option = click.option(
    "--share",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, option, value: share_new_folders(value),
    help="Let other users read the run folder, as far as the umask allows; by default only you can read it.",
)


@dataclass(frozen=True)
class Output:
    """Format of an answer (None: by the suffix of the file, or the default), and the file for it (None: stdout)."""

    form: str | None = None
    path: Path | None = None

    @property
    def is_screen(self) -> bool:
        """Return True if the answer is a table on the screen."""
        return self.form in (None, "table") and self.path is None

    def as_form(self, form: str) -> Self:
        """Return the same output in this form."""
        return replace(self, form=form)

    def echo(self, text: str) -> None:
        """Write text to the file, or print it."""
        if self.path is None:
            click.echo(text, nl=False)
        else:
            write_text(self.path, text)


def with_output(function: F, kind: type[Output] = Output) -> F:
    """Return a command that takes `form` and `output`, and gives them to the function as an `Output`."""

    @functools.wraps(function)
    def command(*given: Any, form: str | None, output: Path | None, **rest: Any) -> Any:
        return function(*given, output=kind(form, output), **rest)

    return cast("F", command)


def output_options(formats: Sequence[str], suffixes: str = "", kind: type[Output] = Output) -> Callable[[F], F]:
    """Return a decorator that adds --format with these forms, and -o, which the function receives as `output`.

    The suffix of the -o file selects the format if --format is not given.
    """
    form = click.option(
        "--format", "form", type=click.Choice(formats), help="Output format; --json is short for --format json."
    )
    file = click.option(
        "-o", "--output", type=FILE, help=f"Write to this file; its suffix selects the format{suffixes}."
    )
    safe = click.option(
        "--csv-safe",
        is_flag=True,
        expose_value=False,
        callback=_remember_safe,
        help="Make CSV safe for spreadsheets: put a ' before text that they would read as a formula.",
    )
    return lambda function: file(form(safe(with_output(function, kind))))


def _remember_safe(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    ctx.meta[CSV_SAFE] = value


def csv_safe() -> bool:
    """Return True if --csv-safe was given to the current command."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx and ctx.meta.get(CSV_SAFE))


format_options = output_options(FORMATS)


def form_of(output: Output, forms: Sequence[str], otherwise: str = "table") -> str:
    """Return the requested form: by name, else by the suffix of the file, else `otherwise`.

    Raises:
        Error: the suffix selects none of `forms`; a file's content must match its suffix.
    """
    if output.form is not None or output.path is None:
        return output.form or otherwise
    word = output.path.suffix.removeprefix(".").lower()
    meant = next((known for known in (*_SUFFIXES.get(word, ()), word) if known in forms), None)
    if meant is not None:
        return meant
    place = output.path
    found = f"the suffix of {place} is not a format" if word else f"the name of {place} has no suffix for a format"
    named = {form: suffix for suffix, meanings in reversed(_SUFFIXES.items()) for form in meanings}
    suffixes = ", ".join(f".{named.get(known, known)}" for known in forms)
    raise Error(found, next_step=f"write to one of {suffixes} (suffixes of the file), or name the format with --format")


def show_rows(rows: Sequence[Mapping[str, object]], output: Output, *, title: str = "") -> None:
    """Write rows as a table, CSV, JSON, JSON lines or Arrow to stdout or a file."""
    kind = form_of(output, FORMATS)
    if kind == "arrow":
        from dbdyno.cli import arrow

        arrow.write_rows(rows, output.path)
        return
    text = _text(rows, kind, title, sys.stdout.isatty() and output.path is None)
    if output.path is not None:
        write_text(output.path, text)
    elif kind == "table" or sys.stdout.isatty():
        click.echo(text, nl=not text.endswith("\n"))
    else:
        echo_unchanged(text if text.endswith("\n") else text + "\n")


def stream_rows(names: Sequence[str], rows: Iterable[Sequence[Any]], form: str, output: Path | None) -> None:
    """Write rows as CSV, JSON or JSON lines; to stdout as they arrive, so that a million rows need little memory."""
    pieces = _PIECES[form](names, rows)
    if output is not None:
        write_text(output, "".join(pieces))
        return
    stream = sys.stdout if sys.stdout.isatty() else escaping.unwrap_stream(sys.stdout)
    for piece in pieces:
        stream.write(piece)
    stream.flush()


def _csv_pieces(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    cell = escape_formula if csv_safe() else _as_is
    writer.writerow([cell(name) for name in names])
    for row in rows:
        writer.writerow([cell(value) for value in row])
        if out.tell() > PIECE:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _jsonl_pieces(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    for row in rows:
        yield _json(dict(zip(names, row, strict=True))) + "\n"


def _json_pieces(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    before = "[\n"
    for row in rows:
        yield f"{before} {_json(dict(zip(names, row, strict=True)))}"
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _json(row: dict[str, object]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


_PIECES = {"csv": _csv_pieces, "jsonl": _jsonl_pieces, "json": _json_pieces}
STREAMED = tuple(_PIECES)


def heading(text: str) -> None:
    """Print a line, in bold on a terminal."""
    click.secho(escaping.escape_text(text), bold=True, file=escaping.unwrap_stream(sys.stdout))


def echo_unchanged(text: str) -> None:
    """Write text to stdout unchanged: dbdyno's own output, or data for a file or a pipe."""
    click.echo(text, nl=False, file=escaping.unwrap_stream(sys.stdout))


def show_line(words: str = "") -> None:
    """Show a line of progress figures on stderr in place of the previous one; an empty line removes it."""
    from dbdyno.base.escaping import escape_line, unwrap_stream

    stream = unwrap_stream(sys.stderr)
    stream.write(f"\r\x1b[K{escape_line(words)}")
    stream.flush()


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all.

    Raises:
        Error: the file cannot be written.
    """
    step = "free disk space, choose another path, or leave -o out to write the text to stdout"
    with os_errors_as(Error, "cannot be written", path, step):
        write_output(path, text.encode())


def _text(rows: Sequence[Mapping[str, object]], form: str, title: str, terminal: bool) -> str:
    if form == "json":
        return json_text(rows)
    if form == "jsonl":
        return "".join(json.dumps(r, ensure_ascii=False, default=str) + "\n" for r in rows)
    if form == "csv":
        return csv_text(rows, safe=csv_safe())
    return _table(rows, list(rows[0]) if rows else [], title, terminal)


def _as_is(value: Any) -> Any:
    return value


def _table(rows: Sequence[Mapping[str, object]], names: list[str], title: str, terminal: bool) -> str:
    import shutil

    from rich.console import Console
    from rich.table import Table

    out = io.StringIO()
    columns = {name: [row[name] for row in rows] for name in names}
    whole = {name: _stays_whole(values) for name, values in columns.items()}
    width = shutil.get_terminal_size((200, 24)).columns if not terminal else shutil.get_terminal_size().columns
    fixed = sum(
        max(len(name), *(len(_cell(value)) for value in values)) + 2 for name, values in columns.items() if whole[name]
    )
    texts = sum(not one for one in whole.values())
    needed = fixed + texts * max(TEXT_NARROW, min(TEXT_LEAST, (width - fixed) // max(texts, 1)))
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
    """Return True if values of a column must not be split over lines: numbers, and short names without blanks.

    A table of such columns may be wider than the screen, because a number split over two lines would be misread.
    """
    return is_numeric(values) or all(" " not in (text := str(value)) and len(text) <= NAME_MOST for value in values)


def is_numeric(values: Sequence[Any]) -> bool:
    """Return True if a column holds numbers, even as text (1,234.5, 1.5e+07, 3 to 7, –); it is right-aligned then."""
    texts = [value for value in values if not (value is None or value in ("", "–", "-"))]
    return bool(texts) and all(
        isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value)) for value in texts
    )


def _cell(value: Any) -> str:
    from rich.markup import escape

    return "" if value is None else escape(escaping.escape_text(value))
