"""Load of `dbdyno rehearse`: a capture, server logs, snapshots, or the old server's pg_stat_statements."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from dbdyno.bench.postgres.server import Postgres
    from dbdyno.move.database.masks import Mask
    from dbdyno.rehearse.statement import Load


@dataclass(frozen=True)
class LoadOptions:
    """Options for the load.

    Attributes:
        load: What `--load` names.
        sets: Sets of values for each statement.
        store: The store of snapshots.
        key_file: Key of an encrypted capture.
        privacy: True if no value of the load may be written anywhere.
        logs: Server logs in which auto_explain wrote the values of statements that a server or snapshots have counted.
        masks: Columns that are masked on the new side.
        line_prefix: log_line_prefix of text logs; None means that it is detected.
        zone: Time zone of the logs.
    """

    load: str
    sets: int
    store: Path
    key_file: Path | None = None
    privacy: bool = False
    logs: tuple[Path, ...] = ()
    masks: tuple[Mask, ...] = ()
    line_prefix: str | None = None
    zone: ZoneInfo | None = None


def load_of(options: LoadOptions, old: Postgres) -> Load:
    """Return the load that the options describe.

    Raises:
        TraceError: A capture or a log has no statement that can be used.
        SnapshotError: The snapshots have no statement of the database, or a log cannot be read.
        TargetError: The old server has counted no statement.
        EvidenceError: The evidence cannot be read.
    """
    from dbdyno.rehearse.masked_copy import masked_load
    from dbdyno.rehearse.privacy import hidden_load

    found = _load(options, old)
    if options.masks:
        found = masked_load(found, options.masks, old)
    return hidden_load(found) if options.privacy else found


def _load(options: LoadOptions, old: Postgres) -> Load:
    named, path = options.load, Path(options.load)
    if options.key_file is not None and not is_capture(named):
        raise click.UsageError("--key-file works only with a capture whose messages are encrypted")
    if named == "statements" or named.startswith("snap:") or _is_store(path):
        return _load_of_server(options, old)
    if _is_mariadb(named):
        from dbdyno.rehearse.load.mariadb import load_of_mariadb

        return load_of_mariadb(named, options.sets)
    if options.logs:
        raise click.UsageError("--log works only with counted statements: --load statements or --load snap:FIRST..LAST")
    from dbdyno.rehearse.load.capture import load_of_capture

    database = old.libpq_parameters()["dbname"]
    if is_capture(named):
        return load_of_capture(path, database, options.sets, options.key_file)
    with _import_logs(path, options) as (folder, notes):
        found = load_of_capture(folder, database, options.sets)
    return replace(found, source=named, notes=(*found.notes, *notes))


def is_capture(load: str) -> bool:
    """Return True if `--load` names a capture; only captures have sessions."""
    path = Path(load)
    is_named = load.startswith("snap:") or load == "statements" or _is_mariadb(load)
    return not is_named and not _is_store(path) and not _is_log(path)


def _is_mariadb(load: str) -> bool:
    """Return True if `--load` names a MariaDB server."""
    return load.lower().startswith(("mariadb://", "mysql://"))


def _load_of_server(options: LoadOptions, old: Postgres) -> Load:
    from dbdyno.rehearse.load.logged_values import logged_values
    from dbdyno.rehearse.load.server import load_of_server
    from dbdyno.rehearse.load.snapshot import load_of_snapshot
    from dbdyno.snapshot.store.folder import Store

    logged = logged_values(options.logs, options.line_prefix) if options.logs else None
    if options.load == "statements":
        return load_of_server(old, options.sets, logged)
    is_named = options.load.startswith("snap:")
    store, name = (options.store, options.load) if is_named else (Path(options.load), "snap:last")
    return load_of_snapshot(Store(store), name, old, options.sets, logged)


def _is_store(path: Path) -> bool:
    """Return True if a folder is a store of snapshots: its snapshots are folders named by numbers."""
    return path.is_dir() and any(one.parent.name.isdigit() for one in path.glob("[0-9]*/manifest.json"))


def _is_log(path: Path) -> bool:
    """Return True if a path may contain server logs: a file, or a folder with files that is not a run."""
    if path.is_dir():
        return not (path / "manifest.json").exists() and any(one.is_file() for one in path.iterdir())
    return path.is_file()


@contextlib.contextmanager
def _import_logs(path: Path, options: LoadOptions) -> Iterator[tuple[Path, list[str]]]:
    """Yield a capture made from server logs, in memory if values must not reach a disk, and notes on missing data."""
    from dbdyno.base.memory_folder import memory_folder
    from dbdyno.snapshot.plans.log_files import recognize_logs
    from dbdyno.trace.proxy.log_import import import_logs

    sources = recognize_logs([path], prefix=options.line_prefix, zone=options.zone)
    place = memory_folder() if options.privacy else tempfile.TemporaryDirectory(prefix="dbdyno-rehearse-")
    with place as made:
        folder = Path(made) / "capture"
        done = import_logs(sources, folder)
        yield folder, [f"{one[0].upper()}{one[1:]}." for one in (*done.refused, *done.notes)]
