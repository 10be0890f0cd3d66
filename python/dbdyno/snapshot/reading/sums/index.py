"""Index of a store's snapshots, with the few values that a long report needs, so that it opens no snapshot.

`sums/index.parquet` has a row per snapshot, which is valid as long as the size and time of the snapshot's manifest are
unchanged. To check many rows quickly, they are divided into blocks of consecutive snapshot numbers. The core adds up
the sizes and times of the manifests of a block, and DuckDB those in its rows. Single rows are compared only if the two
sums differ. For a block far from the requested snapshots, it suffices that the store has exactly the folders that
belong to its rows. The other columns of a block are read when one of its snapshots is requested. A missing or changed
row is read again from its manifest. The file may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from dbdyno.base.errors import Error, EvidenceError
from dbdyno.base.files import file_replacement, make_inner_folder
from dbdyno.base.sql_text import literal
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.reading.sums.indexed_snapshots import IndexedSnapshot, IndexedSnapshots
from dbdyno.snapshot.reading.sums.manifests import BLOCK, File, Manifests, Totals
from dbdyno.snapshot.store.folder import Snapshot, Store, rows_at
from dbdyno.snapshot.store.integrity import damage
from dbdyno.snapshot.store.locks import PACKS

FOLDER = "sums"
VERSION = 4
REWRITE_ROWS = 16
"""Number of missing or surplus rows at which the file is written again."""
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
"""Values that a long interval needs from each snapshot, so that its JSON is not parsed for each one."""

_SUM = f"hash({', '.join(_COLUMNS)})"
"""Checksum of a row; a row with a wrong checksum is read again from its manifest."""
Row = tuple[Any, ...]
"""The columns of `_COLUMNS`, then those of `_DERIVED`."""
VALID_S = 20.0
_FOLDERS = "count(*)::bigint, sum(number)::bigint"
_MANIFESTS = "sum(size)::bigint, sum(changed_ns // 1000000000)::bigint, sum(changed_ns % 1000000000)::bigint"
"""SQL for the values of a block's `Totals` that `_FOLDERS` does not have."""
_ROWS = ", ".join((*_COLUMNS, *_DERIVED))


