"""The store: a folder of snapshots, each a folder of Parquet files that any reader can open.

    snaps/
      000012/
        manifest.json          written last: without it the number does not exist
        pg_stat_database.parquet
        pg_stat_user_tables.parquet ...
      packs/000001-000060-1a2b/ what sixty snapshots wrote, one file per view (`pack.py`)
      shapes/                  the columns of the views (`manifest.py`)

Numbers are unique in a store across all targets. A view that is unchanged since the target's previous snapshot is not
written again: the manifest names the earlier file. The store survives kill -9, a full disk and a power cut: a number
without a manifest is skipped and never used again, and a snapshot that fails leaves nothing. A damaged manifest costs
only its snapshot, which is skipped; `Store.damaged` says why.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.base.files import make_folder, make_inner_folder, os_errors_as, sync_files
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal
from dbdyno.evidence.files import sync_names
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.store import locks, manifest
from dbdyno.snapshot.store.integrity import CHANGED, damage
from dbdyno.snapshot.store.parquet import Writer
from dbdyno.snapshot.store.records import SnapshotManifest, ViewRecord

Place = tuple[str, int]
"""A Parquet file, and the number that marks the wanted rows in it, or 0 for all rows."""

_COLUMNS: dict[int, tuple[Sequence[Any], tuple[Column, ...]]] = {}
"""Cache of columns by the id of the list that they were parsed from; snapshots of one store share these lists."""
_COLUMNS_MOST = 256


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Snapshot:
    """A complete snapshot: its `manifest` as written, and `store`, the folder of the whole store."""

    store: Path
    manifest: SnapshotManifest

    @property
    def number(self) -> int:
        """Return the snapshot's number, which is unique in the store."""
        return int(self.manifest["number"])

    @property
    def target(self) -> str:
        """Return the name of the snapshot's target."""
        return str(self.manifest["target"])

    @property
    def engine(self) -> str:
        """Return the engine: postgres, mariadb or oracle."""
        return str(self.manifest["engine"])

    @property
    def at_ns(self) -> int:
        """Return when the counters were read, in nanoseconds since 1970 by the server's clock."""
        return int(self.manifest["at_ns"])

    @property
    def at_utc(self) -> datetime:
        """Return when the counters were read, in UTC."""
        return datetime.fromtimestamp(self.at_ns / 1e9, UTC)

    @property
    def note(self) -> str:
        """Return the user's note, or an empty string."""
        return str(self.manifest.get("note") or "")

    @property
    def facts(self) -> JsonObject:
        """Return facts that the engine reported about itself."""
        return self.manifest["facts"]

    @property
    def steady_facts(self) -> Mapping[str, Any]:
        """Return the facts, in which the clock may be missing."""
        return self.facts

    @property
    def cost(self) -> Mapping[str, Any]:
        """Return the cost of taking this snapshot."""
        return self.manifest["cost"]

    @property
    def looks(self) -> int:
        """Return the number of looks: how often the sessions were sampled since the previous snapshot."""
        return int(self.manifest["cost"].get("looks") or 0)

    @property
    def own_session(self) -> int | None:
        """Return the server's identifier of the session that took the snapshot, or None if it is not known."""
        return found if isinstance(found := self.facts.get("session"), int) else None

    @property
    def steady_clock(self) -> tuple[str, int] | None:
        """Return the boot of the machine that took the snapshot and the time since then in ns; None if not known."""
        found = self.facts.get("clock")
        return (str(found.get("boot")), int(found["since_boot_ns"])) if found else None

    @property
    def views(self) -> dict[str, ViewRecord]:
        """Return the records of the views by name: file, rows, columns, scope, problem."""
        return self.manifest["views"]

    def file(self, view: str) -> Path | None:
        """Return the Parquet file that holds a view, or None if it was not read, has no file, or is damaged.

        The file may hold other snapshots too; `relation` selects the rows of this one.
        """
        record = self.views.get(view, {})
        name = record.get("file")
        return self.store / name if name and self._damage(record) is None else None

    def relation(self, view: str) -> str | None:
        """Return an SQL relation with the rows of a view, or None if it has no readable file."""
        path = self.file(view)
        if path is None:
            return None
        require_regular_files([str(path)])
        inside = self.views[view].get("in")
        if inside is None:
            return f"read_parquet({literal(str(path))})"
        return f"(select * exclude (snapshot_) from read_parquet({literal(str(path))}) where snapshot_ = {inside})"

    def place(self, view: str) -> Place | None:
        """Return where a view's rows are, or None if it has no file; equal for two snapshots that share the rows."""
        record = self.views.get(view, {})
        name = record.get("file")
        return (str(self.store / name), int(record.get("in") or 0)) if name else None

    def problem(self, view: str, seen: dict[str, str | None] | None = None) -> tuple[str, str | None] | None:
        """Return why a view of this snapshot cannot be read, and the next step; None if it can be read.

        `seen` caches the state of files, for callers that check many snapshots of one pack.
        """
        record = self.views.get(view, {})
        if problem := record.get("problem"):
            return problem, record.get("next_step")
        name = record.get("file")
        if not name:
            return None
        seen = {} if seen is None else seen
        if name not in seen:
            seen[name] = self._damage(record)
        torn = seen[name]
        if torn is not None and manifest.checksum_problem(self.store, self.number) is not None:
            torn = f"its file {self.number:06d}/manifest.json {CHANGED}"
        return None if torn is None else (torn, manifest.TORN_STEP)

    def _damage(self, record: ViewRecord) -> str | None:
        return damage(self.store / record["file"], None if "in" in record else record.get("file_sum"))

    def columns(self, view: str) -> tuple[Column, ...]:
        """Return the columns that a view had."""
        given = self.views.get(view, {}).get("columns", ())
        known = _COLUMNS.get(id(given))
        if known is None or known[0] is not given:
            if len(_COLUMNS) >= _COLUMNS_MOST:
                _COLUMNS.clear()
            known = _COLUMNS[id(given)] = (given, tuple(Column(*c) for c in given))
        return known[1]


