"""`dbdyno move FOLDER postgresql://...`: load files into a table."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move import options as shared

if TYPE_CHECKING:
    from dbdyno.move.loading.request import LoadRequest, LoadResult, MultiTableResult
    from dbdyno.move.reading.run import JobOptions

LOAD_OPTIONS = ("mode", "key", "create", "defer_indexes", "rejects", "max_rejects")
READ_OPTIONS = (
    "patterns",
    "query",
    "where",
    "columns",
    "as_text",
    "piece",
    "hold",
    "into",
    "partition_by",
)
OPTIONS = {"tables": "table", "patterns": "tables", "as_text": "text"}


def load_into_table(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Load the files and print the result."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.loading.dry_run import describe_load
    from dbdyno.move.loading.load import load_files

    refuse(other_options, READ_OPTIONS, "works only if SOURCE is a connection string")
    if len(other_options["tables"]) != 1:
        raise click.UsageError("name the table to load with one --table")
    goal = load_request(other_options["tables"][0], other_options)
    if other_options["job"] is not None:
        _as_job(source, to, level, options, other_options, goal)
        return
    with file_or_stdin(source) as path:
        if other_options["dry_run"]:
            for line in describe_load(Postgres.open(to, keep_first=True), path, goal, options, level):
                click.echo(line)
            return
        show(load_files(Postgres.open(to, keep_first=True), path, goal, options, level))


def _as_job(
    source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any], goal: LoadRequest
) -> None:
    """Load with a ledger, so that the load can be resumed after any interruption."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.loading.load_job import load

    refuse_as_job(source, other_options)
    target = Postgres.open(to, keep_first=True)
    with shared.report_interruption(Path(other_options["job"])):
        show(load(target, Path(source), goal, Path(other_options["job"]), options, level))


def refuse_as_job(source: str, other_options: Mapping[str, Any]) -> None:
    """Raise `click.UsageError` for options that cannot be combined with --job."""
    if source == "-":
        raise click.UsageError(
            "--job needs files, because stdin can be read only once: write the rows into a file first"
        )
    refuse(other_options, ("dry_run",), "works only without --job, because a job loads the same rows")


def file_or_stdin(source: str) -> contextlib.AbstractContextManager[Path]:
    """Return the named file or folder, or the content of stdin."""
    from dbdyno.move.loading.files import spool

    if source != "-":
        return contextlib.nullcontext(Path(source))
    if sys.stdin.isatty():
        raise click.UsageError("- - reads Arrow IPC from stdin, but stdin is a terminal")
    return spool(sys.stdin.buffer)


def load_request(table: str, other_options: Mapping[str, Any]) -> LoadRequest:
    """Return the load request that the options describe."""
    from dbdyno.move.loading.request import PARTITIONS, REJECTS_MOST, LoadRequest

    mode, key = other_options["mode"] or "insert", other_options["key"]
    if (mode in ("update", "merge")) != (key is not None):
        raise click.UsageError("--mode update and --mode merge need a --key, and the other modes do not accept one")
    if other_options["create"] and mode != "insert":
        raise click.UsageError("--create makes a new, empty table: leave --mode out")
    if other_options["max_rejects"] is not None and other_options["rejects"] is None:
        raise click.UsageError("--max-rejects needs --rejects FILE, to which rejected rows are written")
    if other_options["defer_indexes"] and mode in ("update", "merge"):
        raise click.UsageError(
            "--defer-indexes works only with insert and replace: update and merge need the index of the key"
        )
    if other_options["defer_indexes"] and mode == PARTITIONS:
        raise click.UsageError("leave --defer-indexes out: new partitions always get their indexes after their rows")
    most = other_options["max_rejects"] or REJECTS_MOST
    return LoadRequest(
        table,
        mode,
        split_names(key),
        other_options["create"],
        other_options["defer_indexes"],
        other_options["rejects"],
        most,
    )


def show(loaded: LoadResult | MultiTableResult | None) -> None:
    """Print the result (None: there was nothing to do), and exit with 1 if rows were rejected or values changed."""
    if loaded is None:
        click.echo("The job had published all rows before it ended: there is nothing left to do.")
        return
    for line in loaded.sentences():
        click.echo(line)
    if loaded.rejected or loaded.rounded:
        click.get_current_context().exit(1)


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list; empty for None."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def refuse(other_options: Mapping[str, Any], options: tuple[str, ...], why: str) -> None:
    """Raise `click.UsageError` if one of these options is given."""
    given = [name for name in options if other_options[name]]
    if given:
        option = OPTIONS.get(given[0], given[0]).replace("_", "-")
        raise click.UsageError(f"--{option} {why}")
