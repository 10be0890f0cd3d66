"""The way in: files into a table of a PostgreSQL, all of it or nothing.

Workers put the files into a staging table of our own (unlogged, beside the target) by COPY in its binary form. Then one
transaction publishes it: until its commit nothing of the target has changed, whatever dies. What a file holds as text
because Parquet has no such type becomes what it was in that transaction, by the type's own input.

    insert     adds the rows
    replace    empties the table first (TRUNCATE) and adds the rows
    update     changes rows with the same key, through a table of those that differ
    merge      the same, and adds rows whose key is new
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.bench.postgres.server import Postgres
from dbdyno.core_types import MoveCount, MoveDone
from dbdyno.errors import MoveError
from dbdyno.move import direct, swap
from dbdyno.move.create import create
from dbdyno.move.filed import described, files_of
from dbdyno.move.into import Column, Into, Loaded
from dbdyno.move.ledger import Filed
from dbdyno.move.proof import MODULUS
from dbdyno.move.publish import Staged, publish
from dbdyno.move.rejects import Rejects
from dbdyno.move.run import How, Say, job_of, new_id, plan_of
from dbdyno.move.source import LOCK_TIMEOUT_MS, Wish, application, failure, resolve, session_settings, take
from dbdyno.move.staging import CSV, fill, stage_name, staging

TARGET_SQL = """
select a.attname::text, format_type(a.atttypid, -1), a.attgenerated <> '', a.attidentity = 'a',
       format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_attribute a where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
Heads = Sequence[Mapping[str, Any]]

_UNKNOWN = "the rows were published: all of them are there, or none is"
_COUNT = "count the rows of the table before you run it again"


def bring(
    target: Postgres, folder: Path, into: Into, how: How, say: Say, *, read_again: bool = False, compare: bool = False
) -> Loaded:
    """Loads the files of a folder, or one file. Raises `MoveError`; nothing of the table is changed then, unless it
    says otherwise: whoever is cut off while the server commits does not know."""
    files, records = files_of(folder)
    heads = described(files)[0][0]
    rejects = rejects_of(into, files)
    publishing = False
    try:
        with reached(target, into) as conn:
            goal = matched(conn, into, heads)
            came = {one["name"]: one["pg_type"] for one in heads} if records is not None else {}
            straight = goal.staged(sql.Identifier(goal.schema, goal.name), 0)
            if (
                rejects is None
                and not read_again
                and not compare
                and direct.fits(conn, straight, into, files, how, came)
            ):
                say(f"one worker: straight into the table, in one transaction; rows are {direct.logged(conn, into)}")

                def before_commit() -> None:
                    nonlocal publishing
                    publishing = True

                loaded = direct.load(
                    conn,
                    straight,
                    into,
                    files,
                    how,
                    check=lambda done: refuse_other_than_records(files, done, records),
                    first=maker(into, heads),
                    publishing=before_commit,
                )
                return replace(loaded, records=records is not None)
            loading = _Loading(target, conn, files, records, into, how, goal, heads)
            swaps = rejects is None and not compare and loading.swaps(straight, came, say)
            job, place = stage_name(goal.schema)
            say(f"job {job}: {'filling' if swaps else 'staging, unlogged, into'} {'.'.join(place)}")
            with loading.stage(place, rejects, swaps=swaps) as stage:
                rows = loading.fill(stage, job, rejects, read_again=read_again)
                publishing = True
                loaded = loading.publish(stage, rows, rejects, say, compare=compare, swaps=swaps)
                publishing = False
    except psycopg.Error as error:
        if publishing and (error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))):
            raise MoveError(f"the connection was lost while {_UNKNOWN}", where=into.table, next_step=_COUNT) from None
        raise failure(error, into.table) from None
    except KeyboardInterrupt as stop:
        words = f"{_UNKNOWN}: {_COUNT}" if publishing else f"nothing of {into.table} was changed"
        raise KeyboardInterrupt(words) from stop
    return replace(
        loaded, files=len(files), records=records is not None, read_again=read_again and files[0].suffix != CSV
    )


