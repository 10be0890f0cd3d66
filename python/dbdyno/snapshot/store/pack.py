"""Packs: many snapshots in one file per view, into which a store's snapshots are combined after an hour.

A Parquet file of a hundred rows consists mostly of metadata. Sixty snapshots of a view in one file, sorted so that a
row is next to itself a minute later, take a tenth of the space of sixty files. Each snapshot keeps its manifest, whose
records say with `in` which rows of the pack are its own.

Order of steps: the pack is written to disk, then each manifest names it, then files that no manifest names any more are
deleted. If the process is killed at any instant, the store reads as before; `snap check --repair` deletes the remains.
A pack that is damaged later costs those views of its sixty snapshots.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.files import make_inner_folder, os_errors_as, restrict_mode, sync_folder
from dbdyno.base.sql_text import literal, quoted
from dbdyno.evidence.files import write_json
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.store import locks, manifest
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.integrity import SUMS
from dbdyno.snapshot.store.locks import PACKS
from dbdyno.snapshot.store.parquet import file_checksum
from dbdyno.snapshot.store.records import SnapshotManifest, ViewRecord

GROUP = 60
"""Number of snapshots in a pack."""
Merged = Mapping[int, Sequence[Snapshot]]
"""For each remaining snapshot, the deleted snapshots before it, whose samples are merged into it."""


def pack_full(store: Store, target: str, *, group: int = GROUP) -> int:
    """Pack the unpacked snapshots of a target in full groups, without the latest one, and return the number of packs.

    Raises:
        SnapshotError: A pack cannot be written, or another process holds the lock.
    """
    made = 0
    with locks.maintenance_lock(store.folder):
        loose: list[Snapshot] = []
        for one in store.backwards(target):
            if "pack" in one.manifest:
                break
            loose.insert(0, one)
        del loose[-1:]
        while len(loose) >= group:
            with locks.exclusive_lock(store.folder):
                pack(store, loose[:group])
            del loose[:group]
            made += 1
    return made


def pack(store: Store, group: Sequence[Snapshot], merged: Merged | None = None, *, tidy: bool = True) -> None:
    """Combine what these snapshots of a target wrote into one file per view; the caller holds the exclusive lock.

    With `tidy`, files that no snapshot needs any more are deleted, for which every later manifest is read.

    Raises:
        SnapshotError: The pack cannot be written.
    """
    merged = merged or {}
    name = f"{PACKS}/{group[0].number:06d}-{group[-1].number:06d}-{os.urandom(4).hex()}"
    folder = store.folder / name
    try:
        with os_errors_as(SnapshotError, "cannot be packed", folder, "free disk space or check the permissions"):
            make_inner_folder(folder.parent, exist_ok=True)
            make_inner_folder(folder)
            places = _write(folder, group, merged)
            write_json(folder / SUMS, {path.name: file_checksum(path) for path in sorted(folder.glob("*.parquet"))})
            sync_folder(folder.parent)
            for one in group:
                _point(store, one, places, merged.get(one.number, ()), name)
    except BaseException:
        delete_unused(store, [folder], group[0].number)
        raise
    if tidy:
        delete_unused(store, [store.folder / f"{one.number:06d}" for one in group], group[0].number)


def delete_unused(store: Store, folders: Iterable[Path], first: int = 0) -> list[Path]:
    """Delete the files in `folders` that are not named by any manifest from number `first` on, and return them.

    A snapshot's file is named only by later snapshots, a pack's file also by the snapshots in the pack.
    """
    used = {record.get("file") for one in store.since(first) for record in one.views.values()}
    torn = {store.folder / f"{number:06d}" for number in store.damaged}
    gone = []
    for folder in (one for one in folders if one not in torn):
        files = list(folder.glob("*.parquet")) + list(folder.glob("*.csv"))
        loose = [path for path in files if str(path.relative_to(store.folder)) not in used]
        for path in loose:
            path.unlink()
        gone += loose
        left = [path for path in folder.glob("*") if path.name != SUMS]
        if not left:
            shutil.rmtree(folder, ignore_errors=True)
    return gone


def is_sampled(view: str, record: Mapping[str, Any]) -> bool:
    """Return True if a view holds what was seen since the previous snapshot, and not the state at one instant."""
    return view in ("activity", "blocked") or any(
        column[0] in ("at_us", "sample_id") for column in record.get("columns", ())
    )


Place = tuple[str, int]
"""A file of the pack, and the number that marks a snapshot's rows in it."""


