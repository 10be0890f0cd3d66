"""`dbdyno move SOURCE TARGET`: from PostgreSQL tables to files, from files to a table, and from server to server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.errors import MoveError
from dbdyno.cli.mask_option import mask_key_option, mask_option
from dbdyno.cli.move import database, mariadb
from dbdyno.cli.move import options as shared
from dbdyno.cli.move import oracle as move_oracle
from dbdyno.cli.move import wide as move_wide
from dbdyno.cli.move.finish import finish
from dbdyno.cli.move.load import LOAD_OPTIONS, load_into_table, refuse
from dbdyno.cli.move.plan import show_plan
from dbdyno.cli.move.request import request_for_one_file, request_of
from dbdyno.cli.move.transfer import transfer_rows
from dbdyno.cli.parameters import PATH, engine_option
from dbdyno.move.spark.remote_jobs import check_reachable, is_hadoop_url

if TYPE_CHECKING:
    from dbdyno.move.reading.run import JobOptions


_SERVER = re.compile(r"\w+://|\s*(host|hostaddr|port|user|dbname|service)\s*=")

_NO_TARGET = "--verify target works only if the target is a server: here it is a folder or file"


class _Move(click.Command):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage without SOURCE, which is already printed as the command's name (`move.py`)."""
        return ["TARGET [OPTIONS]"]


@click.command("move", cls=_Move)
@click.argument("source")
@click.argument("to", metavar="TARGET")
@click.option(
    "--table",
    "tables",
    multiple=True,
    help="Name of a table, view or materialized view, written as in SQL. Repeatable.",
)
@click.option(
    "--tables",
    "patterns",
    multiple=True,
    help="Move all tables that match this pattern, such as 'sales.*'. Repeatable.",
)
@click.option(
    "--database",
    is_flag=True,
    help="Move the whole database (schema, rows, indexes and everything else) into an empty database.",
)
@mask_option
@mask_key_option
@click.option("--query", help="Move the rows of this query instead of a table; they are read in one stream.")
@click.option("--where", help="Move only rows for which this SQL expression is true (time zone: UTC).")
@click.option("--columns", help="Move only these columns, comma-separated.")
@click.option("--text", "as_text", help="Move these columns as text, comma-separated.")
@click.option("--piece", type=shared.Size(), help="Size of a chunk in the table; each chunk becomes one file.")
@click.option(
    "--hold",
    type=click.IntRange(0, 86_400),
    default=0,
    help="Keep the snapshot for this number of seconds if the process is killed, so that resume is exact.",
)
@click.option(
    "--into",
    help="From server to server: target table, if its name differs; 'schema.*' for several tables.",
)
@click.option(
    "--job",
    type=PATH,
    help="For a move into a server or to Hadoop: folder to create for the ledger. [default: jobs/TIME-TABLE]",
)
@click.option("--partition-by", help="Create a folder per value of this column, named COLUMN=VALUE.")
@engine_option("reads the chunks")
@click.option("--master", help="With --engine spark: the cluster, such as spark://host:7077.")
@click.option("--cluster", help="Into Cassandra: clustering columns, comma-separated.")
@click.option("--direct", is_flag=True, help="Into Cassandra: write SSTables locally and stream them to the nodes.")
@click.option("--static", help="Into Cassandra: columns with one value per partition; auto finds them.")
@click.option("--dry-run", is_flag=True, help="Show the plan; read no row, write nothing.")
@shared.load_options
@shared.verify_option
@shared.worker_options
@shared.result_option
def command(source: str, to: str, level: str, **rest: Any) -> None:
    """Copy tables from SOURCE to TARGET, as of one instant.

    SOURCE is the connection string of a server, a folder of files, or - (Arrow on stdin). TARGET is a new folder for
    Parquet files, x.arrow, x.csv, - (Arrow on stdout), a folder on a Hadoop file system (hdfs://...), or the connection
    string of a server. Where a job needs a folder and --job does not name one, it is made in jobs/.

    Out of a server: the table is split by its blocks; all workers read in one snapshot, so writers make no difference.
    Types are kept; a type that Parquet does not have becomes the server's text, with the type in the field's metadata.
    Nothing is written to the server, and no lock is held that stops a writer.

    To a Cassandra (cassandra://host/keyspace) the rows of --query are folded into the wide --table by --key and
    --cluster; from one, --table goes into files.

    Into a server: all rows or none. The files go into a staging table; one transaction publishes it.

    With --database everything goes into an empty database. After a kill, the same command with the same --job continues
    the move.
    """
    to = to.removeprefix("file://") if to.startswith("file:///") else to
    _refuse(source, to, rest)
    if rest["database"]:
        database.refuse_servers(source, to)
        database.move_whole_database(
            source,
            to,
            level,
            shared.job_options(rest["workers"], rest["memory"], rest["rate_limit"], rest["piece"]),
            rest,
        )
        return
    database.refuse_without_database(rest)
    how = shared.job_options(rest["workers"], rest["memory"], rest["rate_limit"], rest["piece"])
    if _move_otherwise(source, to, level, how, rest):
        return
    from_mariadb = mariadb.is_mariadb(source)
    if source == "-" or Path(source).exists():
        if mariadb.is_mariadb(to):
            mariadb.load_into_table(source, to, level, how, rest)
        else:
            load_into_table(source, to, level, how, rest)
        return
    if _SERVER.match(to):
        (mariadb.transfer_rows if from_mariadb or mariadb.is_mariadb(to) else transfer_rows)(
            source, to, level, how, rest
        )
        return
    refuse(rest, (*LOAD_OPTIONS, "into", "job"), "works only if the target is a server")
    if level == "target":
        raise click.UsageError(_NO_TARGET)
    if to == "-" or Path(to).suffix in (".arrow", ".csv"):
        (mariadb.write if from_mariadb else _write)(source, to, level, how, rest)
        return
    (mariadb.export_tables if from_mariadb else _take)(source, Path(to), level, how, rest)