@dataclass(frozen=True)
class _Loading:
    """Files on their way through a table of our own."""

    target: Postgres
    conn: psycopg.Connection[Any]
    files: Sequence[Path]
    records: dict[str, Filed] | None
    into: Into
    how: How
    goal: Goal
    heads: Heads

    def swaps(self, straight: Staged, came: Mapping[str, str | None], say: Say) -> bool:
        """Whether that table may take the target's name at the end."""
        if self.how.workers == 1 or not (self.into.create or self.into.mode == "replace"):
            return False
        if not direct.takes(straight, self.files, came):
            return False
        reason = swap.blind(self.conn) if self.into.create else swap.against(self.conn, self.goal.oid)
        if reason is not None:
            say(f"rows are written twice, since no other table can take the place of this one: {reason}")
        return reason is None

    def stage(
        self, place: tuple[str, str], rejects: Rejects | None, *, swaps: bool
    ) -> contextlib.AbstractContextManager[sql.Identifier]:
        """The table, gone afterwards unless it is the target then."""
        if not swaps:
            csv, placed = self.files[0].suffix == CSV, rejects is not None
            return staging(self.conn, place, self.goal.columns, placed=placed, csv=csv)
        heads = self.heads if self.into.create else None
        return swap.filled_apart(self.conn, place, sql.Identifier(self.goal.schema, self.goal.name), heads)

    def fill(self, stage: sql.Identifier, job: str, rejects: Rejects | None, *, read_again: bool) -> int:
        """Puts the files there; their rows. Raises `MoveError`."""
        placed = rejects is not None
        done = fill(self.target, self.conn, self.files, stage, self.goal.columns, self.how, job, placed=placed)
        refuse_other_than_records(self.files, done, self.records)
        if rejects is not None:
            refused(rejects, done)
        if read_again and self.files[0].suffix != CSV:
            _read_again(self.target, self.conn, stage, self.goal, done, self.how)
        return sum(one["rows"] for one in done)

    def publish(
        self, stage: sql.Identifier, rows: int, rejects: Rejects | None, say: Say, *, compare: bool, swaps: bool
    ) -> Loaded:
        """Under the target's name, or into the target."""
        staged = self.goal.staged(stage, rows)
        if swaps:
            loaded = swap.publish(self.conn, staged, (self.goal.schema, self.goal.name), self.into)
            if isinstance(loaded, Loaded):
                return loaded
            say(f"the rows are added to the table, which no other can take the place of: {loaded}")
        first = maker(self.into, self.heads)
        return publish(self.conn, staged, self.into, rejects, compare=compare, first=first)


