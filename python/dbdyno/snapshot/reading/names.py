"""Names that people give snapshots: numbers, notes, times, `last`, `last-2`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.reading.sums.index import snapshots_of_target
from dbdyno.snapshot.reading.sums.indexed_snapshots import IndexedSnapshot, IndexedSnapshots
from dbdyno.snapshot.store import manifest
from dbdyno.snapshot.store.folder import Snapshot, Store

_DIGITS = 12


def find(store: Store, name: str, target: str | None = None) -> Snapshot:
    """Return a snapshot by its number, its note, `last` or `last-2`, or the latest one at or before a time.

    Raises:
        SnapshotError: No snapshot or several match.
    """
    if name.isdigit() and len(name) < _DIGITS and manifest.path_of(store.folder, int(name)).is_file():
        return store.open(int(name))
    match = re.fullmatch(r"last(?:-(\d{1,9}))?", name)
    known = snapshots_of_target(store, target, int(match.group(1) or 0) + 1 if match else None)
    if not known:
        if store.damaged:
            raise next(iter(store.damaged.values()))
        raise SnapshotError(
            "contains no snapshot" + (f" of {target}" if target else ""),
            where=str(store.folder),
            next_step="take one with `dbdyno snap take --target DSN`",
        )
    if match:
        only = _one_target(known, name)
        back = int(match.group(1) or 0)
        found = [only[-1 - back]] if back < len(only) else []
    else:
        found = known.with_note(name) or _before_time(known, name)
    if len(found) == 1:
        return store.open(found[0].number)
    said = "does not match a snapshot" if not found else f"matches {len(found)} snapshots"
    raise SnapshotError(
        f"{name!r} {said}",
        where=str(store.folder),
        next_step=_nearest(known, name) + "list the snapshots with `dbdyno snap list`, and name one by number, "
        "note, time (2026-11-21T10:02), last or last-1",
    )


def _nearest(snapshots: IndexedSnapshots, name: str) -> str:
    """Return in words the existing numbers nearest to a pruned one, which may still be in a user's notes."""
    numbers = snapshots.numbers
    if not name.isdigit() or len(name) >= _DIGITS or not 0 < int(name) < max(numbers):
        return ""
    beside = [*[one for one in numbers if one < int(name)][-1:], *[one for one in numbers if one > int(name)][:1]]
    return f"it was pruned or failed; the nearest are {' and '.join(map(str, beside))}; "


def _before_time(snapshots: IndexedSnapshots, text: str) -> list[IndexedSnapshot]:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return []
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return list(islice((one for one in reversed(_one_target(snapshots, text)) if one.at_utc <= at), 1))


def _one_target(snapshots: IndexedSnapshots, name: str) -> IndexedSnapshots:
    if len(snapshots.targets) > 1:
        raise SnapshotError(
            f"{name!r} is ambiguous: the store has snapshots of several targets, {', '.join(snapshots.targets)}",
            next_step="add --target NAME, or use the numbers of `dbdyno snap list`",
        )
    return snapshots
