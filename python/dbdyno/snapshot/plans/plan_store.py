"""Executions and plans read from logs, stored beside the snapshots, without values.

    snaps/plans/<hash of the log's first line>-<hash of the target's name>/
      manifest.json         target, log, times, counts, what was not read; written before the folder is renamed
      log_executions.parquet  log_statements.parquet  log_plans.parquet

A log that is read again replaces what was stored from it, unless fewer executions were read this time. Pruning deletes
the folders whose last execution is before all remaining snapshots, because no report can use them. A folder may be
deleted at any time. A damaged folder is ignored and reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.base.files import make_inner_folder, os_errors_as
from dbdyno.base.sql_text import literal
from dbdyno.evidence.files import read_json, write_json
from dbdyno.snapshot.plans.executions import LATER_COLUMNS, TABLES
from dbdyno.snapshot.store.integrity import damage
from dbdyno.snapshot.store.parquet import file_checksum, write_query

if TYPE_CHECKING:
    import duckdb

    from dbdyno.snapshot.plans.executions import GatheredExecutions
    from dbdyno.snapshot.plans.reader import LogFile

FOLDER = "plans"
NAME = "manifest.json"
SCHEMA = 1
_OWN = re.compile(r"[0-9a-f]{24}-[0-9a-f]{8}")
_KINDS: dict[str, type] = {"target": str, "log": str, "from_us": int, "to_us": int, "executions": int, "sums": dict}


@dataclass(frozen=True)
class StoredLog:
    """The stored plans of one log: its folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def span(self) -> tuple[int, int]:
        """Return the times of the first and last execution in microseconds since 1970."""
        return self.manifest["from_us"], self.manifest["to_us"]


def save_plans(
    store: Path, target: str, gathered: GatheredExecutions, number: int, log: LogFile, *, redact: bool = False
) -> str:
    """Store the plans that were read from the log with index `number` in `gathered`; return a sentence on the result.

    With `redact`, texts of statements are not stored.

    Raises:
        SnapshotError: The store cannot be written.
    """
    if not log.executions:
        return f"{log.name}: not kept, because it has no execution"
    name = f"{log.head}-{hashlib.blake2b(target.encode(), digest_size=4).hexdigest()}"
    folder = store / FOLDER / name
    before = _of_before(folder)
    if before is not None and before.manifest["executions"] > log.executions:
        return f"{log.name}: not kept, {before.manifest['executions']} of its executions are kept already"
    aside = store / FOLDER / f".{name}.{os.urandom(4).hex()}.tmp"
    try:
        with os_errors_as(
            SnapshotError, "plans cannot be kept", store / FOLDER, "free disk space or check the permissions"
        ):
            make_inner_folder(store / FOLDER, exist_ok=True)
            make_inner_folder(aside)
            sums = {table: _write(gathered, table, number, aside, redact=redact) for table in TABLES}
            facts = {"from_us": log.from_us, "to_us": log.to_us, "executions": log.executions, "plans": log.plans}
            made = {"schema": SCHEMA, "target": target, "log": log.name, "form": log.form, "bytes": log.bytes}
            write_json(aside / NAME, {**made, **facts, "unread": log.unread.counts, "sums": sums})
            if folder.exists():
                folder.rename(aside.with_suffix(".old"))
            aside.rename(folder)
    finally:
        for left in (aside, aside.with_suffix(".old")):
            shutil.rmtree(left, ignore_errors=True)
    return f"{log.name}: {log.executions} executions kept in {store / FOLDER / name}"


def _of_before(folder: Path) -> StoredLog | None:
    with contextlib.suppress(EvidenceError):
        return _open(folder) if folder.is_dir() else None
    return None


def _write(gathered: GatheredExecutions, table: str, number: int, folder: Path, *, redact: bool) -> str:
    mine = f"(from log_executions where file = {number})"
    query = {
        "log_executions": f"select * exclude (file) from {mine} order by at_us",
        "log_statements": f"from log_statements where fingerprint in (select fingerprint from {mine}) order by 1",
        "log_plans": f"from log_plans where plan in (select plan from {mine}) order by 1",
    }[table]
    query += " limit 0" if redact and table == "log_statements" else ""
    path = folder / f"{table}.parquet"
    write_query(gathered.connection, query, path)
    return file_checksum(path)