class Index:
    """The index of a store as it was a moment ago, kept in memory because a report needs it several times.

    Attributes:
        folder: The store's folder.
        numbers: Numbers of the snapshots of each target, ascending.
        totals: What the manifests of each block of numbers add up to.
        fresh: Rows that the file lacks, by number.
        blocks: The first and the last block of which the manifests were looked at.
        state: When folders of the store were changed.
        read_s: When it was read, by a clock that does not step.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers: dict[str, list[int]] = {}
        self.totals: dict[int, Totals] = {}
        self.fresh: dict[int, Row] = {}
        self.blocks = 0, 0
        self.state: list[int] = []
        self.read_s = time.monotonic()
        self._blocks: dict[int, dict[int, Row]] = {}

    def snapshots_of(self, store: Store, *targets: str) -> IndexedSnapshots:
        """Return the snapshots of some targets by number."""
        known = [self.numbers.get(one, []) for one in targets]
        numbers = known[0] if len(known) == 1 else sorted(number for some in known for number in some)
        return IndexedSnapshots(numbers, self, store, targets)

    def row(self, number: int) -> Row:
        """Return what is known about a snapshot.

        Raises:
            EvidenceError: The file of the index was deleted meanwhile, and the manifest cannot be read.
        """
        block = self._blocks.get(number // BLOCK)
        if block is None:
            block = self._blocks[number // BLOCK] = self._block(number // BLOCK)
        found = block.get(number)
        if found is None:
            found = block[number] = _row_of(Store(self.folder).open(number), number, 0, 0)
        return found

    def add(self, numbers: Iterable[int], targets: str | Iterable[str]) -> None:
        """Add the numbers of snapshots of another block; `targets` is the target of all, or a list of their targets."""
        if isinstance(targets, str):
            self.numbers.setdefault(targets, []).extend(numbers)
            return
        for number, target in zip(numbers, targets, strict=True):
            self.numbers.setdefault(target, []).append(number)

    def numbers_with_note(self, note: str) -> set[int]:
        """Return the numbers of the snapshots that have this note, according to the index."""
        rows = _query(self.folder, "number", "note = $1", values=[note])
        return {number for (number,) in rows} | {number for number, row in self.fresh.items() if row[6] == note}

    def _block(self, block: int) -> dict[int, Row]:
        rows = _query(self.folder, _ROWS, _inside(block))
        return {row[0]: row for row in rows} | {n: row for n, row in self.fresh.items() if n // BLOCK == block}


_LATELY: WeakKeyDictionary[Store, Index] = WeakKeyDictionary()


def sampled_rows(chain: Sequence[IndexedSnapshot], view: str) -> str:
    """Return an SQL relation with what was sampled before these snapshots; empty if nothing can be read."""
    there = [(one, str(one.store / place[0]), place[1]) for one in chain if (place := one.sampled.get(view))]
    whole: dict[str, bool] = {}
    for one, path, inside in there:
        if path not in whole:
            whole[path] = (one.problem(view) if not inside else damage(Path(path))) is None
    return rows_at((path, inside) for _, path, inside in there if whole[path])


def between(store: Store, first: Snapshot, last: Snapshot) -> list[Snapshot]:
    """Return the snapshots of a target from `first` to `last`, both included, sorted by number.

    Those in between whose manifest cannot be read are left out, and noted in `Store.damaged`.
    """
    found = snapshots_in_range(store, first.target, first.number, last.number)
    return [first, *(one for one in found if first.number < one.number < last.number), last]


def targets(store: Store) -> list[str]:
    """Return the names of all targets of a store; unreadable snapshots are noted in `Store.damaged`."""
    return sorted(_lately(store, 0, 1 << 62).numbers)


def snapshots_of_target(store: Store, target: str | None, newest: int | None = None) -> IndexedSnapshots:
    """Return all snapshots of a target, or of all targets for None, by number.

    Snapshots that cannot be read are left out, and noted in `Store.damaged`. With `newest`, only that many of the
    latest are checked for changes on disk.
    """
    if not store.folder.is_dir():
        return Index(store.folder).snapshots_of(store)
    known = {} if newest is None or store in _LATELY else _known(store.folder)
    index = _lately(store, 0 if newest is None else _begin(store, known, target, newest), 1 << 62, known)
    return index.snapshots_of(store, *(index.numbers if target is None else (target,)))


def snapshots_in_range(store: Store, target: str, low: int, high: int) -> IndexedSnapshots:
    """Return the snapshots of a target with numbers from `low` to `high`, sorted by number."""
    found = _lately(store, low, high).snapshots_of(store, target)
    return found[bisect_left(found.numbers, low) : bisect_right(found.numbers, high)]


def snapshots_around(store: Store, target: str, low: int, high: int) -> IndexedSnapshots:
    """Return all snapshots of a target by number; only those from `low` to `high` are checked for changes on disk."""
    return _lately(store, low, high).snapshots_of(store, target)


def _begin(store: Store, known: dict[int, Row], target: str | None, newest: int) -> int:
    """Return the number of the first of a target's `newest` last snapshots; 0 if fewer are indexed."""
    kept = _LATELY.get(store)
    if kept is not None:
        lights = kept.snapshots_of(store, *(kept.numbers if target is None else (target,)))
        return lights.numbers[-newest] if newest <= len(lights) else 0
    for block in sorted(known, reverse=True):
        numbers, of_block = known[block][-2:]
        targets = [of_block] * len(numbers) if isinstance(of_block, str) else of_block
        mine = [number for number, of in zip(numbers, targets, strict=True) if target in (None, of)]
        if newest <= len(mine):
            return int(mine[-newest])
        newest -= len(mine)
    return 0