def _refuse(source: str, to: str, other_options: Mapping[str, Any]) -> None:
    """Raise an error if the source does not exist, or if --engine does not fit the source and the target."""
    if "://" not in source and "=" not in source and source != "-" and not Path(source).exists():
        raise MoveError(
            "does not exist, and is not a connection string",
            where=source,
            next_step="name a folder of files, one file, - or postgresql://user@host/database",
        )
    spark = other_options["engine"] == "spark"
    if spark != (other_options["master"] is not None):
        raise click.UsageError("--engine spark and --master need each other: --master names the cluster")
    served = _SERVER.match(to) and not is_hadoop_url(to)
    if spark and (source == "-" or Path(source).exists() or served or mariadb.is_mariadb(source)):
        raise click.UsageError("--engine spark moves only tables of PostgreSQL into a folder of Parquet files")


def _move_otherwise(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> bool:
    """Handle moves with Cassandra, Oracle or Hadoop; return False if this move is none of these."""
    if source.startswith(move_wide.SCHEME):
        move_wide.export_rows(source, to, other_options)
        return True
    if to.startswith(move_wide.SCHEME):
        move_wide.load_rows(source, to, level, options, other_options)
        return True
    refuse(other_options, ("cluster", "static", "direct"), "works only if the target is Cassandra")
    if source.startswith(move_oracle.SCHEME):
        move_oracle.export_table(source, to, level, options, other_options)
        return True
    if is_hadoop_url(to):
        _take_away(source, to, level, options, other_options)
        return True
    return False


def _write(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.reading.single import write

    request = request_for_one_file(level, other_options)
    written = write(Postgres.open(source, keep_first=True), request, to, options, read_again=level == "files")
    for line in written.sentences():
        click.echo(line, err=to == "-")


def _take_away(source: str, to: str, level: str, options: JobOptions, other_options: Mapping[str, Any]) -> None:
    """Copy PostgreSQL tables to a folder on a Hadoop file system; the ledger is in the folder of --job."""
    refuse(other_options, (*LOAD_OPTIONS, "into"), "does not work if the target is a Hadoop file system")
    if Path(source).exists() or source == "-" or mariadb.is_mariadb(source):
        raise click.UsageError("only tables of PostgreSQL can be moved to a Hadoop file system")
    if level == "target":
        raise click.UsageError(_NO_TARGET)
    if other_options["engine"] != "spark" and not other_options["dry_run"]:
        check_reachable(to)
    folder = Path(other_options["job"] or "") if other_options["dry_run"] else shared.job_folder(other_options)
    _take(source, folder, level, options, other_options, place=to)


def _take(
    source: str,
    folder: Path,
    level: str,
    options: JobOptions,
    other_options: Mapping[str, Any],
    *,
    place: str | None = None,
) -> None:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.engines.postgres.snapshot_holder import hold_snapshot
    from dbdyno.move.proof.statement import check_source
    from dbdyno.move.reading.run import begin, run_job
    from dbdyno.move.spark.remote_jobs import run_uploading_job

    request = request_of(other_options)
    target = Postgres.open(source, keep_first=True)
    if other_options["dry_run"]:
        show_plan(target, request, options)
        return
    ledger, snapshot = begin(target, request, folder, options, place=place)
    with snapshot, shared.report_interruption(folder):
        with hold_snapshot(target, snapshot, ledger, other_options["hold"]):
            if other_options["engine"] == "spark":
                from dbdyno.move.spark.job import run as run_on_spark

                run_on_spark(target, ledger, snapshot, options, other_options["master"])
            elif place is not None:
                run_uploading_job(target, ledger, snapshot, options)
            else:
                run_job(target, ledger, snapshot, options)
        finish(ledger, level, lambda proved: check_source(target, ledger, snapshot, options, proved))
