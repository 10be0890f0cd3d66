"""Options shared by the commands that read a PostgreSQL server's log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dbdyno.cli.parameters import PATH, F, option_group

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


def logs_option(words: str) -> Callable[[F], F]:
    """Return a decorator that adds the repeatable option --log; `words` is its help text."""
    return click.option("--log", "logs", multiple=True, type=PATH, metavar="FILE", help=words)


log_options = option_group(
    click.option(
        "--line-prefix",
        metavar="TEXT",
        help="The server's log_line_prefix, for text logs (default: derived from the log).",
    ),
    click.option(
        "--timezone", metavar="NAME", help="The server's log_timezone if it is not UTC, such as Europe/Berlin."
    ),
)
"""Adds --line-prefix and --timezone, which say how text logs and their times are read."""


def zone_of(name: str | None) -> ZoneInfo | None:
    """Return the time zone with this name, or None if the name is None."""
    from zoneinfo import ZoneInfo

    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:
        raise click.BadParameter(
            f"{name!r:.40} is not a time zone that this machine knows; write for example Europe/Berlin",
            param_hint="--timezone",
        ) from error