def _lately(store: Store, low: int, high: int, known: dict[int, Row] | None = None) -> Index:
    """Return the store's index, read again after a snapshot or pack was added or deleted, or after `VALID_S` seconds.

    Manifests of snapshots numbered `low` to `high` are checked for changes. A caller that has already called `_known`
    passes its result as `known`.
    """
    # Taken first, so that what is changed while the manifests are read is seen the next time.
    state = [path.stat().st_mtime_ns for path in (store.folder, store.folder / PACKS) if path.is_dir()]
    kept = _LATELY.get(store)
    # A block more on both sides: who reads an interval needs its whole hours, and the snapshots beside them.
    blocks = max(low // BLOCK - 1, 0), high // BLOCK + 1
    if kept is not None and kept.state == state and time.monotonic() - kept.read_s <= VALID_S:
        if kept.blocks[0] <= blocks[0] and blocks[1] <= kept.blocks[1]:
            return kept
        blocks = min(kept.blocks[0], blocks[0]), max(kept.blocks[1], blocks[1])
    known = known or ({} if low <= 0 and high >= 1 << 62 else _known(store.folder))
    files = Manifests(store.folder, *blocks, {block: (one[0], one[1]) for block, one in known.items()})
    found = Index(store.folder)
    _fill(found, store, files, known, kept.fresh if kept else {}, lambda number: low <= number <= high)
    if kept is not None and (kept.totals, kept.numbers, kept.fresh) == (found.totals, found.numbers, found.fresh):
        found = kept
    found.state, found.read_s, found.blocks = state, time.monotonic(), blocks
    if files.is_being_written():
        _LATELY.pop(store, None)
    else:
        _LATELY[store] = found
    return found


def _known(folder: Path) -> dict[int, Row]:
    """Return the stored values of each block from the index file, without comparing them with the manifests."""
    return _by_block(folder, "", "true", whole=False)


def _by_block(folder: Path, more: str, where: str, *, whole: bool = True) -> dict[int, Row]:
    """Return by block: the sums `_FOLDERS` and `more`, the snapshot numbers, and their target (a list if they differ).

    Lists are read only for blocks with gaps or several targets, because reading all lists took most of the time.
    """
    found: dict[int, Row] = {}
    mixed: dict[int, Row] = {}
    shown = f"number // {BLOCK}, {_FOLDERS}, {more} min(number), max(number), min(target), max(target)"
    for block, *sums, first, last, target, other in _query(folder, shown, where, "group by 1", whole=whole):
        if last - first + 1 == sums[0] and target == other:
            found[block] = (*sums, range(first, last + 1), target)
        else:
            mixed[block] = tuple(sums)
    if mixed:
        shown = f"number // {BLOCK}, list(number order by number), list(target order by number)"
        inside = f"number // {BLOCK} in ({', '.join(map(str, mixed))})"
        for block, *lists in _query(folder, shown, inside, "group by 1", whole=whole):
            found[block] = (*mixed[block], *lists)
    return found


def _fill(
    index: Index,
    store: Store,
    files: Manifests,
    known: dict[int, Row],
    kept: dict[int, Row],
    is_noted: Callable[[int], bool],
) -> None:
    """Fill an index from the store's manifests, and from `known` for the blocks that were not looked at.

    `kept` are rows read earlier that the file lacks. Unreadable snapshots whose number `is_noted` are noted in
    `Store.damaged`.
    """
    index.totals = files.totals
    unseen = set(files.unseen)
    begin = next(block for block in count() if block not in unseen)  # which spares DuckDB the row groups before it
    seen = f"number >= {begin * BLOCK} and number // {BLOCK} not in ({', '.join(map(str, unseen)) or -1})"
    blocks = _by_block(store.folder, f"{_MANIFESTS},", seen)
    good: dict[int, list[int]] = {block: [] for block in blocks.keys() - files.totals.keys()}
    excess = sum(blocks[block][0] for block in good)
    for block in sorted(files.totals.keys() | unseen):
        if block in unseen or (block in blocks and list(blocks[block][:5]) == files.totals[block]):
            index.add(*(known if block in unseen else blocks)[block][-2:])
            continue
        rows = {row[0]: row for row in _query(store.folder, _ROWS, _inside(block))} if block in blocks else {}
        every = {
            file[0]: _row_at(store, file, rows, kept, noted=is_noted(file[0]))
            for file in files.manifests_of_block(block)
        }
        whole = {number: row for number, row in every.items() if row is not None}
        index.add(list(whole), [row[3] for row in whole.values()])
        index.fresh |= {number: row for number, row in whole.items() if row is not rows.get(number)}
        good[block] = [number for number, row in whole.items() if row is rows.get(number)]
        excess += len(rows) - len(good[block])
    if excess + len(index.fresh) >= REWRITE_ROWS:
        _keep(index, good, is_new=not blocks and not unseen)


def _row_at(store: Store, file: File, rows: dict[int, Row], kept: dict[int, Row], *, noted: bool) -> Row | None:
    """Return the row of a manifest: from the index or an earlier read if that is still valid, otherwise read again."""
    for known in (rows.get(file[0]), kept.get(file[0])):
        if known is not None and known[1:3] == file[1:]:
            return known
    return _read(store, file, noted=noted)


def _read(store: Store, file: File, *, noted: bool) -> Row | None:
    """Return the row of one snapshot, or None if it cannot be read; with `noted`, the error goes to `Store.damaged`."""
    try:
        return _row_of(store.open(file[0]), *file)
    except EvidenceError as error:
        if noted:
            store.damaged[file[0]] = error
        return None
    except (OSError, Error):
        return None


def _row_of(snapshot: Snapshot, number: int, size: int, changed_ns: int) -> Row:
    """Return the row of an opened snapshot."""
    facts = {name: snapshot.facts[name] for name in _FACTS if name in snapshot.facts}
    cost = snapshot.manifest.get("cost") or {}
    kept = {name: cost[name] for name in ("looks", "sessions_by", "own_transactions") if name in cost}
    sampled = {name: [snapshot.views[name]["file"], place[1]] for name in _SAMPLED if (place := snapshot.place(name))}
    texts = [json.dumps(value, sort_keys=True) for value in (facts, kept, sampled)]
    derived = (snapshot.looks, snapshot.own_session, *(snapshot.steady_clock or (None, None)))
    return (
        number,
        size,
        changed_ns,
        snapshot.target,
        snapshot.engine,
        snapshot.at_ns,
        snapshot.note,
        _digest(snapshot),
        *texts,
        *derived,
    )


def _digest(snapshot: Snapshot) -> str:
    """Return the digest of a manifest without the places of its rows: packing moves rows but changes nothing."""
    views = {view: {k: v for k, v in record.items() if k not in _WHERE} for view, record in snapshot.views.items()}
    said = {k: v for k, v in snapshot.manifest.items() if k not in ("pack", "schema", "shape", "sum")} | {
        "views": views
    }
    return hashlib.blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=12).hexdigest()


