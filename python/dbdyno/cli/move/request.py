"""The request for a move, built from the options of `dbdyno move`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move.load import refuse, split_names

if TYPE_CHECKING:
    from dbdyno.move.engines.postgres.source import Request


def request_of(other_options: Mapping[str, Any]) -> Request:
    """Return the request; raise `click.UsageError` for options that cannot be combined.

    The caller must already have refused options that do not apply to this kind of move; they are empty here.
    """
    from dbdyno.move.engines.postgres.source import Request

    request = Request(
        other_options["tables"],
        other_options["patterns"],
        other_options["where"],
        split_names(other_options["columns"]),
        other_options["query"],
        split_names(other_options["as_text"]),
        other_options["partition_by"],
    )
    _refuse_request(request)
    return request


def _refuse_request(request: Request) -> None:
    if request.query is None and not request.tables and not request.patterns:
        raise click.UsageError("name what to move: --table, --tables or --query")
    if request.query is not None and (request.tables or request.patterns or request.where is not None):
        raise click.UsageError(
            "--query excludes --table, --tables, --where and --columns: write tables and conditions into the query"
        )
    if (len(request.tables) > 1 or request.patterns) and (request.where is not None or request.columns):
        raise click.UsageError("--where and --columns work with one table only: move that table in a job of its own")


def request_for_one_file(level: str, other_options: Mapping[str, Any]) -> Request:
    """Return the request for a move into one file; raise `click.UsageError` if an option needs a job with a folder."""
    refuse(other_options, ("hold", "dry_run", "partition_by"), "is for jobs with a folder of files")
    if level == "source":
        raise click.UsageError(
            "--verify source works only with jobs that have a folder: use --verify files to read the file again"
        )
    return request_of(other_options)
