"""`dbdyno snap sessions`: active sessions between two snapshots, what they did, and who blocked whom."""

from __future__ import annotations

from pathlib import Path

import click

from dbdyno.base.limits import Count
from dbdyno.cli.output import Output
from dbdyno.cli.pages import page_options, show_page
from dbdyno.cli.parameters import option_with_default
from dbdyno.cli.snap.options import name_option, store_option

DIMENSIONS = ("statement", "user", "database", "application", "client", "event", "class", "session", "table")
LISTED = (*DIMENSIONS, "index")


@click.command("sessions")
@click.argument("first")
@click.argument("last")
@option_with_default("--by", type=click.Choice(LISTED), default="statement", help="Columns to group by.")
@click.option(
    "--where",
    "kept",
    multiple=True,
    metavar="NAME=VALUE",
    help="Keep only sessions with this value, such as user=app or class=lock; repeat to combine conditions.",
)
@option_with_default("--top", type=Count(), default=20, help="Number of rows per table.")
@store_option
@name_option
@page_options
def command(
    first: str,
    last: str,
    by: str,
    kept: tuple[str, ...],
    top: int,
    store: Path,
    target: str | None,
    output: Output,
) -> None:
    """Show the active sessions between snapshot FIRST and snapshot LAST, from the samples of `snap watch`.

    FIRST and LAST are each a number, a note, a time (UTC unless it has a zone) or `last`, `last-1`.

    \b
    dbdyno snap sessions 1 60
    dbdyno snap sessions 1 60 --by client --where class=lock
    dbdyno snap sessions 1 60 --by event --where table=public.orders
    dbdyno snap sessions 1 60 --by event -o sessions.html
    """
    from dbdyno.snapshot.reading.interval import Interval
    from dbdyno.snapshot.reading.names import find
    from dbdyno.snapshot.sessions.report import sessions
    from dbdyno.snapshot.store.folder import Store

    only = _conditions(kept)
    holder = Store(store)
    start = find(holder, first, target)
    end = find(holder, last, target or (start.target if first.isdigit() else None))
    with Interval(holder, start, end) as interval:
        model = sessions(interval, by, only, top)
    show_page(model, output)


def _conditions(kept: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in kept:
        name, sign, value = one.partition("=")
        if not sign or name not in DIMENSIONS:
            raise click.BadParameter(
                f"{one!r:.60} is not NAME=VALUE with one of the names {', '.join(DIMENSIONS)}", param_hint="--where"
            )
        found[name] = value
    return found