def _file(folder: Path) -> Path:
    return folder / FOLDER / "index.parquet"


def _inside(block: int) -> str:
    return f"number between {block * BLOCK} and {(block + 1) * BLOCK - 1}"


def _query(
    folder: Path, shown: str, where: str, more: str = "", values: Sequence[object] = (), *, whole: bool = True
) -> list[Row]:
    """Return rows of a query over the file; empty if it is missing, damaged or of another version.

    `whole` leaves out rows whose checksum is wrong; to compute the checksums, all columns are read.
    """
    from dbdyno.evidence.duck import duckdb

    path = _file(folder)
    if not path.is_file():
        return []
    try:
        with file_connection(in_order=True) as connection:
            source = _whole(path) if whole else _of_version(path)
            return connection.execute(f"select {shown} from {source} where {where} {more}", values).fetchall()
    except duckdb.Error:  # it is written again
        return []


def _of_version(path: Path) -> str:
    """Return an SQL relation with the rows that have this version of the format."""
    return f"(from read_parquet({literal(str(path))}) where version = {VERSION})"


def _whole(path: Path) -> str:
    """Return an SQL relation with the rows that have this version of the format and a correct checksum."""
    return f"(from {_of_version(path)} where sum = {_SUM})"


def _keep(index: Index, good: dict[int, list[int]], *, is_new: bool) -> None:
    """Write the index under a temporary name and rename it; if that fails, nothing is cached.

    A row of the file is kept if it is in `good` or in a block that `good` lacks.
    """
    from dbdyno.evidence.duck import duckdb

    path = _file(index.folder)
    fresh = list(zip(*(row[: len(_COLUMNS)] for row in index.fresh.values()), strict=True))
    values: list[object] = [list(column) for column in fresh] or [[] for _ in _COLUMNS]
    shown = ", ".join(f"unnest(${at}::{kind}[]) as {name}" for at, (name, kind) in enumerate(_COLUMNS.items(), 1))
    rows = f"select {shown}"
    if not is_new:
        at = len(values) + 1
        values += [list(good), [number for numbers in good.values() for number in numbers]]
        rows = (
            f"select {', '.join(_COLUMNS)} from {_whole(path)} where number // {BLOCK} not in"
            f" (select unnest(${at}::bigint[])) or number in (select unnest(${at + 1}::bigint[])) union all {rows}"
        )
    with contextlib.suppress(OSError, duckdb.Error), file_connection(in_order=True) as connection:
        make_inner_folder(path.parent, exist_ok=True)
        connection.execute(
            f"create temp table put as select {VERSION} as version, *, {_SUM} as sum from ({rows}) order by number",
            values,
        )
        with file_replacement(path) as aside:
            connection.execute(
                f"copy put to {literal(str(aside))} (format parquet, compression zstd, row_group_size {BLOCK})"
            )