def _write(folder: Path, group: Sequence[Snapshot], merged: Merged) -> dict[tuple[int, str], Place]:
    """Write the files of a pack, and return where each snapshot's views are in it."""
    places: dict[tuple[int, str], Place] = {}
    with file_connection() as connection:
        for view in dict.fromkeys(view for one in group for view in one.views):
            for at, alike in enumerate(_alike(view, group)):
                file = f"{view}.{at}.parquet" if at else f"{view}.parquet"
                parts: dict[int, list[str]] = {}
                for one in alike:
                    relations, number = _sources(one, view, merged.get(one.number, ()))
                    if not relations:
                        continue
                    parts[number] = relations
                    places[one.number, view] = (f"{PACKS}/{folder.name}/{file}", number)
                if parts:
                    _copy(connection, parts, _keys(alike[0], view), folder / file)
    return places


def _alike(view: str, group: Sequence[Snapshot]) -> list[list[Snapshot]]:
    """Return the snapshots whose view can be read, grouped by its columns."""
    found: dict[str, list[Snapshot]] = {}
    for one in group:
        if one.file(view) is not None and one.problem(view) is None:
            found.setdefault(repr(one.views[view]["columns"]), []).append(one)
    return list(found.values())


def _sources(snapshot: Snapshot, view: str, dropped: Sequence[Snapshot]) -> tuple[list[str], int]:
    """Return the SQL relations with a view's rows, and the number of the snapshot that first wrote these rows.

    Snapshots with unchanged rows share the number, so the pack stores such rows once.
    """
    record = snapshot.views[view]
    if is_sampled(view, record):
        chain = [each for each in [*dropped, snapshot] if each.file(view) and each.problem(view) is None]
        return [relation for each in chain if (relation := each.relation(view))], snapshot.number
    relation = snapshot.relation(view)
    number = record["in"] if "in" in record else int(record["file"].partition("/")[0])
    return ([relation] if relation else []), number


def _keys(snapshot: Snapshot, view: str) -> list[str]:
    return [quoted(column.name) for column in snapshot.columns(view) if column.kind == "key"]


def _copy(connection: Any, parts: Mapping[int, list[str]], keys: list[str], path: Path) -> None:
    union = " union all by name ".join(
        f"select {number}::integer as snapshot_, * from {relation}"
        for number, relations in parts.items()
        for relation in relations
    )
    order = ", ".join([*keys, "snapshot_"])
    connection.execute(
        f"copy (select * from ({union}) order by {order}) to {literal(str(path))}"
        " (format parquet, compression zstd, parquet_version v2)"
    )
    restrict_mode(path)
    with path.open("rb") as file, contextlib.suppress(OSError):
        os.fsync(file.fileno())


def _point(
    store: Store, snapshot: Snapshot, places: Mapping[tuple[int, str], Place], dropped: Sequence[Snapshot], name: str
) -> None:
    """Rewrite a snapshot's manifest: name the pack, and add the collection cost of the dropped snapshots."""
    views: dict[str, ViewRecord] = {}
    for view, record in snapshot.views.items():
        views[view] = record
        if place := places.get((snapshot.number, view)):
            views[view] = {**record, "file": place[0], "in": place[1]}
            views[view].pop("file_sum", None)
            views[view].pop("digest", None)
    cost = merged_cost(snapshot.manifest["cost"], [each.manifest["cost"] for each in dropped])
    pruned = int(snapshot.manifest.get("pruned", 0)) + sum(1 + int(each.manifest.get("pruned", 0)) for each in dropped)
    made: SnapshotManifest = {**snapshot.manifest, "views": views, "cost": cost, "pack": name}
    if pruned:
        made["pruned"], made["merged"] = pruned, [each.number for each in dropped]
    manifest.write(store.folder, made)


def merged_cost(cost: Mapping[str, Any], dropped: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the cost of a snapshot and the dropped snapshots before it: samples taken, dbdyno's own transactions."""
    found = dict(cost)
    looks = [one["looks"] for one in [*dropped, cost] if one.get("looks") is not None]
    if looks:
        found["looks"] = sum(looks)
    own: dict[str, dict[str, int]] = {"before": {}, "after": {}}
    for one, when, into in [
        *((one, when, "before") for one in dropped for when in ("before", "after")),
        (cost, "before", "before"),
        (cost, "after", "after"),
    ]:
        for database, count in ((one.get("own_transactions") or {}).get(when) or {}).items():
            own[into][database] = own[into].get(database, 0) + int(count)
    if "own_transactions" in cost:
        found["own_transactions"] = own
    return found
