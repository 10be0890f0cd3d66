"""Dry run of a load into MariaDB: describes what would be done and writes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.load import open_session, refuse_csv
from dbdyno.move.engines.mariadb.sql import split_name
from dbdyno.move.engines.mariadb.staged_rows import heads_of, requests_of_plan
from dbdyno.move.engines.mariadb.target import Heads, database_of, match_target, table_exists, type_of
from dbdyno.move.loading.dry_run import file_totals
from dbdyno.move.loading.files import describe_files, files_of, rejects_of
from dbdyno.move.loading.request import LoadRequest
from dbdyno.move.reading.run import Plan

METHOD = "staged, then added in one transaction"


def describe_load(target: MariaDB, folder: Path, load_request: LoadRequest) -> list[str]:
    """Return lines that describe the files of a folder and what each column would become.

    Raises:
        MoveError: The load would be refused at its start.
    """
    files, _ = files_of(folder)
    refuse_csv(files)
    heads = describe_files(files)
    rejects_of(load_request, files)
    name, columns = _columns(target, load_request, heads[0][0])
    return [f"{name}: {load_request.mode} of {file_totals(files, heads)}; {METHOD}", *columns]


def tables_of(target: MariaDB, plan: Plan, load_request: LoadRequest) -> list[list[str]]:
    """Return, for each table of a plan, lines that name its target and what each column would become.

    Raises:
        MoveError: The load would be refused at its start.
    """
    found = []
    for place, one in enumerate(requests_of_plan(plan, load_request)):
        name, columns = _columns(target, one, heads_of(plan, place))
        found.append([f"into {name} of {target.safe_dsn}: {load_request.mode}", *columns])
    return found


def _columns(target: MariaDB, load_request: LoadRequest, heads: Heads) -> tuple[str, list[str]]:
    """Return the target table's name, and one line per column with its incoming and its target type."""
    with open_session(target, "rehearses") as conn:
        if load_request.create:
            if table_exists(conn, database_of(target), load_request):
                raise MoveError(
                    "already exists", where=load_request.table, next_step="leave --create out, or name another table"
                )
            lines = [f"  {one['name']}: {one['staged']} -> {type_of(one)}" for one in heads]
            return ".".join(split_name(load_request.table, database_of(target))), lines
        goal = match_target(conn, database_of(target), replace(load_request, create=False), heads)
    made = ", which the server generates"
    lines = [f"  {one.name}: {one.staged} -> {one.declared}{made if one.generated else ''}" for one in goal.fields]
    return f"{goal.schema}.{goal.name}", lines
