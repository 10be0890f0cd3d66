"""What `dbdyno snap plans` does: reads logs or what is kept of them, keeps what was read, makes the page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import SnapshotError
from dbdyno.evidence.memory import in_memory
from dbdyno.snapshot.model import Row
from dbdyno.snapshot.plans import plan_store
from dbdyno.snapshot.plans.entries import Clock
from dbdyno.snapshot.plans.executions import Gathered
from dbdyno.snapshot.plans.flips import names
from dbdyno.snapshot.plans.page import page
from dbdyno.snapshot.plans.reader import LogFile, read
from dbdyno.snapshot.plans.recordings import read_run
from dbdyno.snapshot.plans.source import Source, logs

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from dbdyno.snapshot.store.folder import Snapshot, Store

NO_TARGET = "(no target)"
END_US = 1 << 62


@dataclass(frozen=True)
class Asked:
    """What the user wants. Times are microseconds since 1970."""

    since_us: int | None = None
    until_us: int | None = None
    target: str | None = None
    keep: bool = True
    redact: bool = False
    top: int = 20


def of_logs(
    store: Store, paths: Sequence[Path], asked: Asked, *, prefix: str | None = None, zone: ZoneInfo | None = None
) -> dict[str, object]:
    """The page of log files, and of those in folders. Raises `SnapshotError` where a named one cannot be read."""
    said: list[str] = []
    return of_sources(store, logs(paths, said), asked, prefix=prefix, zone=zone, said=said)


def of_recordings(store: Store, runs: Sequence[Path], asked: Asked) -> dict[str, object]:
    """The page of runs of `dbdyno trace record`. Raises `SnapshotError` where one is none."""
    with Gathered() as gathered:
        found = [
            read_run(path, gathered, number, since_us=asked.since_us, until_us=asked.until_us)
            for number, path in enumerate(runs)
        ]
        return _page(store, gathered, found, asked)


def of_sources(
    store: Store,
    sources: Iterable[Source],
    asked: Asked,
    *,
    prefix: str | None = None,
    zone: ZoneInfo | None = None,
    said: Sequence[str] = (),
) -> dict[str, object]:
    """The page of open logs; what was read is kept where the store has snapshots of the target."""
    with Gathered() as gathered:
        found = read(sources, gathered, Clock(zone), prefix=prefix, since_us=asked.since_us, until_us=asked.until_us)
        return _page(store, gathered, found, asked, [*said, *_overlaps(found)])


def _page(
    store: Store, gathered: Gathered, found: Sequence[LogFile], asked: Asked, said: Sequence[str] = ()
) -> dict[str, object]:
    """The page of what was gathered; keeps it where the store has snapshots of the target."""
    last = _last(store, asked.target)
    named = asked.target or (last.target if last else NO_TARGET)
    notes = [*said, *(words for one in found for words in (*one.lost, *one.unread.words()))]
    if last is None and asked.keep:
        notes.append(f"nothing is kept: {store.folder} has no snapshot {'of ' + named if asked.target else ''}".strip())
    elif asked.keep:
        notes += [
            plan_store.keep(store.folder, named, gathered, number, one, redact=asked.redact)
            for number, one in enumerate(found)
        ]
    rows = [_row(one) for one in found]
    return page(gathered.connection, rows, target=named, notes=notes, names=names(last), top=asked.top)


def of_server(
    store: Store,
    dsn: str,
    asked: Asked,
    *,
    most: int,
    prefix: str | None = None,
    zone: ZoneInfo | None = None,
) -> dict[str, object]:
    """The page of a server's current log. Raises `SnapshotError`."""
    from zoneinfo import ZoneInfo

    from dbdyno.snapshot.plans.server import server_log

    with server_log(dsn, most) as log:
        with contextlib.suppress(ValueError, OSError, LookupError):  # one that this machine does not know
            zone = zone or ZoneInfo(log.zone)
        chosen = replace(asked, target=asked.target or log.name, keep=asked.keep and not log.cut)
        return of_sources(store, [log.source], chosen, prefix=prefix or log.prefix, zone=zone, said=log.notes)


def of_kept(store: Store, asked: Asked) -> dict[str, object]:
    """The page of what is kept. Raises `SnapshotError` where that is nothing."""

    last = _last(store, asked.target)
    named = asked.target or (last.target if last else NO_TARGET)
    with in_memory() as connection:
        low, high = asked.since_us or 0, END_US if asked.until_us is None else asked.until_us
        found = plan_store.attach(connection, store.folder, named, low, high)
        if not found:
            raise SnapshotError(
                f"no plans of {named} are kept for this time",
                where=str(store.folder),
                next_step="dbdyno snap plans --log FILE",
            )
        return page(connection, [_kept_row(one) for one in found], target=named, names=names(last), top=asked.top)


def _last(store: Store, target: str | None) -> Snapshot | None:
    """The latest snapshot of the target; of the only one there is. Raises `SnapshotError` where there are several."""
    numbers = store.numbers()
    if not numbers:
        return None
    if target is not None:
        return store.last(target)
    return store.find("last")


def _overlaps(found: Sequence[LogFile]) -> list[str]:
    """Logs of one time, such as a text log and a csvlog of one server."""
    known = sorted((one for one in found if one.from_us is not None), key=lambda one: one.from_us or 0)
    return [
        f"{a.name} and {b.name} are of one time: what both have counts once, where their times are in milliseconds"
        for a, b in pairwise(known)
        if (b.from_us or 0) < (a.to_us or 0)
    ]


def _row(one: LogFile) -> Row:
    names = ("form", "executions", "plans", "bytes")
    return {name: getattr(one, name) for name in names} | {"log": one.name, "from": one.from_us, "to": one.to_us}


def _kept_row(one: plan_store.KeptLog) -> Row:
    known = one.manifest
    row = {name: known.get(name) for name in ("log", "form", "executions", "bytes")}
    return row | {"plans": int(known.get("plans") or 0), "from": known["from_us"], "to": known["to_us"]}
