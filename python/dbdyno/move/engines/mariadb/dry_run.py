"""What a load into a MariaDB would do, in lines: nothing is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dbdyno.base.errors import MoveError
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.move.engines.mariadb.load import reached, refuse_csv
from dbdyno.move.engines.mariadb.sql import split_name
from dbdyno.move.engines.mariadb.staged_rows import heads_of, intos_of
from dbdyno.move.engines.mariadb.target import Heads, database_of, is_there, matched, type_of
from dbdyno.move.loading.dry_run import sum_of
from dbdyno.move.loading.files import described, files_of, rejects_of
from dbdyno.move.loading.request import Into
from dbdyno.move.reading.run import Plan

WAY = "staged, then added in one transaction"


def rehearse(target: MariaDB, folder: Path, into: Into) -> list[str]:
    """The files, and what each column becomes. Raises `MoveError`, as the load would at its begin."""
    files, _ = files_of(folder)
    refuse_csv(files)
    heads = described(files)
    rejects_of(into, files)
    name, columns = _columns(target, into, heads[0][0])
    return [f"{name}: {into.mode} of {sum_of(files, heads)}; {WAY}", *columns]


def tables_of(target: MariaDB, plan: Plan, into: Into) -> list[list[str]]:
    """The same of each table of a plan. Raises `MoveError`."""
    found = []
    for place, one in enumerate(intos_of(plan, into)):
        name, columns = _columns(target, one, heads_of(plan, place))
        found.append([f"into {name} of {target.safe_dsn}: {into.mode}", *columns])
    return found


def _columns(target: MariaDB, into: Into, heads: Heads) -> tuple[str, list[str]]:
    """The table's name, and a line for each column: what comes, and what it becomes."""
    with reached(target, "rehearses") as conn:
        if into.create:
            if is_there(conn, database_of(target), into):
                raise MoveError("is there already", where=into.table, next_step="leave --create out")
            lines = [f"  {one['name']}: {one['staged']} -> {type_of(one)}" for one in heads]
            return ".".join(split_name(into.table, database_of(target))), lines
        goal = matched(conn, database_of(target), replace(into, create=False), heads)
    made = ", which the server makes"
    lines = [f"  {one.name}: {one.staged} -> {one.declared}{made if one.generated else ''}" for one in goal.fields]
    return f"{goal.schema}.{goal.name}", lines
