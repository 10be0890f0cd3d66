"""Types of parameters that many commands have, and options whose help shows their default."""

from __future__ import annotations

import functools
from pathlib import Path

import click

FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)
"""Type of a parameter that is the path of a file or folder."""

option_with_default = functools.partial(click.option, show_default=True)
"""Add an option whose help shows its default."""