def stored_logs(store: Path, damaged: list[EvidenceError] | None = None) -> Iterator[StoredLog]:
    """Yield the stored logs, sorted by first execution; errors of unreadable logs are added to `damaged`."""
    found = []
    for folder in sorted((store / FOLDER).glob("*-*")):
        if not _OWN.fullmatch(folder.name):
            continue
        try:
            found.append(_open(folder))
        except EvidenceError as error:
            if damaged is not None:
                damaged.append(error)
    yield from sorted(found, key=lambda one: one.span)


def unused_logs(store: Path, target: str, first_us: int) -> list[StoredLog]:
    """Return the stored logs of a target that ended before `first_us`, the time of its first remaining snapshot."""
    return [one for one in stored_logs(store) if one.manifest["target"] == target and one.span[1] < first_us]


def delete_logs(some: Iterable[StoredLog]) -> None:
    """Delete these stored logs; each folder is renamed first, so that a partly deleted one is never read."""
    for one in some:
        aside = one.folder.with_name(f".{one.folder.name}.{os.urandom(4).hex()}.old")
        one.folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _open(folder: Path) -> StoredLog:
    path = folder / NAME
    found = read_json(path)
    step = "read the log again with `dbdyno snap plans --log FILE`, or delete this folder"
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise EvidenceError(
            f"does not describe a stored log, or its schema version is not {SCHEMA}", where=str(path), next_step=step
        )
    for name, kind in _KINDS.items():
        if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
            raise EvidenceError(
                f"lacks {name!r}, or its value is not of type {kind.__name__}", where=str(path), next_step=step
            )
    for table in TABLES:
        file = folder / f"{table}.parquet"
        wrong = damage(file, found["sums"].get(table))
        if wrong is not None:
            raise EvidenceError(wrong, where=str(file), next_step=step)
    return StoredLog(folder, found)


def faults(store: Path) -> Iterator[tuple[str, str]]:
    """Yield the place of each damaged part of the stored plans, and what is wrong with it."""
    damaged: list[EvidenceError] = []
    list(stored_logs(store, damaged))
    for error in damaged:
        where = Path(error.where or "")
        yield str(where.relative_to(store)) if where.is_relative_to(store) else str(where), error.message


def attach_logs(
    connection: duckdb.DuckDBPyConnection, store: Path, target: str, from_us: int, to_us: int
) -> list[StoredLog]:
    """Create the tables of `GatheredExecutions` from a target's stored logs for a time range, and return those logs.

    The logs are in the order of the column `file`. If there are none, no table is created.

    Raises:
        EvidenceError: A stored log cannot be read.
    """
    from dbdyno.evidence.duck import duckdb

    found = [
        one
        for one in stored_logs(store)
        if one.manifest["target"] == target and one.span[0] <= to_us and one.span[1] >= from_us
    ]
    if not found:
        return []
    try:
        for table in TABLES:
            inside = f"where at_us between {from_us} and {to_us}" if table == "log_executions" else ""
            union = " union all ".join(
                f"select {f'{number} as file, ' if inside else ''}{_columns(connection, table, path)}"
                f" from read_parquet({literal(str(path))}) {inside}"
                for number, path in enumerate(one.folder / f"{table}.parquet" for one in found)
            )
            connection.execute(f"create or replace temp table {table} as select distinct * from ({union})")
    except duckdb.Error as error:
        raise EvidenceError(
            f"cannot be read: {str(error).splitlines()[0]}",
            where=str(store / FOLDER),
            next_step="run `dbdyno snap check`",
        ) from error
    return found


def _columns(connection: duckdb.DuckDBPyConnection, table: str, path: Path) -> str:
    """Return the select list for a table's current columns; those missing in files of earlier versions are null."""
    has = {row[0] for row in connection.execute(f"describe from read_parquet({literal(str(path))})").fetchall()}
    return ", ".join(
        f"{name if name in has or name not in LATER_COLUMNS else 'null'}::{kind} as {name}"
        for name, kind in TABLES[table]
        if name != "file"
    )
