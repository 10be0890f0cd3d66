"""`dbdyno move SOURCE --to TARGET`: tables of a PostgreSQL to Parquet, and Parquet into a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dbdyno.cli import move_options as shared
from dbdyno.errors import MoveError

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.ledger import Ledger
    from dbdyno.move.run import How
    from dbdyno.move.source import Snapshot, Wish


@click.command("move")
@click.argument("source")
@click.option(
    "--table", "tables", multiple=True, help="Table, view or materialized view, as SQL writes it. Repeatable."
)
@click.option("--tables", "patterns", multiple=True, help="All that fit, such as 'sales.*'. Repeatable.")
@click.option("--query", help="One query instead of a table; one stream.")
@click.option("--where", help="Only rows for which this SQL expression holds (in UTC).")
@click.option("--columns", help="Only these, with commas between.")
@click.option("--text", "as_text", help="These columns in the server's own words, with commas between.")
@click.option("--to", required=True, help="A new folder for the files; on the way in a connection string.")
@click.option("--piece", type=shared.Size(), help="Bytes of a table that make one chunk, one file.")
@click.option(
    "--hold",
    type=click.IntRange(0, 86_400),
    default=0,
    help="Seconds for which a second process keeps the snapshot if this one is killed, so that resume is exact.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan; read no row, write nothing.")
@click.option(
    "--mode",
    type=click.Choice(["insert", "replace", "update", "merge"]),
    help="On the way in: add rows, empty the table first, change rows with the same key, or change and add.",
)
@click.option("--key", help="Columns that tell rows apart, for update and merge, with commas between.")
@shared.verify_option
@shared.how_options
def command(source: str, to: str, mode: str | None, key: str | None, level: str, **rest: Any) -> None:
    """Copy a table of the PostgreSQL at SOURCE into Parquet files, as of one instant; or, where SOURCE is a folder,
    its files into a table of the PostgreSQL at --to.

    Out: the table is cut by its blocks; all workers read in one snapshot, so writers make no difference. Types are
    kept; what Parquet cannot hold is text in the server's own words, with the type in the field's metadata. Nothing is
    written to the server, and no lock is held that stops a writer.

    In: all of it or nothing. The files go into a staging table; one transaction publishes it.
    """
    how = shared.how(rest["workers"], rest["memory"], rest["rate_limit"], rest["piece"])
    if Path(source).is_dir():
        _bring(Path(source), to, mode, key, level, how, rest)
        return
    if mode is not None or key is not None:
        raise click.UsageError("--mode and --key are for the way in, where SOURCE is a folder")
    if "://" in to:
        raise click.UsageError("from server to server goes by files: move to a folder, then the folder to the server")
    _take(source, Path(to), level, how, rest)


def _take(source: str, folder: Path, level: str, how: How, rest: dict[str, Any]) -> None:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.hold import held
    from dbdyno.move.run import begin, work
    from dbdyno.move.source import Wish

    columns, as_text = _names(rest["columns"]), _names(rest["as_text"])
    wish = Wish(rest["tables"], rest["patterns"], rest["where"], columns, rest["query"], as_text)
    _refuse(wish)
    target = Postgres.open(source)
    if rest["dry_run"]:
        _show_plan(target, wish, how)
        return
    ledger, snapshot = begin(target, wish, folder, how, shared.say)
    with snapshot, shared.goes_on(folder):
        with held(target, snapshot, ledger, rest["hold"]):
            work(target, ledger, snapshot, how, shared.say)
        finish(target, ledger, snapshot, how, level)


def _bring(
    folder: Path, to: str, mode: str | None, key: str | None, level: str, how: How, rest: dict[str, Any]
) -> None:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.inward import Into, bring

    given = [
        name for name in ("patterns", "query", "where", "columns", "as_text", "piece", "dry_run", "hold") if rest[name]
    ]
    if given:
        option = {"patterns": "tables", "as_text": "text", "dry_run": "dry-run"}.get(given[0], given[0])
        raise click.UsageError(f"--{option} is for the way out, where SOURCE is a connection string")
    if len(rest["tables"]) != 1:
        raise click.UsageError("name the table to load: --table, once")
    if (mode in ("update", "merge")) != (key is not None):
        raise click.UsageError("--mode update and --mode merge need a --key, and the others take none")
    into = Into(rest["tables"][0], mode or "insert", _names(key))
    loaded = bring(Postgres.open(to), folder, into, how, shared.say, read_again=level == "source")
    for line in loaded.sentences():
        click.echo(line)


def finish(target: Postgres, ledger: Ledger, snapshot: Snapshot, how: How, level: str) -> None:
    """Checks what was asked for and says what is proved; exit 1 where something differs."""
    from dbdyno.move import proof

    proved = proof.known(ledger)
    if level != "counts":
        proved = proof.check_files(ledger, proved)
    if level == "source":
        proved = proof.check_source(target, ledger, snapshot, how, proved)
    for line in proved.sentences():
        click.echo(line)
    if proved.differs:
        click.get_current_context().exit(1)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _refuse(wish: Wish) -> None:
    if wish.query is None and not wish.tables and not wish.patterns:
        raise click.UsageError("name what to move: --table, --tables or --query")
    if wish.query is not None and (wish.tables or wish.patterns or wish.where is not None):
        raise click.UsageError("--query stands alone: put tables and conditions into it")
    if (len(wish.tables) > 1 or wish.patterns) and (wish.where is not None or wish.columns):
        raise click.UsageError("--where and --columns are for one table: move it by itself")


def _show_plan(target: Postgres, wish: Wish, how: How) -> None:
    from dbdyno.move.run import aloud, new_id, plan_of
    from dbdyno.move.source import copy_sql, take

    with take(target, wish, new_id()) as snapshot:
        plan = plan_of(target, snapshot, new_id(), how)
        for line in aloud(plan, snapshot.conn.info.server_version)[1:]:
            click.echo(line)
        for place, table in enumerate(plan.tables):
            chunks = [chunk for chunk in plan.chunks if chunk.table == place]
            if not chunks:
                raise MoveError("has no relation with rows of its own", where=f"{table.schema}.{table.name}")
            size = sum(chunk.bytes for chunk in chunks)
            click.echo(f"{table.schema}.{table.name}: {table.kind}, {size / 1e6:,.1f} MB, {len(chunks)} chunks")
            for column in table.columns:
                held = f"decimal({column.precision},{column.scale})" if column.kind == "decimal" else column.kind
                click.echo(f"  {column.name}: {column.pg_type} -> {held}{', in words' if column.cast else ''}")
            first = chunks[0]
            click.echo(f"  {copy_sql(snapshot.conn, table, table.relations[0], first.start, first.before)}")
