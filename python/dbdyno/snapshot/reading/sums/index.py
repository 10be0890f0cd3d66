"""Index of a store's snapshots, with the little that a long report needs of each, without opening them.

`sums/index.parquet` has a row per snapshot, which is valid as long as its manifest's size and time are unchanged. A
missing or changed row is read again; the file may be deleted. A snapshot from the index opens its manifest when asked
for more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from weakref import ReferenceType, WeakKeyDictionary, ref

from dbdyno.base.errors import Error, EvidenceError
from dbdyno.base.files import make_inner_folder, written_by_name
from dbdyno.evidence.memory import for_files
from dbdyno.snapshot.store.folder import Snapshot, Store, rows_at
from dbdyno.snapshot.store.integrity import damage
from dbdyno.snapshot.store.locks import PACKS
from dbdyno.snapshot.store.parquet import literal
from dbdyno.snapshot.store.records import SnapshotManifest

FOLDER = "sums"
VERSION = 3
_FACTS = ("clock", "database", "databases", "version", "in_recovery", "session", "started_us")
_WHERE = ("file", "in", "file_sum", "digest")
_SAMPLED = ("activity", "blocked", "ash")
_COLUMNS = {
    "number": "BIGINT",
    "size": "BIGINT",
    "changed_ns": "BIGINT",
    "target": "VARCHAR",
    "engine": "VARCHAR",
    "at_ns": "BIGINT",
    "note": "VARCHAR",
    "digest": "VARCHAR",
    "facts": "VARCHAR",
    "cost": "VARCHAR",
    "sampled": "VARCHAR",
}
_DERIVED = (
    "coalesce(try_cast(cost->>'looks' as bigint), 0)",
    "try_cast(facts->>'session' as bigint)",
    "facts->'clock'->>'boot'",
    "try_cast(facts->'clock'->>'since_boot_ns' as bigint)",
)
"""What is needed of each snapshot of a long interval, so that its JSON is not parsed one by one."""

_SUM = f"hash({', '.join(_COLUMNS)})"
"""Checksum of a row; a row with a wrong checksum is read again from its manifest."""
AT_ONCE = 2048
"""Number of rows of the index read at once."""
GOOD_S = 20.0
LANDING_S = 60.0
"""Age of a snapshot's folder without a manifest up to which the snapshot may still land."""


class Light(Snapshot):
    """A snapshot from the index, whose manifest is read when more of it is needed; small, because there are many."""

    __slots__ = ("_holder", "_row")
    _row: tuple[Any, ...]
    _holder: ReferenceType[Store]

    def __init__(self, row: tuple[Any, ...], holder: Store) -> None:
        object.__setattr__(self, "store", holder.folder)
        object.__setattr__(self, "_row", row)
        object.__setattr__(self, "_holder", ref(holder))  # weak, because the store's index holds this snapshot

    @property
    def manifest(self) -> SnapshotManifest:
        """Return what the index knows of it; other keys are read from the file."""
        number, _, _, target, engine, at_ns, note, digest, facts, cost, sampled, *_ = self._row
        known = {"number": number, "target": target, "engine": engine, "at_ns": at_ns, "note": note, "digest": digest}
        texts = {"facts": facts, "cost": cost, "sampled": sampled}
        return cast("SnapshotManifest", _Lazy(known, texts, self._holder() or Store(self.store)))

    @property
    def number(self) -> int:
        """Return its number, which is unique in the store."""
        return int(self._row[0])

    @property
    def target(self) -> str:
        """Return the name of its target."""
        return str(self._row[3])

    @property
    def note(self) -> str:
        """Return the note that it was taken with, or ""."""
        return str(self._row[6])

    @property
    def at_ns(self) -> int:
        """Return when the counters were read, in nanoseconds since 1970 by the server's clock."""
        return int(self._row[5])

    @property
    def looks(self) -> int:
        """Return how often the sessions were looked at since the previous snapshot."""
        return int(self._row[11])

    @property
    def own_session(self) -> int | None:
        """Return the session that took it, by the server's number, or None if that is not known."""
        found: int | None = self._row[12]
        return found

    @property
    def steady_clock(self) -> tuple[str, int] | None:
        """Return the start of the machine that took it and the nanoseconds since then, or None if not known."""
        boot, since_boot_ns = self._row[13:15]
        return None if since_boot_ns is None else (str(boot), int(since_boot_ns))

    @property
    def digest(self) -> str:
        """Return the digest of its manifest, which differs from every other snapshot's."""
        return str(self._row[7])

    @property
    def sampled(self) -> dict[str, tuple[str, int]]:
        """Return where the samples before it are, by view: a file of the store, and the number that marks its rows."""
        found: dict[str, tuple[str, int]] = json.loads(self._row[10])
        return found


