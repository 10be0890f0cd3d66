"""`dbdyno probe recover`: what remains of a log after a crash, and which copy is newer."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.cli.output import Output, format_options, show_rows
from dbdyno.cli.parameters import PATH


@click.command("recover")
@click.argument("paths", nargs=-1, required=True, metavar="PATH [PATH2]", type=PATH)
@format_options
def command(paths: tuple[Path, ...], output: Output) -> None:
    """Read the file PATH that `probe redo` left, or both copies of a race, without changing them.

    The log consists of the first path up to its last complete write, and then of the second path as long as its writes
    follow without a gap. Every acknowledged commit is in it.
    """
    from dbdyno import _core
    from dbdyno.bench.host.probe import log_file

    if len(paths) > 2:
        raise click.UsageError("recover takes one or two files")
    found = _core.recover_probe([log_file(path) for path in paths])
    show_rows(found["copies"], output)
    if output.is_screen:
        click.echo("\n" + sentence(found))


def sentence(found: dict[str, object]) -> str:
    """Return a sentence about what was recovered."""
    if not found["last_sequence"]:
        return "It contains no complete write: nothing had been acknowledged."
    words = (
        f"Recovered: writes {found['first_sequence']:,} to {found['last_sequence']:,}, "
        f"{found['last_commit']:,} commits."
    )
    if found["from_second"]:
        return f"{words} The last {found['from_second']:,} writes are on the second path only."
    if found["newer"]:
        return f"{words} Copy {found['newer']} is newer."
    return words
