"""Options and output shared by the commands of `dbdyno stats`."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dbdyno.base.json_types import TableRow
from dbdyno.base.limits import Number
from dbdyno.cli.output import FORMATS, Output, folder_option, form_of, show_rows, write_text
from dbdyno.cli.output import output_options as options_of_output
from dbdyno.cli.parameters import F, option_with_default

if TYPE_CHECKING:
    from dbdyno.stats.description import Group

Row = TableRow
Part = tuple[str, str, list[Row]]
"""A part of an answer: its name in CSV and JSON, its title, its rows."""

operands_argument = click.argument("operands", metavar="OPERAND...", nargs=-1, required=True)
by_option = click.option("--by", metavar="COL", help="Column that groups the rows.")
x_options = click.option(
    "-x", "xs", metavar="COL", multiple=True, required=True, help="Column with the x values; may be repeated."
)
y_option = click.option("-y", "y", metavar="COL", required=True, help="Column with the y values.")
level_option = option_with_default(
    "--level", type=Number(0.5, 0.9999), default=0.95, help="Confidence level of the intervals."
)
column_option = click.option(
    "-y", "-x", "column", metavar="COL", help="Column with the values (default: elapsed_ns if it exists)."
)
engine_option = option_with_default(
    "--engine", type=click.Choice(["here", "spark"]), default="here", help="Engine that computes the summary."
)
where_option = click.option("--where", metavar="EXPR", help="Use only rows for which this SQL expression is true.")


@dataclass(frozen=True)
class Input:
    """Operands of a command, the folder of runs, and the condition for the rows to read."""

    operands: tuple[str, ...]
    folder: Path
    where: str | None = None


class PartsOutput(Output):
    """Output of an answer that has parts."""

    def show_parts(self, parts: Sequence[Part], *, head: Row | None = None) -> None:
        """Write the parts of an answer.

        Tables are printed one below the other, in JSON the parts form one object, and in CSV or JSON lines there is a
        column `part`. `head` holds further fields of the object.
        """
        form = form_of(self, FORMATS)
        shown = [part for part in parts if part[2]]
        if form == "json":
            _write(_object_of(head or {}, shown), self.path)
        elif form in ("csv", "jsonl"):
            rows = [{"part": name, **row} for name, _, rows in shown for row in plain(rows, form)]
            if form == "csv":
                names = list(dict.fromkeys(key for row in rows for key in row))
                rows = [{name: row.get(name) for name in names} for row in rows]
            show_rows(rows, self)
        else:
            _write("\n".join(_titled_table(title, rows) for _, title, rows in shown), self.path)

    def show_list(self, rows: list[Row]) -> None:
        """Write one list of rows, which in JSON is a list."""
        if self.is_screen:
            _write(table(rows).rstrip("\n"), None)
        else:
            show_rows(plain(rows, form_of(self, FORMATS)), self)


def input_options(function: F) -> F:
    """Add the operands, --where and --runs, which the function receives as an `Input`, its first argument."""

    @functools.wraps(function)
    def command(operands: tuple[str, ...], where: str | None, folder: Path, **rest: Any) -> Any:
        return function(Input(operands, folder, where), **rest)

    for add in (folder_option, where_option, operands_argument):
        command = add(command)
    return cast("F", command)


output_options = options_of_output(FORMATS, kind=PartsOutput)


def reading_options(function: F) -> F:
    """Add the options of `input_options` and of `output_options`."""
    return input_options(output_options(function))


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _object_of(head: Row, parts: Sequence[Part]) -> str:
    """Return a JSON object of the fields in `head` and the parts, with one line per field and per row.

    Python uses its compiled encoder only for JSON without line breaks: with indentation, 10,000 rows took four times as
    long.
    """
    fields = [(name, _line(value)) for name, value in head.items()]
    fields += [(name, "[\n  " + ",\n  ".join(map(_line, rows)) + "\n ]") for name, _, rows in parts]
    return "{\n " + ",\n ".join(f"{_ENCODE(name)}: {text}" for name, text in fields) + "\n}"


def _line(value: object) -> str:
    try:
        return _ENCODE(value)
    except ValueError:  # not finite
        return _ENCODE(plain(value, "json"))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text)
    else:
        write_text(output, text.rstrip("\n") + "\n")


def _titled_table(title: str, rows: list[Row]) -> str:
    return f"{title}\n{table(rows)}" if title else table(rows)


def table(rows: list[Row]) -> str:
    """Return a text table under column names, numbers right-aligned, text left-aligned; a blank name is shown empty."""
    names = list(dict.fromkeys(key for row in rows for key in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        cells = [name.strip(), *map(cell, values)]
        width = max(map(len, cells))
        number = all(isinstance(value, int | float | None) for value in values)
        columns.append([f"{c:>{width}}" if number else f"{c:<{width}}" for c in cells])
    return "".join("  ".join(line).rstrip() + "\n" for line in zip(*columns, strict=True))


def plain(value: Any, form: str) -> Any:
    """Return a value as this output form writes it: NaN becomes null, and in JSON infinity becomes `inf` or `-inf`."""
    if isinstance(value, dict):
        return {key: plain(entry, form) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, form) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value) if form in ("json", "jsonl") else value
    return value


def cell(value: Any) -> str:
    """Return a value for a table: seven significant digits, integers in full, "" for None."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.7g}"
    return str(value)


def p_fields(log10_p: float) -> Row:
    """Return p and its logarithm; p is 0 if it underflows."""
    p = math.nan if math.isnan(log10_p) else 10.0**log10_p if log10_p > -307 else 0.0
    return {"p": p, "log10_p": log10_p}


def note_infinite(groups: Iterable[Group]) -> None:
    """Print to stderr which groups have no mean, because values are infinite or too large."""
    if names := [group.name for group in groups if not group.has_moments]:
        word = ", ".join(names)
        click.echo(
            f"note: {word}: some values are infinite, or too large to be squared; mean and deviation are not defined, "
            f"but quantiles and ranks are",
            err=True,
        )
