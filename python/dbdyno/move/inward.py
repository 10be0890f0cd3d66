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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.bench.postgres.server import Postgres
from dbdyno.errors import MoveError
from dbdyno.move.ledger import INNER, Ledger
from dbdyno.move.merging import Merged, merge
from dbdyno.move.proof import MODULUS
from dbdyno.move.run import NEXT, How, Say, job_of, new_id, plan_of
from dbdyno.move.source import LOCK_TIMEOUT_MS, Wish, application, failure, resolve, session_settings, take

MODES = ("insert", "replace", "update", "merge")
PREFIX = "dbdyno_move_"
TEXTS = ("text", "character varying", "bpchar", "name")
TARGET_SQL = """
select a.attname::text, format_type(a.atttypid, -1), a.attgenerated <> '', a.attidentity = 'a'
from pg_catalog.pg_attribute a where a.attrelid = %s::oid and a.attnum > 0 and not a.attisdropped order by a.attnum
"""

_UNKNOWN = "the rows were published: all of them are there, or none is"
_COUNT = "count the rows of the table before you run it again"


@dataclass(frozen=True)
class Into:
    """What the user asked for."""

    table: str
    mode: str = "insert"
    key: Sequence[str] = ()


@dataclass(frozen=True)
class Column:
    """A column of the files and of the table: what it is staged as, and what it becomes."""

    name: str
    staged: str
    becomes: str
    generated: bool = False
    """The server makes its values: they are staged, since the files have them, and go no further."""

    def value(self, table: str) -> sql.Composable:
        """The value on its way from the staging table: assigned, or read from its text."""
        name = sql.SQL("{}.{}").format(sql.Identifier(table), sql.Identifier(self.name))
        if self.staged == "text" and self.becomes not in TEXTS:
            return sql.SQL("{}::{}").format(name, sql.SQL(self.becomes))
        return name


@dataclass(frozen=True)
class Loaded:
    """What happened, each counted by itself."""

    files: int
    in_files: int
    staged: int
    hash: str
    mode: str
    changes: Merged
    records: bool = False
    """Whether the files are those of a finished job, and hold what its records say."""
    read_again: bool = False

    def sentences(self) -> list[str]:
        """In words."""
        one = self.changes
        done = {
            "insert": f"{one.new:,} rows added",
            "replace": f"the table emptied and {one.new:,} rows added",
            "update": f"{one.changed:,} rows changed, {one.same:,} the same, {one.absent:,} not there and left out",
            "merge": f"{one.new:,} rows added, {one.changed:,} changed, {one.same:,} the same",
        }[self.mode]
        nulls = f", {one.null_keys:,} without a key left out" if one.null_keys else ""
        proved = [f"{self.in_files:,} rows in {self.files} files, as many staged, all of them accounted for"]
        if self.records:
            proved.append("the files hold what the job read that wrote them")
        if self.read_again:
            proved.append("the staged rows, read again from the server, were those of the files")
        return [f"{done}{nulls}; in one transaction.", f"Proved: {'; '.join(proved)}."]


def bring(target: Postgres, folder: Path, into: Into, how: How, say: Say, *, read_again: bool = False) -> Loaded:
    """Loads the files of a folder. Raises `MoveError`; nothing of the table is changed then, unless it says otherwise:
    whoever is cut off while the server commits does not know."""
    files, records = files_of(folder)
    described = _described(files)
    job = new_id()
    publishing = False
    try:
        with contextlib.closing(target.connect(application_name=application(job), statement_timeout_ms=0)) as conn:
            conn.execute("select set_config('lock_timeout', %s, false)", [str(LOCK_TIMEOUT_MS)])
            conn.execute(session_settings(conn, lasting=True))
            oid, name, kind = resolve(conn, into.table)
            if kind not in ("r", "p"):
                raise MoveError("is no table", where=into.table, next_step="name a table, or a partitioned one")
            columns, identity = _matched(conn, oid, described, into)
            say(f"job {job}: staging into {name[0]}.{PREFIX}{job}")
            with _staging(conn, (name[0], f"{PREFIX}{job}"), columns) as stage:
                done = _stage(target, conn, files, stage, columns, how, job)
                total = f"{sum(int(one['hash'], 16) for one in done) % MODULUS:032x}"
                _same_as_records(files, done, records)
                if read_again:
                    _read_again(target, conn, stage, total, how)
                staged = sum(one["rows"] for one in done)
                given = [one for one in columns if not one.generated]
                publishing = True
                changes = _publish(conn, stage, name, given, into, staged, identity)
                publishing = False
    except psycopg.Error as error:
        if publishing and (error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))):
            raise MoveError(f"the connection was lost while {_UNKNOWN}", where=into.table, next_step=_COUNT) from None
        raise failure(error, into.table) from None
    except KeyboardInterrupt as stop:
        words = f"{_UNKNOWN}: {_COUNT}" if publishing else f"nothing of {into.table} was changed"
        raise KeyboardInterrupt(words) from stop
    in_files = sum(one[1] for one in described)
    return Loaded(len(files), in_files, staged, total, into.mode, changes, records is not None, read_again)


