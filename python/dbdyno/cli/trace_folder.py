"""The command that writes a run as trace files: its argument and options, and the folder for the files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dbdyno.base.errors import Error
from dbdyno.cli.output import folder_option
from dbdyno.cli.parameters import FOLDER

F = TypeVar("F", bound=Callable[..., Any])


def run_to_folder(function: F) -> F:
    """Add RUN, --out and --runs to a command."""
    out = click.option("--out", required=True, type=FOLDER, metavar="DIR", help="Folder to create for the trace files.")
    return click.argument("run_name", metavar="RUN")(out(folder_option(function)))


def create_empty(folder: Path, error: type[Error]) -> None:
    """Create the folder, or accept an existing empty one.

    Raises:
        error: The folder is not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise error("is not empty", where=str(folder), next_step="choose an empty or a new folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
