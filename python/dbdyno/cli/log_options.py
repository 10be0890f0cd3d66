"""Options shared by the commands that read a PostgreSQL server's log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dbdyno.cli.parameters import PATH

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

F = TypeVar("F", bound=Callable[..., Any])


def logs_option(words: str) -> Callable[[F], F]:
    """Return a decorator that adds the repeatable option --log; `words` is its help text."""
    return click.option("--log", "logs", multiple=True, type=PATH, metavar="FILE", help=words)


def log_options(function: F) -> F:
    """Add --line-prefix and --timezone, which say how text logs and their times are read."""
    zone = click.option(
        "--timezone", metavar="NAME", help="The server's log_timezone if it is not UTC, such as Europe/Berlin."
    )
    prefix = click.option(
        "--line-prefix",
        metavar="TEXT",
        help="The server's log_line_prefix, for text logs (default: derived from the log).",
    )
    return prefix(zone(function))


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
