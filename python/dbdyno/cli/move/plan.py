"""`dbdyno move ... --dry-run`: the plan of an export or a server-to-server move; nothing is read or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dbdyno.base.errors import MoveError
from dbdyno.move.nouns import with_noun

if TYPE_CHECKING:
    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.engines.postgres.source import Request
    from dbdyno.move.loading.request import LoadRequest
    from dbdyno.move.reading.run import JobOptions, Plan


def show_plan(
    source: Postgres, request: Request, options: JobOptions, show_result: Callable[[Plan, int], None] | None = None
) -> None:
    """Print the chunks, the types and the first statement.

    For a move to another server, `show_result` prints what each table becomes there.
    """
    from dbdyno.move.engines.postgres.source import copy_sql, take_snapshot
    from dbdyno.move.reading.run import new_id, notes_before, plan_of

    with take_snapshot(source, request, new_id()) as snapshot:
        plan = plan_of(source, snapshot, new_id(), options)
        for line in notes_before(plan, snapshot.conn.info.server_version)[1:]:
            click.echo(line)
        for place, table in enumerate(plan.tables):
            chunks = [chunk for chunk in plan.chunks if chunk.table == place]
            if not chunks:
                raise MoveError(
                    "has no rows to move: it is neither a table nor a partitioned table with partitions",
                    where=f"{table.schema}.{table.name}",
                    next_step="name another table with --table",
                )
            statement = copy_sql(snapshot.conn, plan.tables, chunks[0])
            show_table(plan, place, lambda column: column.pg_type, statement, show_result)


def show_table(
    plan: Plan,
    place: int,
    type_of: Callable[[Any], str],
    statement: str,
    show_result: Callable[[Plan, int], None] | None,
) -> None:
    """Print a table of a plan: its size, its columns or what they become, and the statement of its first chunk."""
    table, sizes = plan.tables[place], [chunk.bytes for chunk in plan.chunks if chunk.table == place]
    name = f"{table.schema}.{table.name}" if table.schema else "the query"
    click.echo(f"{name}: {table.kind}, {sum(sizes) / 1e6:,.1f} MB, {with_noun(len(sizes), 'chunk')}")
    for column in table.columns if show_result is None else ():
        held = f"decimal({column.precision},{column.scale})" if column.kind == "decimal" else column.kind
        click.echo(f"  {column.name}: {type_of(column)} -> {held}{', in words' if column.cast else ''}")
    if show_result is not None:
        show_result(plan, place)
    click.echo(f"  {statement}")


def show_target(plan: Plan, place: int, target: Postgres, load_request: LoadRequest) -> None:
    """Print the PostgreSQL table that would receive the rows, and what each column becomes."""
    from dbdyno.move.loading.dry_run import columns_of
    from dbdyno.move.loading.staged_rows import target_tables
    from dbdyno.move.loading.transfer import target_session
    from dbdyno.move.reading.run import plan_for_transfer

    with target_session(target, load_request) as conn:
        goal = target_tables(conn, plan_for_transfer(plan, {}), load_request)[place]
        click.echo(f"into {goal.schema}.{goal.name} of {target.safe_dsn}: {load_request.mode}")
        for line in columns_of(goal):
            click.echo(line)