class _Lazy(dict[str, Any]):
    """A manifest with only a few keys loaded, some as JSON text; other keys are read from the file."""

    def __init__(self, known: dict[str, object], texts: dict[str, str], holder: Store) -> None:
        super().__init__(known)
        self.texts = texts
        self.holder = holder

    def __missing__(self, key: str) -> Any:
        if key in self.texts:
            return json.loads(self.texts[key])
        kept: Mapping[str, Any] = self.holder.open(self["number"]).manifest
        return kept[key]


class _Index:
    """The index of a store as of a moment ago, because a report needs it several times.

    Attributes:
        state: When folders of the store were changed.
        read_s: When it was read, by a clock that does not step.
        rows: Its rows by number.
    """

    def __init__(self, state: list[int], rows: list[tuple[Any, ...]]) -> None:
        self.state = state
        self.read_s = time.monotonic()
        self.rows = rows
        self._lights: dict[str, tuple[list[int], list[Light]]] = {}

    def of(self, store: Store, target: str) -> tuple[list[int], list[Light]]:
        """Return the numbers of a target's snapshots, and the snapshots, both by number."""
        if target not in self._lights:
            rows = [row for row in self.rows if row[3] == target]
            self._lights[target] = [row[0] for row in rows], [Light(row, store) for row in rows]
        return self._lights[target]


_LATELY: WeakKeyDictionary[Store, _Index] = WeakKeyDictionary()


def sampled_rows(chain: Sequence[Light], view: str) -> str:
    """Return an SQL relation with what was sampled before these snapshots; empty if nothing can be read."""
    there = [(one, str(one.store / place[0]), place[1]) for one in chain if (place := one.sampled.get(view))]
    whole: dict[str, bool] = {}
    for one, path, inside in there:
        if path not in whole:
            whole[path] = (one.problem(view) if not inside else damage(Path(path))) is None
    return rows_at((path, inside) for _, path, inside in there if whole[path])


def between(store: Store, first: Snapshot, last: Snapshot) -> list[Snapshot]:
    """Return the snapshots of a target from one to another, both included, by number.

    Those in between whose manifest cannot be read are left out, and noted in `Store.damaged`.
    """
    found = [
        one for one in light(store, first.target, first.number, last.number) if first.number < one.number < last.number
    ]
    return [first, *found, last]


def targets(store: Store) -> list[str]:
    """Return the names of all targets of a store; unreadable snapshots are noted in `Store.damaged`."""
    return sorted({row[3] for row in _lately(store, 0, 1 << 62).rows})


def known_of(store: Store, target: str | None) -> list[Light]:
    """Return all snapshots of a target, or of all targets for None, by number.

    Snapshots that cannot be read are left out, and noted in `Store.damaged`.
    """
    if not store.folder.is_dir():
        return []
    index = _lately(store, 0, 1 << 62)
    names = {row[3] for row in index.rows} if target is None else {target}
    if len(names) == 1:
        return index.of(store, names.pop())[1]
    return sorted((one for name in names for one in index.of(store, name)[1]), key=lambda one: one.number)


def light(store: Store, target: str, low: int, high: int) -> list[Light]:
    """Return the snapshots of a target with numbers from `low` to `high`, by number."""
    numbers, found = _lately(store, low, high).of(store, target)
    return found[bisect_left(numbers, low) : bisect_right(numbers, high)]


def _lately(store: Store, low: int, high: int) -> _Index:
    """Return the index of `_current`, cached until snapshots or packs are added or deleted, or for `GOOD_S` seconds."""
    state = [path.stat().st_mtime_ns for path in (store.folder, store.folder / PACKS) if path.is_dir()]
    kept = _LATELY.get(store)
    if kept is None or kept.state != state or time.monotonic() - kept.read_s > GOOD_S:
        lands = _is_landing(store.folder)
        rows = _current(store, low, high, {row[0]: row for row in kept.rows} if kept else None)
        state = [path.stat().st_mtime_ns for path in (store.folder, store.folder / PACKS) if path.is_dir()]
        if kept is None or kept.rows != rows:
            kept = _Index(state, rows)
        kept.state, kept.read_s = state, time.monotonic()
        if lands or _is_landing(store.folder):
            _LATELY.pop(store, None)
        else:
            _LATELY[store] = kept
    return kept


def _is_landing(folder: Path) -> bool:
    """Return True if the newest snapshot is just being written: its manifest, which comes last, changes no folder."""
    path = folder / f"{max(map(int, _names(folder)), default=0):06d}"
    try:
        return not (path / "manifest.json").exists() and time.time() - path.stat().st_mtime < LANDING_S
    except OSError:
        return False


