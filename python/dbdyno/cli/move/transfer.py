"""`dbdyno move postgresql://... postgresql://...`: from server to server, without files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move import options as shared
from dbdyno.cli.move.load import load_request, refuse, show
from dbdyno.cli.move.plan import show_plan, show_target
from dbdyno.cli.move.request import request_of

if TYPE_CHECKING:
    from dbdyno.move.engines.postgres.source import Request
    from dbdyno.move.reading.run import JobOptions

REFUSED_OPTIONS = ("as_text", "partition_by")


def transfer_rows(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Move tables, or the rows of a query, and print the result."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.loading.transfer import move

    refuse(other_options, REFUSED_OPTIONS, "does not work from server to server")
    if level == "files":
        raise click.UsageError("a move from server to server has no files: use --verify source or --verify target")
    request = request_of(other_options)
    table = target_of(request, other_options["into"])
    if other_options["dry_run"]:
        there, asked = Postgres.open(to, keep_first=True), load_request(table, other_options)
        opened = Postgres.open(source, keep_first=True)
        show_plan(opened, request, options, lambda plan, place: show_target(plan, place, there, asked))
        return
    goal = load_request(table, other_options)
    opened, target = Postgres.open(source, keep_first=True), Postgres.open(to, keep_first=True)
    show(
        move(
            opened,
            request,
            target,
            goal,
            shared.job_folder(other_options),
            options,
            hold=other_options["hold"],
            level=level,
        )
    )


def target_of(request: Request, into: str | None) -> str:
    """Return the table that receives the rows; `*` means that each table keeps its name."""
    from dbdyno.move.loading.publish_order import EACH

    several = bool(request.patterns) or len(request.tables) > 1
    table = into or (EACH if several else next(iter(request.tables), None))
    if table is None:
        raise click.UsageError("name the table for the rows of the query with --into")
    return table
