"""Snapshots from the index of a store, which open their manifest only for values that the index lacks."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, cast, overload
from weakref import ReferenceType, ref

from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.records import SnapshotManifest

TEXTS_MOST = 256
"""Number of parsed texts that are cached: the facts and costs of most snapshots of a server are equal."""
_CLOCK = re.compile(r'^\{"clock": (\{[^{}]*\})(?:, |(?=\}))')
"""The clock of a snapshot at the beginning of its facts, whose keys are sorted: only the clock differs every time."""


class IndexRows(Protocol):
    """Interface of an index to the snapshots that it holds."""

    @property
    def folder(self) -> Path:
        """Return the store's folder."""

    def row(self, number: int) -> tuple[Any, ...]:
        """Return what is known about a snapshot."""

    def numbers_with_note(self, note: str) -> set[int]:
        """Return the numbers of the snapshots with this note."""


class IndexedSnapshot(Snapshot):
    """A snapshot from the index, whose manifest is read when more of it is needed; small, because there are many."""

    __slots__ = ("_holder", "_index", "_number", "_row")
    _number: int
    _row: tuple[Any, ...]
    _index: IndexRows
    _holder: ReferenceType[Store]

    def __init__(self, number: int, index: IndexRows, holder: Store) -> None:
        object.__setattr__(self, "store", holder.folder)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_index", index)
        object.__setattr__(self, "_holder", ref(holder))  # weak, because the store's index holds this snapshot

    def __getattr__(self, name: str) -> Any:
        """Look up the snapshot's row in the index when `_row` is first used."""
        if name != "_row":
            raise AttributeError(name)
        found = self._index.row(self._number)
        object.__setattr__(self, "_row", found)
        return found

    @property
    def manifest(self) -> SnapshotManifest:
        """Return the part of the manifest that the index has; other keys are read from the file."""
        number, _, _, target, engine, at_ns, note, digest, facts, cost, sampled, *_ = self._row
        known = {"number": number, "target": target, "engine": engine, "at_ns": at_ns, "note": note, "digest": digest}
        texts = {"facts": facts, "cost": cost, "sampled": sampled}
        return cast("SnapshotManifest", _Lazy(known, texts, self._holder() or Store(self.store)))

    @property
    def number(self) -> int:
        """Return the snapshot's number, which is unique in the store."""
        return self._number

    @property
    def target(self) -> str:
        """Return the name of the snapshot's target."""
        return str(self._row[3])

    @property
    def note(self) -> str:
        """Return the note of the snapshot, or an empty string."""
        return str(self._row[6])

    @property
    def at_ns(self) -> int:
        """Return when the counters were read, in nanoseconds since 1970 by the server's clock."""
        return int(self._row[5])

    @property
    def looks(self) -> int:
        """Return the number of looks: how often the sessions were sampled since the previous snapshot."""
        return int(self._row[11])

    @property
    def own_session(self) -> int | None:
        """Return the server's identifier of the session that took the snapshot, or None if it is not known."""
        found: int | None = self._row[12]
        return found

    @property
    def steady_clock(self) -> tuple[str, int] | None:
        """Return the boot of the machine that took the snapshot and the time since then in ns; None if not known."""
        boot, since_boot_ns = self._row[13:15]
        return None if since_boot_ns is None else (str(boot), int(since_boot_ns))

    @property
    def steady_facts(self) -> Mapping[str, Any]:
        """Return the facts without the clock; callers must not change them, because snapshots share the object."""
        return _facts_and_clock(self._row[8])[0]

    @property
    def cost(self) -> Mapping[str, Any]:
        """Return the indexed cost of taking the snapshot; callers must not change it: snapshots share the object."""
        found: Mapping[str, Any] = _parsed(self._row[9])
        return found

    @property
    def digest(self) -> str:
        """Return the digest of the snapshot's manifest, which differs from every other snapshot's."""
        return str(self._row[7])

    @property
    def sampled(self) -> dict[str, tuple[str, int]]:
        """Return, by view, the file with the samples before this snapshot, and the number that marks its rows there."""
        found: dict[str, tuple[str, int]] = json.loads(self._row[10])
        return found


class IndexedSnapshots(Sequence[IndexedSnapshot]):
    """Snapshots of an index by number, each of which is created when it is requested."""

    def __init__(self, numbers: Sequence[int], index: IndexRows, holder: Store, targets: Iterable[str]) -> None:
        self.numbers = numbers
        self.targets = sorted(targets)
        self._index = index
        self._holder = ref(holder)

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, at: int) -> IndexedSnapshot: ...

    @overload
    def __getitem__(self, at: slice) -> IndexedSnapshots: ...

    def __getitem__(self, at: int | slice) -> IndexedSnapshot | IndexedSnapshots:
        holder = self._holder() or Store(self._index.folder)
        if isinstance(at, slice):
            return IndexedSnapshots(self.numbers[at], self._index, holder, self.targets)
        return IndexedSnapshot(self.numbers[at], self._index, holder)

    def with_note(self, note: str) -> list[IndexedSnapshot]:
        """Return the snapshots that were taken with this note."""
        wanted = sorted(self._index.numbers_with_note(note).intersection(self.numbers))
        found = (self[bisect_left(self.numbers, number)] for number in wanted)
        return [one for one in found if one.note == note]


class _Lazy(dict[str, Any]):
    """A manifest with only a few keys loaded, some as JSON text; other keys are read from the file."""

    def __init__(self, known: dict[str, object], texts: dict[str, str], holder: Store) -> None:
        super().__init__(known)
        self.texts = texts
        self.holder = holder

    def __missing__(self, key: str) -> Any:
        if key == "facts":
            return _facts(self.texts[key])
        if key in self.texts:
            return _parsed(self.texts[key])
        kept: Mapping[str, Any] = self.holder.open(self["number"]).manifest
        return kept[key]


def _facts(text: str) -> dict[str, Any]:
    shared, clock = _facts_and_clock(text)
    return {"clock": json.loads(clock), **shared} if clock else dict(shared)


def _facts_and_clock(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the facts that snapshots share, and the clock as JSON or an empty text."""
    clock = _CLOCK.match(text)
    return (_parsed("{" + text[clock.end() :]), clock[1]) if clock else (_parsed(text), "")


@lru_cache(TEXTS_MOST)
def _parsed(text: str) -> Any:
    return json.loads(text)
