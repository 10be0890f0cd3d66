"""The command that writes a run as trace files: its argument and options, and the folder for the files."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.errors import Error
from dbdyno.cli.output import folder_option
from dbdyno.cli.parameters import FOLDER, option_group

run_to_folder = option_group(
    click.argument("run_name", metavar="RUN"),
    click.option("--out", required=True, type=FOLDER, metavar="DIR", help="Folder to create for the trace files."),
    folder_option,
)
"""Adds RUN, --out and --runs."""


def create_empty(folder: Path, error: type[Error]) -> None:
    """Create the folder, or accept an existing empty one.

    Raises:
        error: The folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise error("is not empty", where=str(folder), next_step="choose an empty or a new folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
