"""Types of parameters that many commands have, and options whose help shows their default."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
"""A command's function, which a decorator returns with options added."""
FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = click.Path(path_type=Path)
"""Type of a parameter that is the path of a file or folder."""

option_with_default = functools.partial(click.option, show_default=True)
"""Add an option whose help shows its default."""


def engine_option(task: str) -> Callable[[F], F]:
    """Return the option that runs a task here or in Spark."""
    return click.option(
        "--engine",
        type=click.Choice(["here", "spark"]),
        default="here",
        help=f"Engine that {task}: `here` is this process. [default: here]",
    )


def option_group(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds these options to a command, in this order."""

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add