@contextlib.contextmanager
def reached(target: Postgres, into: Into) -> Iterator[psycopg.Connection[Any]]:
    """A session that prepares and publishes, by its transactions."""
    name = application(f"into {into.table}"[:40])
    with contextlib.closing(target.connect(application_name=name, statement_timeout_ms=0)) as conn:
        conn.execute("select set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
        conn.execute(session_settings(conn, lasting=True))
        yield conn


@dataclass(frozen=True)
class Goal:
    """The table, and how the columns of the files go into it."""

    oid: int
    schema: str
    name: str
    kind: str
    columns: tuple[Column, ...]
    identity: bool

    def staged(self, stage: sql.Composable, rows: int) -> Staged:
        """What is to be published."""
        table = sql.Identifier(self.schema, self.name)
        return Staged(stage, table, self.oid, self.kind, self.columns, rows, self.identity)


def matched(conn: psycopg.Connection[Any], into: Into, heads: Heads) -> Goal:
    """The columns of the files in the table; one that is to be made is made and taken back. Raises `MoveError` for a
    column that cannot go there."""
    with conn.transaction(force_rollback=True):
        if into.create:
            create(conn, into.table, heads)
        oid, name, kind = resolve(conn, into.table)
        if kind not in ("r", "p"):
            raise MoveError("is no table", where=into.table, next_step="name a table, or a partitioned one")
        known = {row[0]: row for row in conn.execute(TARGET_SQL, [oid])}
        columns = [_column(one, known, into) for one in heads]
    missing = [key for key in into.key if key not in {column.name for column in columns}]
    if missing:
        raise MoveError(f"the files have no column {missing[0]!r}", where="--key")
    return Goal(oid, *name, kind, tuple(columns), any(known[one.name][3] for one in columns))


def _column(one: Mapping[str, Any], known: Mapping[str, Sequence[Any]], into: Into) -> Column:
    name = one["name"]
    if one["holds"] is None:
        raise MoveError(
            f"is of type {one['arrow']}, which is not loaded",
            where=f"column {name} of the files",
            next_step="write it as a type of the table in docs/how-to/move.md, or as text",
        )
    row = known.get(name)
    if row is None:
        raise MoveError(
            f"has no column {name!r}, and the files do",
            where=into.table,
            next_step=f"add it: alter table {into.table} add column ... {one['pg_type'] or one['holds']}",
        )
    return Column(name, one["holds"], row[1], row[2], row[4], one.get("came", ""))


def maker(into: Into, heads: Heads) -> Callable[[psycopg.Connection[Any]], None] | None:
    """What makes the table, where that was asked for."""
    return (lambda conn: create(conn, into.table, heads)) if into.create else None


def rejects_of(into: Into, files: Sequence[Path]) -> Rejects | None:
    """Where rejected rows go. Raises `MoveError`."""
    if into.rejects is None:
        return None
    if into.rejects.exists():
        raise MoveError("is there already", where=str(into.rejects), next_step="name a new file for rejected rows")
    if not into.rejects.absolute().parent.is_dir():
        raise MoveError("its folder is not there", where=str(into.rejects), next_step="make the folder first")
    return Rejects(into.rejects, into.rejects_most, files)


def refused(rejects: Rejects, done: Sequence[MoveDone]) -> None:
    """Rows of the files that could not even be staged."""
    for file in done:
        for one in file["refused"]:
            rejects.add(file["number"], one["row"], f"column {one['column']}: {one['reason']}", None, None)


def refuse_other_than_records(
    files: Sequence[Path], done: Sequence[MoveCount], records: dict[str, Filed] | None
) -> None:
    """Raises `MoveError` where a file holds other rows than the job that wrote it recorded."""
    for path, one in zip(files, done, strict=True):
        record = (records or {}).get(str(path))
        if record is not None and (record["rows"], record["hash"]) != (one["rows"], one["hash"]):
            raise MoveError(
                "holds other rows than its job wrote; nothing of the table was changed",
                where=str(path),
                next_step="move the table out again",
            )


def refuse_unstaged(done: Sequence[Mapping[str, Any]]) -> None:
    """Raises `MoveError` where rows cannot be read again, since they were not staged."""
    if any(one["refused"] for one in done):
        raise MoveError(
            "rows were rejected before they were staged: the others alone have no hash to compare with",
            where="--verify",
            next_step="nothing of the table was changed; repair them, or leave --verify out",
        )


def _read_again(
    target: Postgres,
    conn: psycopg.Connection[Any],
    stage: sql.Identifier,
    goal: Goal,
    done: Sequence[Mapping[str, Any]],
    how: How,
) -> None:
    """Reads the staged rows by our own reader and compares. Raises `MoveError` where they differ."""
    refuse_unstaged(done)
    total = sum(int(one["hash"], 16) for one in done) % MODULUS
    wish = Wish(tables=[stage.as_string(conn)], columns=[one.name for one in goal.columns])
    with take(target, wish, new_id()) as snapshot:
        plan = plan_of(target, snapshot, new_id(), how)
        mover = job_of(target, plan, plan.chunks, snapshot, how, None)
        found = 0
        while (event := mover.next(0.2)) is not None:
            if "failed" in event:
                raise MoveError(event["failed"]["message"], where="reading the staged rows again")
            found += int(event["done"]["hash"], 16) if "done" in event else 0
    if found % MODULUS != total:
        raise MoveError(
            "the staged rows are not those of the files; nothing of the table was changed",
            next_step="report it, with the versions of dbdyno and of the server",
        )
