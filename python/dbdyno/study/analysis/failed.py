"""What failed, by arm, statement and SQLSTATE, in the blocks and slices that count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbdyno.study.analysis.measures import Measures

TRANSACTION = "transaction"

_SQL = """
with counted as (
  select arm, kind, statement, error from calls semi join slices
    on calls.block = slices.block and calls.slice = slices.slice and slices.counts
  where kind <> 'skipped'
), tried as (
  select arm, kind, statement, count(*) as tried from counted group by all
), failed as (
  select arm, kind, statement, error, count(*) as failed from counted where error is not null group by all
)
select arm, kind, statement, error, failed, tried from failed join tried using (arm, kind, statement)
order by failed desc, arm, statement, error
"""


@dataclass(frozen=True)
class Failures:
    """`rows`: one per arm, statement and SQLSTATE, the most frequent first; `codes`: per arm, failed
    transactions by SQLSTATE."""

    rows: list[dict[str, Any]]
    codes: list[dict[str, int]]


def of_run(connection: Any, measures: Measures) -> Failures:
    """What failed in a run.

    A script with several commands has a row per command that failed; the script's own row stands
    only for errors that belong to none of them, and for scripts of one command.
    """
    codes: list[dict[str, int]] = [{} for _ in measures.arms]
    if not connection.execute("select 1 from calls where error is not null limit 1").fetchall():
        return Failures([], codes)
    places = {arm.name: at for at, arm in enumerate(measures.arms)}
    names = ("arm", "kind", "statement", "sqlstate", "failed", "tried")
    rows = [dict(zip(names, row, strict=True)) for row in connection.execute(_SQL).fetchall()]
    rows = [{**row, "arm": places[row["arm"]]} for row in rows if row["arm"] in places]
    of_commands: dict[tuple[int, str], int] = {}
    for row in rows:
        key, own = (row["arm"], row["sqlstate"]), codes[row["arm"]]
        if row["kind"] == TRANSACTION:
            own[row["sqlstate"]] = own.get(row["sqlstate"], 0) + row["failed"]
        else:
            of_commands[key] = of_commands.get(key, 0) + row["failed"]
    told = [
        {**row, "meaning": meaning(row["sqlstate"])}
        for row in rows
        if row["kind"] != TRANSACTION or of_commands.get((row["arm"], row["sqlstate"]), 0) < row["failed"]
    ]
    return Failures(told, codes)


def meaning(code: str) -> str:
    """A SQLSTATE in words: "unique violation"; empty where PostgreSQL has no name for it."""
    import re

    from psycopg import errors

    try:
        name = errors.lookup(code).__name__
    except KeyError:
        return ""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
