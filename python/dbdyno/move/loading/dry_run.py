"""What a load would do, in lines: nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg

from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import failure
from dbdyno.move.engines.postgres.target import Goal, matched
from dbdyno.move.loading.files import described, files_of, rejects_of
from dbdyno.move.loading.load import reached
from dbdyno.move.loading.methods import WAYS, Loading
from dbdyno.move.loading.request import Into
from dbdyno.move.nouns import counted
from dbdyno.move.reading.run import How


def rehearse(target: Postgres, folder: Path, into: Into, how: How, *, read_again: bool, compare: bool) -> list[str]:
    """The files, the way that they would go, and each column's. Raises `MoveError`, as the load would at its begin."""
    files, records = files_of(folder)
    heads = described(files)
    rejects = rejects_of(into, files)
    lines: list[str] = []
    try:
        with reached(target, into) as conn:
            goal = matched(conn, into, heads[0][0])
            loading = Loading(target, conn, files, records, into, how, goal, heads[0][0], lines.append)
            way = loading.way(checked=rejects is not None or compare, read_again=read_again)
    except psycopg.Error as error:
        raise failure(error, into.table) from None
    what = sum_of(files, heads)
    return [f"{goal.schema}.{goal.name}: {into.mode} of {what}; {WAYS[way]}", *lines, *columns_of(goal)]


def sum_of(files: Sequence[Path], heads: Sequence[tuple[object, int | None]]) -> str:
    """How much it is, in words."""
    size = sum(path.stat().st_size for path in files)
    known = [rows for _, rows in heads if rows is not None]
    told = f", {counted(sum(known), 'row')}" if len(known) == len(files) else ""
    return f"{counted(len(files), 'file')}{told}, {size / 1e6:,.1f} MB"


def columns_of(goal: Goal) -> list[str]:
    """A line for each column: what comes, and what it becomes."""
    return [
        f"  {one.name}: {one.staged} -> {one.declared}"
        + (", which the server makes" if one.generated else ", read from its text" if one.is_parsed else "")
        for one in goal.columns
    ]
