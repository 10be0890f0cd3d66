"""Dry run of a load: describes what would be done and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.target import TargetTable, match_target
from dbdyno.move.loading.files import describe_files, files_of, rejects_of
from dbdyno.move.loading.methods import METHODS, FileLoad
from dbdyno.move.loading.request import LoadRequest
from dbdyno.move.loading.transfer import target_session
from dbdyno.move.nouns import with_noun
from dbdyno.move.reading.run import JobOptions


def describe_load(
    target: Postgres, folder: Path, load_request: LoadRequest, options: JobOptions, level: str
) -> list[str]:
    """Return lines that describe the files, the method of loading them, and what each column would become.

    Raises:
        MoveError: The load would be refused at its start.
    """
    files, records = files_of(folder)
    heads = describe_files(files)
    rejects = rejects_of(load_request, files)
    lines: list[str] = []
    with target_session(target, load_request) as conn:
        goal = match_target(conn, load_request, heads[0][0])
        how = replace(options, say=lines.append)
        loading = FileLoad(target, conn, files, records, load_request, how, goal, heads[0][0], rejects, level)
        way = loading.choose_method()
    what = file_totals(files, heads)
    return [f"{goal.schema}.{goal.name}: {load_request.mode} of {what}; {METHODS[way]}", *lines, *columns_of(goal)]


def file_totals(files: Sequence[Path], heads: Sequence[tuple[object, int | None]]) -> str:
    """Return the number of files, their rows (if known for all) and their total size as text."""
    size = sum(path.stat().st_size for path in files)
    known = [rows for _, rows in heads if rows is not None]
    told = f", {with_noun(sum(known), 'row')}" if len(known) == len(files) else ""
    return f"{with_noun(len(files), 'file')}{told}, {size / 1e6:,.1f} MB"


def columns_of(goal: TargetTable) -> list[str]:
    """Return one line per column with its incoming and its target type."""
    return [
        f"  {one.name}: {one.staged} -> {one.declared}"
        + (", which the server generates" if one.generated else ", read from its text" if one.is_parsed else "")
        for one in goal.columns
    ]
