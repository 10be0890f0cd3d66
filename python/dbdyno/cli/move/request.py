"""What is to be moved, from the options of `dbdyno move`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dbdyno.move.engines.postgres.source import Request


def refuse_request(request: Request) -> None:
    """Raise `click.UsageError` for options that cannot be combined."""
    if request.query is None and not request.tables and not request.patterns:
        raise click.UsageError("name what to move: --table, --tables or --query")
    if request.query is not None and (request.tables or request.patterns or request.where is not None):
        raise click.UsageError(
            "--query excludes --table, --tables, --where and --columns: write tables and conditions into the query"
        )
    if (len(request.tables) > 1 or request.patterns) and (request.where is not None or request.columns):
        raise click.UsageError("--where and --columns work with one table only: move that table in a job of its own")
