"""What is to be moved, from the options of `dbdyno move`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dbdyno.move.engines.postgres.source import Wish


def refuse_wish(wish: Wish) -> None:
    """Raise `click.UsageError` for options that cannot be combined."""
    if wish.query is None and not wish.tables and not wish.patterns:
        raise click.UsageError("name what to move: --table, --tables or --query")
    if wish.query is not None and (wish.tables or wish.patterns or wish.where is not None):
        raise click.UsageError("--query stands alone: put tables and conditions into it")
    if (len(wish.tables) > 1 or wish.patterns) and (wish.where is not None or wish.columns):
        raise click.UsageError("--where and --columns are for one table: move it by itself")
