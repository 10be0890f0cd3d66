"""The store: a folder of snapshots, each a folder of Parquet files that any reader can open.

    snaps/
      000012/
        manifest.json          written last: without it the number does not exist
        pg_stat_database.parquet
        pg_stat_user_tables.parquet ...

Numbers are unique in a store, whatever the targets. A view that did not change since the target's
snapshot before is not written again: the manifest names the earlier file. Survives kill -9 and a
full disk at any instant: a number without a manifest is skipped, never used again. A file that
other snapshots point to must stay: delete the oldest snapshots only with all later ones.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.errors import EvidenceError, SnapshotError
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.run import DAMAGED, Manifest
from dbdyno.files import make_folder, make_inner_folder
from dbdyno.snapshot.parquet import Writer
from dbdyno.snapshot.view import Column, View

SCHEMA = 1
KINDS: dict[str, type] = {"number": int, "engine": str, "target": str, "at_ns": int, "facts": dict, "views": dict}
"""What every manifest holds."""
_FILE = re.compile(r"\d{1,12}/[\w.-]{1,200}\.parquet")
DEFAULT_STORE = Path("snaps")


@dataclass(frozen=True)
class Snapshot:
    """One whole snapshot: `manifest` as written, `store` the folder that holds all."""

    store: Path
    manifest: dict[str, Any]

    @property
    def number(self) -> int:
        """Its number, unique in the store."""
        return int(self.manifest["number"])

    @property
    def target(self) -> str:
        """The name of what was looked at."""
        return str(self.manifest["target"])

    @property
    def engine(self) -> str:
        """postgres, mariadb or oracle."""
        return str(self.manifest["engine"])

    @property
    def at_ns(self) -> int:
        """When the counters were read, nanoseconds since 1970 by the server's clock."""
        return int(self.manifest["at_ns"])

    @property
    def at(self) -> datetime:
        """When the counters were read, UTC."""
        return datetime.fromtimestamp(self.at_ns / 1e9, UTC)

    @property
    def note(self) -> str:
        """What the user wrote to it."""
        return str(self.manifest.get("note") or "")

    @property
    def facts(self) -> dict[str, Any]:
        """What the engine said of itself."""
        facts: dict[str, Any] = self.manifest["facts"]
        return facts

    @property
    def views(self) -> dict[str, dict[str, Any]]:
        """Each view's record: file, rows, columns, scope, problem."""
        views: dict[str, dict[str, Any]] = self.manifest["views"]
        return views

    def file(self, view: str) -> Path | None:
        """The Parquet file of a view; None where it was not read or is empty of columns."""
        name = self.views.get(view, {}).get("file")
        return self.store / name if name else None

    def columns(self, view: str) -> tuple[Column, ...]:
        """The columns that a view had."""
        return tuple(Column(*c) for c in self.views.get(view, {}).get("columns", ()))