def _current(
    store: Store, low: int, high: int, known: dict[int, tuple[Any, ...]] | None = None
) -> list[tuple[Any, ...]]:
    """Return the rows of the index by number, updated to the store's content.

    `known` are rows read earlier; None reads the file. Unreadable snapshots with numbers from `low` to `high` are noted
    in `Store.damaged`.
    """
    path = store.folder / FOLDER / "index.parquet"
    if known is None:
        known = _kept(path)
    rows: dict[int, tuple[Any, ...]] = {}
    fresh = 0
    for number, size, changed_ns in _manifests(store.folder):
        row = known.get(number)
        if row is None or row[1] != size or row[2] != changed_ns:
            row = _read(store, number, size, changed_ns, noted=low <= number <= high)
            fresh += row is not None
        if row is not None:
            rows[number] = row
    if fresh or len(rows) != len(known):
        _keep(path, list(rows.values()))
    return [rows[number] for number in sorted(rows)]


def _names(folder: Path) -> list[str]:
    """Return the names of all folders of snapshots; `Path` would take most of the time for tens of thousands."""
    return [name for name in os.listdir(folder) if name.isascii() and name.isdigit()]  # noqa: PTH208


def _manifests(folder: Path) -> Iterator[tuple[int, int, int]]:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # so that the system does not look up its path each time
    try:
        for name in _names(folder):
            try:
                found = os.stat(f"{name}/manifest.json", dir_fd=opened)
            except OSError:
                continue
            yield int(name), found.st_size, found.st_mtime_ns
    finally:
        os.close(opened)


def _read(store: Store, number: int, size: int, changed_ns: int, *, noted: bool) -> tuple[Any, ...] | None:
    """Return the row of one snapshot, or None if it cannot be read; with `noted`, the error goes to `Store.damaged`."""
    try:
        one = store.open(number)
    except EvidenceError as error:
        if noted:
            store.damaged[number] = error
        return None
    except (OSError, Error):
        return None
    facts = {name: one.facts[name] for name in _FACTS if name in one.facts}
    cost = one.manifest.get("cost") or {}
    kept = {name: cost[name] for name in ("looks", "sessions_by", "own_transactions") if name in cost}
    sampled = {name: [one.views[name]["file"], place[1]] for name in _SAMPLED if (place := one.place(name))}
    texts = [json.dumps(value, sort_keys=True) for value in (facts, kept, sampled)]
    derived = (one.looks, one.own_session, *(one.steady_clock or (None, None)))
    return (number, size, changed_ns, one.target, one.engine, one.at_ns, one.note, _digest(one), *texts, *derived)


def _digest(one: Snapshot) -> str:
    """Return the digest of a manifest except where the rows are: packing moves them but changes nothing."""
    views = {view: {k: v for k, v in record.items() if k not in _WHERE} for view, record in one.views.items()}
    said = {k: v for k, v in one.manifest.items() if k not in ("pack", "schema", "shape", "sum")} | {"views": views}
    return hashlib.blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=12).hexdigest()


def _kept(path: Path) -> dict[int, tuple[Any, ...]]:
    import duckdb

    if not path.is_file():
        return {}
    try:
        with for_files() as connection:
            cursor = connection.execute(
                f"select {', '.join((*_COLUMNS, *_DERIVED))} from read_parquet(?)"
                f" where version = {VERSION} and sum = {_SUM}",
                [str(path)],
            )
            found: dict[int, tuple[Any, ...]] = {}
            while rows := cursor.fetchmany(AT_ONCE):
                found.update((row[0], row) for row in rows)
            return found
    except duckdb.Error:  # damaged or of another version: it is written again
        return {}


def _keep(path: Path, rows: list[tuple[Any, ...]]) -> None:
    """Write the index under a temporary name and rename it; if that fails, nothing is cached."""
    import duckdb

    values = [list(v) for v in zip(*(row[: len(_COLUMNS)] for row in rows), strict=True)] or [[] for _ in _COLUMNS]
    shown = ", ".join(f"unnest(${at}::{kind}[]) as {name}" for at, (name, kind) in enumerate(_COLUMNS.items(), 1))
    with contextlib.suppress(OSError, duckdb.Error), for_files() as connection:
        make_inner_folder(path.parent, exist_ok=True)
        connection.execute(
            f"create temp table put as select {VERSION} as version, *, {_SUM} as sum from (select {shown})", values
        )
        with written_by_name(path) as aside:
            connection.execute(f"copy put to {literal(str(aside))} (format parquet, compression zstd)")