def files_of(folder: Path) -> tuple[list[Path], dict[str, dict[str, Any]] | None]:
    """The Parquet files of a folder, and what their job recorded of them. Raises `MoveError`."""
    files = sorted(folder.glob("*.parquet"))
    records = None
    for place in (folder, folder.parent):
        if not (place / INNER / "manifest.json").exists():
            continue
        ledger = Ledger.open(place)
        if ledger.manifest["status"] != "complete":
            raise MoveError(
                "the job that writes these files is not complete",
                where=str(place),
                next_step=f"dbdyno move resume {place} --source DSN",
            )
        own = {str(place / record["file"]): record for record in ledger.records().values()}
        records = {path: record for path, record in own.items() if Path(path).parent == folder}
        lost = [chunk["file"] for chunk in ledger.plan["chunks"] if str(place / chunk["file"]) not in own]
        if lost:
            raise MoveError("is missing", where=lost[0], next_step="restore the file, or move the table again")
        files = [Path(path) for path in sorted(records)]
        break
    if not files:
        raise MoveError(
            "holds no Parquet files",
            where=str(folder),
            next_step="name the folder of one table's files (part-*.parquet)",
        )
    return files, records


def _described(files: Sequence[Path]) -> list[tuple[list[dict[str, Any]], int]]:
    found = [_core.move_describe(path) for path in files]
    first = found[0][0]
    for path, (columns, _) in zip(files, found, strict=True):
        if columns != first:
            raise MoveError(
                f"has other columns than {files[0].name}", where=str(path), next_step="load them one by one"
            )
    return found


def _matched(
    conn: psycopg.Connection[Any], oid: int, described: list[tuple[list[dict[str, Any]], int]], into: Into
) -> tuple[list[Column], bool]:
    """The columns of the files in the table. Raises `MoveError` for one that cannot go there."""
    known = {row[0]: row for row in conn.execute(TARGET_SQL, [oid])}
    columns, identity = [], False
    for one in described[0][0]:
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
        identity = identity or row[3]
        columns.append(Column(name, one["holds"], row[1], row[2]))
    missing = [name for name in into.key if name not in {column.name for column in columns}]
    if missing:
        raise MoveError(f"the files have no column {missing[0]!r}", where="--key")
    return columns, identity


@contextlib.contextmanager
def _staging(
    conn: psycopg.Connection[Any], name: tuple[str, str], columns: Sequence[Column]
) -> Iterator[sql.Identifier]:
    """A table of our own; it is gone afterwards, also where its rows were not published."""
    stage = sql.Identifier(*name)
    parts = [sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(one.staged)) for one in columns]
    conn.execute(sql.SQL("create unlogged table {} ({})").format(stage, sql.SQL(", ").join(parts)))
    try:
        yield stage
    finally:
        with contextlib.suppress(psycopg.Error):
            conn.rollback()
            conn.execute(sql.SQL("drop table if exists {}").format(stage))