class Store:
    """A folder of snapshots. It is made with the first one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[Snapshot]:
        """All whole snapshots, by number."""
        for manifest in sorted(self.folder.glob("[0-9]*/manifest.json")):
            yield self._open(manifest)

    def _open(self, manifest: Path) -> Snapshot:
        found = read_json(manifest, Manifest)
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise EvidenceError(
                f"is no snapshot of schema {SCHEMA}",
                where=str(manifest),
                next_step="use the dbdyno that wrote it, or move the folder away",
            )
        for name, kind in KINDS.items():
            if not isinstance(found.get(name), kind) or isinstance(found[name], bool):
                raise EvidenceError(f"has no {kind.__name__} as {name!r}", where=str(manifest), next_step=DAMAGED)
        if not 0 <= found["at_ns"] < 1 << 63:
            raise EvidenceError(f"was taken at no time: {found['at_ns']!r:.40}", where=str(manifest), next_step=DAMAGED)
        for view, record in found["views"].items():
            _check_view(view, record, manifest)
        return Snapshot(self.folder, found)

    def between(self, first: Snapshot, last: Snapshot) -> list[Snapshot]:
        """The snapshots of a target from one to another, both included, by number: clocks step,
        numbers do not. Only manifests of numbers between the two are opened."""
        inside = (
            manifest
            for manifest in self.folder.glob("[0-9]*/manifest.json")
            if first.number <= int(manifest.parent.name) <= last.number
        )
        found = [self._open(manifest) for manifest in inside]
        return sorted((one for one in found if one.target == first.target), key=lambda one: one.number)

    def of(self, target: str | None) -> list[Snapshot]:
        """All snapshots of a target (None: of all), by number."""
        found = [one for one in self if target is None or one.target == target]
        return sorted(found, key=lambda one: one.number)

    def last(self, target: str) -> Snapshot | None:
        """The latest snapshot of a target."""
        for manifest in sorted(self.folder.glob("[0-9]*/manifest.json"), reverse=True):
            found = self._open(manifest)
            if found.target == target:
                return found
        return None

    def add(
        self,
        views: Sequence[View],
        *,
        engine: str,
        target: str,
        at_ns: int,
        facts: dict[str, Any],
        note: str = "",
        cost: dict[str, Any] | None = None,
        before: Snapshot | None = None,
    ) -> Snapshot:
        """Writes a snapshot whole. `before` is the target's last one, whose unchanged files are
        pointed to. Raises `SnapshotError` or `EvidenceError` where that is not possible."""
        number, folder = self._reserve()
        with Writer(folder) as writer:
            records = {view.name: writer.write(view, before.views.get(view.name) if before else None) for view in views}
        manifest = {
            "schema": SCHEMA,
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
        write_json(folder / "manifest.json", manifest)
        return Snapshot(self.folder, manifest)

    def _reserve(self) -> tuple[int, Path]:
        """A number that nobody has: the folder is made here or by nobody."""
        try:
            with contextlib.suppress(FileExistsError):
                make_folder(self.folder)
            taken = [int(p.name) for p in self.folder.glob("[0-9]*") if p.name.isdigit()]
            number = max(taken, default=0) + 1
            while True:
                folder = self.folder / f"{number:06d}"
                with contextlib.suppress(FileExistsError):
                    make_inner_folder(folder)
                    return number, folder
                number += 1
        except OSError as error:
            raise SnapshotError(
                f"a snapshot cannot be stored: {error.strerror}",
                where=str(self.folder),
                next_step="name another folder with --store",
            ) from error

    def find(self, name: str, target: str | None = None) -> Snapshot:
        """A snapshot by number, `last`, `last-2`, its note, or a time: the latest one not after
        it. Raises `SnapshotError` where none or several fit."""
        manifest = self.folder / f"{int(name):06d}" / "manifest.json" if name.isdigit() else None
        if manifest is not None and manifest.is_file():
            return self._open(manifest)
        known = self.of(target)
        if not known:
            raise SnapshotError(
                "holds no snapshot" + (f" of {target}" if target else ""),
                where=str(self.folder),
                next_step="dbdyno snap take --target DSN",
            )
        if match := re.fullmatch(r"last(?:-(\d+))?", name):
            only = _one_target(known, name)
            back = int(match.group(1) or 0)
            found = only[-1 - back :][:1] if back < len(only) else []
        else:
            found = [one for one in known if one.note == name] or _before_time(known, name)
        if len(found) == 1:
            return found[0]
        said = "names no snapshot" if not found else f"names {len(found)} snapshots"
        raise SnapshotError(
            f"{name!r} {said}",
            where=str(self.folder),
            next_step="`dbdyno snap list` lists them; a number, a note, a time "
            "(2026-11-21T10:02), last or last-1 names one",
        )


def _check_view(view: str, record: Any, manifest: Path) -> None:
    """Raises `EvidenceError` for a record that is none, or that names a file elsewhere than in the store."""
    columns = record.get("columns", []) if isinstance(record, dict) else None
    file = record.get("file") if isinstance(record, dict) else None
    four = isinstance(columns, list) and all(
        isinstance(one, list) and len(one) == 4 and all(isinstance(word, str) for word in one) for one in columns
    )
    if not four or not (file is None or (isinstance(file, str) and _FILE.fullmatch(file))):
        raise EvidenceError(
            f"the record of view {view!r} is none: {record!r:.80}", where=str(manifest), next_step=DAMAGED
        )


def _before_time(known: list[Snapshot], text: str) -> list[Snapshot]:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return []
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    earlier = [one for one in _one_target(known, text) if one.at <= at]
    return earlier[-1:]


def _one_target(known: list[Snapshot], name: str) -> list[Snapshot]:
    targets = sorted({one.target for one in known})
    if len(targets) > 1:
        raise SnapshotError(
            f"{name!r} needs a target: the store holds {', '.join(targets)}",
            next_step="add --target NAME, or use the numbers of `dbdyno snap list`",
        )
    return known