class Store:
    """A folder of snapshots, which is created with the first one.

    Attributes:
        folder: The folder.
        damaged: Numbers of snapshots left out because their manifest cannot be read, each with the error.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: dict[int, EvidenceError] = {}
        self._shapes: JsonObject = {}

    def __iter__(self) -> Iterator[Snapshot]:
        """Yield all complete snapshots, in ascending order of their numbers."""
        yield from self.since(0)

    def numbers(self) -> list[int]:
        """Return all numbers that have a folder, complete or not, in ascending order."""
        try:
            return sorted(int(name) for name in os.listdir(self.folder) if name.isdigit() and name.isascii())  # noqa: PTH208
        except OSError:
            return []

    def open(self, number: int) -> Snapshot:
        """Return the snapshot with this number.

        Raises:
            EvidenceError: The snapshot's manifest is missing or cannot be read.
        """
        return Snapshot(self.folder, manifest.read(self.folder, number, self._shapes))

    def since(self, first: int) -> Iterator[Snapshot]:
        """Return an iterator over all complete snapshots from number `first` on."""
        return (one for number in self.numbers() if number >= first and (one := self._try(number)) is not None)

    def _try(self, number: int) -> Snapshot | None:
        """Return a snapshot, or None if it is incomplete or cannot be read; the latter is noted in `damaged`."""
        if not manifest.path_of(self.folder, number).exists():
            return None
        try:
            return self.open(number)
        except EvidenceError as error:
            self.damaged[number] = error
            return None

    def between(self, first: Snapshot, last: Snapshot) -> list[Snapshot]:
        """Return the snapshots of a target from `first` to `last`, both included, sorted by number.

        Numbers and not times are compared, because clocks may step. Only manifests of numbers between the two are
        opened.
        """
        found = (self._try(number) for number in self.numbers() if first.number <= number <= last.number)
        return [one for one in found if one is not None and one.target == first.target]

    def snapshots_of(self, target: str | None) -> list[Snapshot]:
        """Return all snapshots of a target, or of all targets for None, sorted by number."""
        return [one for one in self if target is None or one.target == target]

    def last(self, target: str) -> Snapshot | None:
        """Return the latest snapshot of a target, or None."""
        return next(self.backwards(target), None)

    def backwards(self, target: str) -> Iterator[Snapshot]:
        """Yield the snapshots of a target, the latest first."""
        for number in reversed(self.numbers()):
            found = self._try(number)
            if found is not None and found.target == target:
                yield found

    def add(
        self,
        views: Sequence[View],
        *,
        engine: str,
        target: str,
        at_ns: int,
        facts: dict[str, object],
        note: str = "",
        cost: dict[str, object] | None = None,
        before: Snapshot | None = None,
    ) -> Snapshot:
        """Write a complete snapshot, or leave nothing.

        `before` is the target's previous snapshot, whose files are referred to for unchanged views.

        Raises:
            SnapshotError: The snapshot cannot be written.
            EvidenceError: The snapshot's manifest cannot be written.
        """
        number, folder = self._reserve()
        try:
            with locks.shared_lock(self.folder):
                before = self._try(before.number) if before is not None else None  # it may have been packed meanwhile
                with Writer(folder) as writer:
                    records = {view.name: writer.write(view, before) for view in views}
                made: SnapshotManifest = {
                    "number": number,
                    "engine": engine,
                    "target": target,
                    "at": datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(),
                    "at_ns": at_ns,
                    "note": note,
                    "facts": facts,
                    "cost": cost or {},
                    "views": records,
                }
                sync_files(folder)
                manifest.write(self.folder, made)
                sync_names(self.folder, self.folder.absolute().parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Snapshot(self.folder, made)

    def _reserve(self) -> tuple[int, Path]:
        """Return a number that no other process has, with its new folder."""
        with os_errors_as(
            SnapshotError, "a snapshot cannot be stored", self.folder, "name another folder with --store"
        ):
            with contextlib.suppress(FileExistsError):
                make_folder(self.folder)
            number = max(self.numbers(), default=0) + 1
            while True:
                folder = self.folder / f"{number:06d}"
                with contextlib.suppress(FileExistsError):
                    make_inner_folder(folder)
                    return number, folder
                number += 1


def require_regular_files(paths: Iterable[str]) -> None:
    """Check that the paths are regular files: DuckDB would wait forever for a pipe, and a link may lead anywhere.

    Raises:
        EvidenceError: A path is not a regular file.
    """
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(Path(path).lstat().st_mode):
                raise EvidenceError("is not a file", where=path, next_step="restore it from a copy, or delete it")


def relation_of_places(places: Iterable[Place], *, alike: bool = True) -> str:
    """Return an SQL relation with the rows of several places; its columns `_file` and `_in` say where each row is from.

    `alike` says that all of them have the same columns.
    """
    how = "filename='_file'" + ("" if alike else ", union_by_name=true")
    known = sorted(set(places))
    require_regular_files({path for path, _ in known})
    plain = ", ".join(literal(path) for path, inside in known if not inside)
    packs = ", ".join(literal(path) for path in sorted({path for path, inside in known if inside}))
    numbers = ", ".join(map(str, sorted({inside for _, inside in known if inside})))
    parts = [f"select *, 0 as _in from read_parquet([{plain}], {how})"] if plain else []
    if packs:
        # A pack may hold rows with a number that another place in the list has: `_file` distinguishes them.
        parts.append(
            f"select * exclude (snapshot_), snapshot_ as _in from read_parquet([{packs}], {how})"
            f" where snapshot_ in ({numbers})"
        )
    return f"({' union all by name '.join(parts)})"


def rows_of(chain: Sequence[Snapshot], view: str) -> str:
    """Return an SQL relation with the rows of a view in all of these snapshots; empty if none of them can be read."""
    return rows_at(place for one in chain if (place := one.place(view)) and one.problem(view) is None)


def rows_at(places: Iterable[Place]) -> str:
    """Return an SQL relation with the rows of places whose columns may differ; empty if there are no places."""
    files: dict[str, list[int]] = {}
    for path, inside in dict.fromkeys(places):
        files.setdefault(path, []).extend([inside] if inside else [])
    require_regular_files(files)
    plain = ", ".join(literal(path) for path, inside in files.items() if not inside)
    parts = [f"from read_parquet([{plain}], union_by_name=true)"] if plain else []
    parts += [
        f"select * exclude (snapshot_) from read_parquet({literal(path)})"
        f" where snapshot_ in ({', '.join(map(str, inside))})"
        for path, inside in files.items()
        if inside
    ]
    return f"({' union all by name '.join(parts)})" if parts else ""
