"""Implementation of `dbdyno snap plans`: read logs or stored plans, store what was read, build the page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import SnapshotError
from dbdyno.base.sections import Row
from dbdyno.evidence.memory import memory_connection
from dbdyno.snapshot.plans import plan_store
from dbdyno.snapshot.plans.entries import Clock
from dbdyno.snapshot.plans.executions import GatheredExecutions
from dbdyno.snapshot.plans.flips import statement_names
from dbdyno.snapshot.plans.page import page
from dbdyno.snapshot.plans.reader import LogFile, read
from dbdyno.snapshot.plans.recordings import read_run
from dbdyno.snapshot.plans.source import Source, logs
from dbdyno.snapshot.reading.names import find

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from dbdyno.snapshot.store.folder import Snapshot, Store

NO_TARGET = "(no target)"
END_US = 1 << 62


@dataclass(frozen=True)
class PlanOptions:
    """Options that the user gave; times are in microseconds since 1970."""

    since_us: int | None = None
    until_us: int | None = None
    target: str | None = None
    keep: bool = True
    redact: bool = False
    top: int = 20


def page_of_logs(
    store: Store,
    paths: Sequence[Path],
    options: PlanOptions,
    *,
    prefix: str | None = None,
    zone: ZoneInfo | None = None,
) -> dict[str, object]:
    """Return the page for log files; for a folder, it covers the files in it.

    Raises:
        SnapshotError: A log file that `paths` names cannot be read.
    """
    said: list[str] = []
    return page_of_sources(store, logs(paths, said), options, prefix=prefix, zone=zone, said=said)


def page_of_recordings(store: Store, runs: Sequence[Path], options: PlanOptions) -> dict[str, object]:
    """Return the page for runs of `dbdyno trace record`.

    Raises:
        SnapshotError: A path is not a recorded run.
    """
    with GatheredExecutions() as gathered:
        found = [
            read_run(path, gathered, number, since_us=options.since_us, until_us=options.until_us)
            for number, path in enumerate(runs)
        ]
        return _page(store, gathered, found, options)


def page_of_sources(
    store: Store,
    sources: Iterable[Source],
    options: PlanOptions,
    *,
    prefix: str | None = None,
    zone: ZoneInfo | None = None,
    said: Sequence[str] = (),
) -> dict[str, object]:
    """Return the page for open logs, and store what was read if the store has snapshots of the target."""
    with GatheredExecutions() as gathered:
        found = read(
            sources, gathered, Clock(zone), prefix=prefix, since_us=options.since_us, until_us=options.until_us
        )
        return _page(store, gathered, found, options, [*said, *_overlaps(found)])


def _page(
    store: Store,
    gathered: GatheredExecutions,
    log_files: Sequence[LogFile],
    options: PlanOptions,
    said: Sequence[str] = (),
) -> dict[str, object]:
    """Return the page for the executions read, and store them if the store has snapshots of the target."""
    last = _last(store, options.target)
    named = options.target or (last.target if last else NO_TARGET)
    notes = [*said, *(words for one in log_files for words in (*one.lost, *one.unread.sentences()))]
    if last is None and options.keep:
        notes.append(
            f"nothing is kept: {store.folder} has no snapshot {'of ' + named if options.target else ''}".strip()
        )
    elif options.keep:
        notes += [
            plan_store.save_plans(store.folder, named, gathered, number, one, redact=options.redact)
            for number, one in enumerate(log_files)
        ]
    rows = [_row(one) for one in log_files]
    return page(gathered.connection, rows, target=named, notes=notes, names=statement_names(last), top=options.top)


def page_of_server(
    store: Store,
    dsn: str,
    options: PlanOptions,
    *,
    limit: int,
    prefix: str | None = None,
    zone: ZoneInfo | None = None,
) -> dict[str, object]:
    """Return the page for a server's current log, of which at most the last `limit` bytes are read.

    Raises:
        SnapshotError: The log cannot be read.
    """
    from zoneinfo import ZoneInfo

    from dbdyno.snapshot.plans.server import server_log

    with server_log(dsn, limit) as log:
        with contextlib.suppress(ValueError, OSError, LookupError):  # a zone unknown on this machine
            zone = zone or ZoneInfo(log.zone)
        chosen = replace(options, target=options.target or log.name, keep=options.keep and not log.cut)
        return page_of_sources(store, [log.source], chosen, prefix=prefix or log.prefix, zone=zone, said=log.notes)


def page_of_stored_plans(store: Store, options: PlanOptions) -> dict[str, object]:
    """Return the page for stored plans.

    Raises:
        SnapshotError: Nothing is stored for this target and time.
    """
    last = _last(store, options.target)
    named = options.target or (last.target if last else NO_TARGET)
    with memory_connection() as connection:
        low, high = options.since_us or 0, END_US if options.until_us is None else options.until_us
        found = plan_store.attach_logs(connection, store.folder, named, low, high)
        if not found:
            raise SnapshotError(
                f"the store has no plans of {named} for this time",
                where=str(store.folder),
                next_step="read a log with plans: `dbdyno snap plans --log FILE`",
            )
        return page(
            connection, [_kept_row(one) for one in found], target=named, names=statement_names(last), top=options.top
        )


def _last(store: Store, target: str | None) -> Snapshot | None:
    """Return the last snapshot of the target, or of the store's only target; None if the store is empty.

    Raises:
        SnapshotError: No target is named and the store has several.
    """
    numbers = store.numbers()
    if not numbers:
        return None
    if target is not None:
        return store.last(target)
    return find(store, "last")


def _overlaps(log_files: Sequence[LogFile]) -> list[str]:
    """Return a note for each pair of logs that overlap in time, such as a text log and a csvlog of one server."""
    known = sorted((one for one in log_files if one.from_us is not None), key=lambda one: one.from_us or 0)
    return [
        f"{a.name} and {b.name} overlap in time: entries in both count once if their times are in milliseconds"
        for a, b in pairwise(known)
        if (b.from_us or 0) < (a.to_us or 0)
    ]


def _row(log_file: LogFile) -> Row:
    names = ("form", "executions", "plans", "bytes")
    return {name: getattr(log_file, name) for name in names} | {
        "log": log_file.name,
        "from": log_file.from_us,
        "to": log_file.to_us,
    }


def _kept_row(stored_log: plan_store.StoredLog) -> Row:
    known = stored_log.manifest
    row = {name: known.get(name) for name in ("log", "form", "executions", "bytes")}
    return row | {"plans": int(known.get("plans") or 0), "from": known["from_us"], "to": known["to_us"]}
