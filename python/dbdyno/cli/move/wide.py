"""`dbdyno move` to and from Cassandra: fold a query's rows into wide rows, and copy a wide table to Parquet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli.move import options as shared
from dbdyno.cli.move.load import refuse, split_names

if TYPE_CHECKING:
    from dbdyno.move.reading.run import JobOptions
    from dbdyno.wide.address import Address
    from dbdyno.wide.load import LoadState

SCHEME = "cassandra://"
REFUSED_LOADING = (
    *("patterns", "where", "columns", "piece", "dry_run", "hold", "into", "partition_by"),
    *("mode", "defer_indexes", "rejects", "max_rejects"),
)
REFUSED_EXPORTING = (*REFUSED_LOADING, "query", "as_text", "key", "create", "job", "cluster", "static", "direct")


def load_rows(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Move the rows of a query into a wide table."""
    from dbdyno.base.files import make_folder
    from dbdyno.bench.cassandra.java import jar_folder
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.engines.postgres.source import Request
    from dbdyno.move.reading.run import begin as begin_rows
    from dbdyno.move.reading.run import run_job
    from dbdyno.wide.address import address
    from dbdyno.wide.load import ROWS, begin_load
    from dbdyno.wide.target import Shape

    refuse(other_options, REFUSED_LOADING, "does not work if the target is Cassandra")
    _refuse_level(level)
    if other_options["query"] is None or len(other_options["tables"]) != 1:
        raise click.UsageError("name the rows with --query, and the wide table for them with --table")
    if other_options["key"] is None:
        raise click.UsageError("name the columns of the partition key with --key")
    shape = Shape(
        other_options["tables"][0],
        split_names(other_options["key"]),
        split_names(other_options["cluster"]),
        split_names(other_options["static"]),
    )
    where, folder = address(to), shared.job_folder(other_options)
    target = Postgres.open(source)
    if folder.exists():
        raise click.UsageError(f"{folder} already exists: continue its job with `dbdyno move resume`")
    query = _order_by_partition(other_options["query"], shape)
    if other_options["direct"]:
        jar_folder()
    make_folder(folder)
    state = begin_load(folder, where, shape, create=other_options["create"], direct=other_options["direct"])
    request = Request(query=query, as_text=split_names(other_options["as_text"]))
    with _goes_on(folder):
        ledger, snapshot = begin_rows(target, request, folder / ROWS, options)
        with snapshot:
            run_job(target, ledger, snapshot, options)
        _load(state, where, level, options)


def _order_by_partition(query: str, shape: Any) -> str:
    """Return the query with its rows ordered so that those of a partition are adjacent."""
    from psycopg import sql

    from dbdyno.move.engines.postgres.sql import checked_sql

    text = checked_sql(query, "--query").rstrip().rstrip(";")
    order = sql.SQL(", ").join(sql.Identifier("q", one) for one in (*shape.key, *shape.cluster))
    return f"select * from (\n{text}\n) as q order by {order.as_string(None)}"  # noqa: S608 (a query is what it is)


def resume_load(job: Path, source: str, to: str | None, level: str, options: JobOptions) -> None:
    """Resume a load; its rows are read again only if they were not all in its files."""
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.ledger.folder import Ledger
    from dbdyno.move.reading.resume import resume
    from dbdyno.wide.address import address
    from dbdyno.wide.load import ROWS, LoadState

    if to is None:
        raise click.UsageError("the job loads rows into Cassandra: name its address with --target")
    _refuse_level(level)
    state, where = LoadState.open(job), address(to)
    ledger = Ledger.open(job / ROWS)
    with _goes_on(job):
        if ledger.manifest["status"] != "complete":
            resume(Postgres.open(source), ledger, options, restart=True, as_of_now=False).__exit__()
        _load(state, where, level, options)


def _refuse_level(level: str) -> None:
    if level not in ("counts", "target"):
        raise click.UsageError("expected --verify counts or target: the wide table is the target")


def _load(state: LoadState, address: Address, level: str, options: JobOptions) -> None:
    from dbdyno.wide.compare import compare
    from dbdyno.wide.load import files_of, load

    loaded = load(state, address, at_once=16 * options.workers, say=shared.say)
    for line in loaded.sentences():
        click.echo(line)
    if level != "target":
        click.echo("Not checked: the table was not read back (--verify target does).")
        return
    compared = compare(address, state.shape.table, files_of(state.folder))
    for line in compared.sentences():
        click.echo(line)
    if compared.lost:
        click.get_current_context().exit(1)


@contextlib.contextmanager
def _goes_on(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        next_step = f"next: `dbdyno move resume {folder} --source DSN --target cassandra://...`"
        raise KeyboardInterrupt(f"rows that the nodes acknowledged are kept; {next_step}") from stop


def export_rows(source: str, to: str, other_options: Mapping[str, Any]) -> None:
    """Move a wide table into Parquet files; the same command resumes an interrupted job."""
    from dbdyno.wide.address import address
    from dbdyno.wide.unload import unload

    refuse(other_options, REFUSED_EXPORTING, "does not work if the source is Cassandra")
    if len(other_options["tables"]) != 1:
        raise click.UsageError("name the wide table with one --table")
    if "://" in to or to == "-":
        raise click.UsageError(
            "a move from Cassandra writes a folder of Parquet files: load it afterwards with `dbdyno move "
            "FOLDER postgresql://...`"
        )
    for line in unload(address(source), other_options["tables"][0], Path(to)).sentences():
        click.echo(line)
