"""Man pages of all commands into a folder: `make man`, then `man -l target/man/dbdyno-run.1`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from click_man.core import generate_man_page

from dbdyno.cli.main import cli
from dbdyno.study.run.execute import tool_version


def write(command: click.Command, path: str, parent: click.Context | None, folder: Path) -> None:
    """The page of a command, and those of the commands below it."""
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    page = generate_man_page(context, version=tool_version())
    page = re.sub(r"(?:^dbdyno .*\n)+", r".nf\n\g<0>.fi\n", page, flags=re.MULTILINE)  # examples keep their lines
    (folder / f"{path.replace(' ', '-')}.1").write_text(page)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            write(below, f"{path} {name}", context, folder)


place = Path(sys.argv[1])
place.mkdir(parents=True, exist_ok=True)
write(cli, "dbdyno", None, place)