def _stage(
    target: Postgres,
    conn: psycopg.Connection[Any],
    files: Sequence[Path],
    stage: sql.Identifier,
    columns: Sequence[Column],
    how: How,
    job: str,
) -> list[dict[str, Any]]:
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in columns)
    copy = sql.SQL("copy {} ({}) from stdin (format binary)").format(stage, names).as_string(conn)
    size = [path.stat().st_size for path in files]
    mover = _core.MoveJob(
        {
            "connection": {**target.conninfo(), "application_name": application(job)},
            "session_sql": [session_settings(conn, lasting=True)],
            "tables": [{"columns": []}],
            "chunks": [
                {"number": number, "table": 0, "sql": copy, "path": str(path), "load": True}
                for number, path in enumerate(files)
            ],
            "workers": how.workers,
            "memory_bytes": how.memory_bytes,
            "rate_bytes_per_s": how.rate_bytes_per_s,
        }
    )
    done, failed = [], None
    try:
        while (event := mover.next(0.2)) is not None:
            if "done" in event:
                done.append(event["done"])
            elif "failed" in event and (failed is None or failed["kind"] == "stopped"):
                failed = event["failed"]
            if how.progress is not None:
                share = sum(size[one["number"]] for one in done) / max(sum(size), 1)
                how.progress(share, mover.progress()[0])
    finally:
        mover.stop()
    if failed is not None:
        step = NEXT.get(failed["kind"], "").replace("`dbdyno move resume`", "run the same command again")
        where = files[failed["chunk"]].name if failed.get("chunk") is not None else None
        raise MoveError(f"{failed['message']}; nothing of the table was changed", where=where, next_step=step or None)
    return sorted(done, key=lambda one: int(one["number"]))


def _same_as_records(
    files: Sequence[Path], done: Sequence[dict[str, Any]], records: dict[str, dict[str, Any]] | None
) -> None:
    for path, one in zip(files, done, strict=True):
        record = (records or {}).get(str(path))
        if record is not None and (record["rows"], record["hash"]) != (one["rows"], one["hash"]):
            raise MoveError(
                "holds other rows than its job wrote; nothing of the table was changed",
                where=str(path),
                next_step="move the table out again",
            )


def _read_again(target: Postgres, conn: psycopg.Connection[Any], stage: sql.Identifier, total: str, how: How) -> None:
    """Reads the staged rows by our own reader and compares. Raises `MoveError` where they differ."""
    with take(target, Wish(tables=[stage.as_string(conn)]), new_id()) as snapshot:
        plan = plan_of(target, snapshot, new_id(), how)
        mover = job_of(target, plan, plan.chunks, snapshot, how, None)
        found = 0
        while (event := mover.next(0.2)) is not None:
            if "failed" in event:
                raise MoveError(event["failed"]["message"], where="reading the staged rows again")
            found += int(event["done"]["hash"], 16) if "done" in event else 0
    if f"{found % MODULUS:032x}" != total:
        raise MoveError(
            "the staged rows are not those of the files; nothing of the table was changed",
            next_step="report it, with the versions of dbdyno and of the server",
        )


def _publish(
    conn: psycopg.Connection[Any],
    stage: sql.Identifier,
    name: tuple[str, str],
    columns: Sequence[Column],
    into: Into,
    staged: int,
    identity: bool,
) -> Merged:
    """All in one transaction. Raises `MoveError`, `psycopg.Error`."""
    table = sql.Identifier(*name)
    with conn.transaction():
        if into.mode in ("update", "merge"):
            return merge(conn, stage, table, columns, into.key, adds=into.mode == "merge", staged=staged)
        if into.mode == "replace":
            conn.execute(sql.SQL("truncate {}").format(table))
        names = sql.SQL(", ").join(sql.Identifier(one.name) for one in columns)
        values = sql.SQL(", ").join(one.value("s") for one in columns)
        over = sql.SQL("overriding system value " if identity else "")
        text = sql.SQL("insert into {} ({}) {}select {} from {} s")
        added = conn.execute(text.format(table, names, over, values, stage)).rowcount
        if added != staged:
            raise MoveError(
                f"{staged:,} rows were staged and {added:,} were added: a trigger or rule takes rows away",
                where=into.table,
                next_step="nothing was changed; look at the table's triggers and rules",
            )
        return Merged(new=added)
