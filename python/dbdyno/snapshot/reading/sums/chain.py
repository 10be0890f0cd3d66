"""The interval between two snapshots, made of cached sums for complete hours and of sub-intervals for the rest."""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal, quoted
from dbdyno.snapshot.engines.view import LOSSES, WORDS, Column, Verdict
from dbdyno.snapshot.reading.sums.chunk import Chunk, folder_of
from dbdyno.snapshot.reading.sums.day import Day
from dbdyno.snapshot.reading.sums.index import sampled_rows, snapshots_around, snapshots_in_range
from dbdyno.snapshot.reading.sums.indexed_snapshots import IndexedSnapshot
from dbdyno.snapshot.reading.sums.total import FOLD_COLUMNS, fold_folded, fold_parts, total_sql
from dbdyno.snapshot.store.folder import Snapshot, Store, rows_at

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.ends import Ends

HOUR_NS = 3600 * 10**9
DATE = len("20261121")
"""Length of the date in the name of an hour's folder."""


class Chain:
    """The sub-intervals between the first and the last snapshot of `chain`, which has at least two.

    `alone` is a function that makes the interval of two snapshots, as in `Chunk`.
    """

    def __init__(self, store: Store, chain: list[Snapshot], alone: Callable[..., Any]) -> None:
        self._alone = alone
        self.store = store
        self.target = chain[0].target
        self.first, self.last = chain[0].number, chain[-1].number
        self._folder, self._aside = _writable(folder_of(store, self.target))
        self._beside: tuple[IndexedSnapshot | None, IndexedSnapshot | None] = None, None

    @property
    def is_cached(self) -> bool:
        """Return True if the store caches sums; if it cannot be written, they are computed in a temporary folder."""
        return self._aside is None

    @property
    def folder(self) -> Path:
        """Return the folder of the sums: in the store, or a temporary one."""
        return self._folder

    @cached_property
    def chunks(self) -> list[Chunk]:
        """Return the hours that the interval touches, each with all of the store's snapshots in it."""
        every = snapshots_around(self.store, self.target, self.first, self.last)
        low, high = (bisect_right(every.numbers, end) for end in (self.first, self.last))
        high -= 1
        while low > 1 and _hour(every[low - 1]) == _hour(every[low]):
            low -= 1
        while high + 1 < len(every) and _hour(every[high + 1]) == _hour(every[high]):
            high += 1
        self._beside = every[low - 1] if low > 1 else None, every[high + 1] if high + 1 < len(every) else None
        found: dict[Path, int] = {}
        made = []
        around = list(every[max(low - 1, 0) : high + 1])
        before = around[:1]
        for hour, group in groupby(around[1:], key=_hour):
            members = list(group)
            name = datetime.fromtimestamp(hour * 3600, UTC).strftime("%Y%m%dT%H")
            home = self._folder / name
            found[home] = found.get(home, 0) + 1
            if found[home] > 1:  # the clock went back, so this hour occurs twice
                home = self._folder / f"{name}-{found[home]}"
            made.append(Chunk(home, [*before, *members], self._alone))
            before = members[-1:]
        return made

    @cached_property
    def whole_days(self) -> list[Day]:
        """Return the days that the interval covers and that will not grow, cached or not."""
        found: dict[str, list[Chunk]] = {}
        for chunk in self.chunks if self.is_cached else ():
            found.setdefault(chunk.home.name[:DATE], []).append(chunk)
        before, after = (None if one is None else _date(one) for one in self._beside)
        newest = after or max(found, default="")
        whole = (
            (date, hours)
            for date, hours in found.items()
            if date != before and date < newest and all(map(self._covers, hours))
        )
        # A date whose hours occur twice, as the clock went back, is no day.
        return [Day(self._folder / date, hours) for date, hours in whole if _in_order(hours)]

    @cached_property
    def days(self) -> list[Day]:
        """Return the cached days that the interval covers."""
        return [one for one in self.whole_days if one.model is not None]

    @cached_property
    def pieces(self) -> list[Day | Chunk]:
        """Return the cached days and the hours outside of them, in order."""
        day_of = {chunk.home: day for day in self.days for chunk in day.chunks}
        return list(dict.fromkeys(day_of.get(chunk.home, chunk) for chunk in self.chunks))

    def forget_days(self) -> None:
        """Look for cached days again, after some were made."""
        for name in ("whole_days", "days", "pieces", "count"):
            self.__dict__.pop(name, None)

    @property
    def hours(self) -> list[Chunk]:
        """Return the hours outside of cached days."""
        return [one for one in self.pieces if isinstance(one, Chunk)]

    def parts(self) -> Sequence[JsonObject]:
        """Return what is known about each sub-interval, in order."""
        return self._parts

    @cached_property
    def _parts(self) -> list[JsonObject]:
        return [part for chunk in self.chunks for part in self.parts_of(chunk)]

    def parts_of(self, chunk: Chunk) -> Sequence[JsonObject]:
        """Return the sub-intervals of one hour that are within the interval."""
        every: list[JsonObject] = chunk.model["parts"]
        return every if self._covers(chunk) else [one for one in every if self.first < one["number"] <= self.last]

    @cached_property
    def count(self) -> int:
        """Return the number of sub-intervals."""
        return sum(self._counted(one) for one in self.pieces)

    def _counted(self, piece: Day | Chunk) -> int:
        if isinstance(piece, Day):
            return int((piece.model or {})["parts"])
        return len(self.parts_of(piece))

    def verdicts(self) -> dict[tuple[str, str | None], Verdict]:
        """Return the gravest verdict of each scope, with how much of the time is not affected."""
        whole = 0
        seen: dict[tuple[str, str | None], list[tuple[Verdict, int, bool]]] = {}
        for elapsed_ns, verdicts in self._judged():
            whole += elapsed_ns
            # For a bounded table that was reset there is a seventh value: how much of the time is lost.
            for part_ns, (scope, value, word, why, at_us, judges, *lost) in verdicts:
                verdict = Verdict(word, why, at_us)
                seen.setdefault((scope, value), []).append((verdict, lost[0] if lost else part_ns, judges))
        return {key: _gravest(found, whole) for key, found in seen.items()}

    def _judged(self) -> Iterator[tuple[int, list[tuple[int, Sequence[Any]]]]]:
        """Yield the duration of each day or sub-interval, and its verdicts, each with the duration that it covers."""
        for piece in self.pieces:
            if isinstance(piece, Day):
                model = piece.model or {}
                yield model["elapsed_ns"], [(ns, one) for ns, verdicts in model["verdicts"] for one in verdicts]
                continue
            for part in self.parts_of(piece):
                yield part["elapsed_ns"], [(part["elapsed_ns"], one) for one in part["verdicts"]]

    def is_partly_unread(self, view: str) -> bool:
        """Return True if a view's only problem is that some snapshots have no readable rows of it."""
        against = [
            (word, why)
            for part in self.parts()
            for scope, _, word, why, *_ in part["verdicts"]
            if scope == f"view:{view}"
        ]
        return all(word == "partial" and why.startswith(f"{view} could not be read") for word, why in against)

    def relation(self, view: str, *, folded: bool, chunks: list[Chunk] | None = None) -> tuple[str, list[Column]]:
        """Return an SQL relation with a view's rows, folded by key or one per sub-interval, and its columns.

        `chunks` are the hours to read; None reads all.
        """
        pieces = list(self._with(view, folded=folded)) if chunks is None else chunks
        columns = {c.name: c for piece in pieces for c in piece.columns(view)}
        if not columns:
            return "", []
        if not folded:
            return _union(_alike(view, pieces, self._limits())), list(columns.values())
        rows = _alike(view, [piece for piece in pieces if self._covers(piece)])
        for chunk in pieces:
            if not self._covers(chunk) and chunk.columns(view):
                part = f"(from read_parquet({literal(str(chunk.file(view, folded=False)))}){self._limits()})"
                rows.append(f"({fold_parts(part, chunk.columns(view))})")
        return _union(rows), list(columns.values())

    def _with(self, view: str, *, folded: bool) -> Iterator[Day | Chunk]:
        """Yield the pieces with a view's rows in order; a day without a file for the view is replaced by its hours."""
        for piece in self.pieces:
            if isinstance(piece, Day) and not piece.has(view, folded=folded):
                yield from piece.chunks
            else:
                yield piece

    def hourly(self, view: str, good: AbstractSet[int]) -> str:
        """Return an SQL relation of a view's rows: one per key and hour if all sub-intervals of the hour are `good`.

        Other hours have a row per sub-interval, as in `relation`. The row of an hour has the number of one of its
        sub-intervals as `part`, and each object's latest name.
        """
        whole = [chunk for chunk in self.chunks if self._covers(chunk) and good >= set(chunk.parts)]
        rest = [chunk for chunk in self.chunks if chunk not in whole]
        shown = f"* exclude ({', '.join(FOLD_COLUMNS)}), last_part as part"
        folded = [f"(select {shown} from {rows})" for rows in _alike(view, whole)]
        return _union([*folded, *_alike(view, rest, self._limits())])

    def total_sql(self, ends: Ends, view: str) -> str:
        """Return the query that computes a view's difference over the whole interval."""
        source, columns = self.relation(view, folded=True)
        if not source:
            columns = [c for c in ends.after.columns(view) if c.kind in ("key", "text", "counter", "sum")]
            nulls = ", ".join(f"null::{c.type} as {quoted(c.name)}" for c in columns)
            own = "0 as good, 0 as bad, 0 as word, '' as bad_why, false as least, 0 as last_part, '' as last_life"
            source = f"(select {nulls}, {own} where false)"
        folded = fold_folded(source, columns)
        return total_sql(ends.sides(view), *ends.ends(view), folded, columns, max(self.count, 1))

    def samples(self, view: str, *, exact: bool, chunks: list[Chunk] | None = None) -> str:
        """Return an SQL relation with the samples of a view; empty if there are none.

        Unless `exact`, it consists of complete hours, so the first and the last hour reach beyond the interval;
        `chunks` are the hours to read, None reads all.
        """
        if exact:
            inside = snapshots_in_range(self.store, self.target, self.first + 1, self.last)
            return sampled_rows(inside, view)
        read = self.chunks if chunks is None else chunks
        nothing = {chunk.home for day in self.days for chunk in day.hours_without(view)}
        known = (chunk for chunk in read if chunk.home not in nothing)
        return rows_at((str(chunk.file(view)), 0) for chunk in known if view in chunk.model["samples"])

    def hours_with_look_sums(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return those hours for which sums over the looks may be read instead of the samples (`look_sums.py`)."""
        return [one for one in chunks if self._covers(one) and one.model.get("looked")]

    def close(self) -> None:
        """Delete the sums that could not be cached in the store."""
        if self._aside is not None:
            shutil.rmtree(self._aside, ignore_errors=True)

    def _covers(self, piece: Day | Chunk) -> bool:
        """Return True if all sub-intervals of a piece are within the interval; those of a day always are."""
        if isinstance(piece, Day):
            return True
        return self.first < piece.parts[0] and piece.parts[-1] <= self.last

    def _limits(self) -> str:
        return f" where part > {self.first} and part <= {self.last}"


def _union(relations: Sequence[str]) -> str:
    return f"({' union all by name '.join(relations)})"


def _alike(view: str, pieces: Sequence[Day | Chunk], where: str | None = None) -> list[str]:
    """Return one relation per set of columns, because files with the same columns are read together.

    With `where`, the relations have rows per sub-interval. Hours without rows are left out, unless no hour has rows.
    """
    filled = [piece for piece in pieces if isinstance(piece, Day) or not piece.is_empty(view)]
    pieces = filled or [piece for piece in pieces if piece.shape(view)][:1]
    found: dict[str, list[str]] = {}
    known: dict[int, list[str]] = {}
    for piece in pieces:
        columns = piece.shape(view)
        if columns and id(columns) not in known:  # nearly all hours share one shape
            known[id(columns)] = found.setdefault(str(columns), [])
        if columns:
            known[id(columns)].append(literal(str(piece.file(view, folded=where is None))))
    return [f"(from read_parquet([{', '.join(files)}]){where or ''})" for files in found.values()]


def _gravest(found: list[tuple[Verdict, int, bool]], whole: int) -> Verdict:
    """Return one verdict for a scope: the gravest word, what happened, and how much of the time is covered."""
    worst = max((one for one, _, _ in found), key=lambda one: WORDS.index(one.word))
    whys = list(dict.fromkeys(one.why for one, _, _ in found))
    said = "; ".join(whys[:3]) + (f"; and {len(whys) - 3} more" if len(whys) > 3 else "")
    lost = sum(elapsed for one, elapsed, judges in found if judges and one.word in LOSSES)
    if not lost:
        return Verdict(worst.word, said, worst.at_us)
    return Verdict(worst.word, f"{coverage(whole - lost, whole)}; {said}", worst.at_us)


def coverage(good_ns: int, whole_ns: int) -> str:
    """Return the covered part of a time in a readable unit, such as `58 of 60 minutes`."""
    for name, unit in (("days", 86400 * 10**9), ("hours", HOUR_NS), ("minutes", 60 * 10**9)):
        if whole_ns >= 3 * unit:
            return f"{_short(good_ns / unit)} of {_short(whole_ns / unit)} {name}"
    return f"{_short(good_ns / 1e9)} of {_short(whole_ns / 1e9)} s"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}".removesuffix(".0")


def _hour(snapshot: IndexedSnapshot) -> int:
    return snapshot.at_ns // HOUR_NS


def _date(snapshot: IndexedSnapshot) -> str:
    return datetime.fromtimestamp(snapshot.at_ns / 1e9, UTC).strftime("%Y%m%d")


def _in_order(hours: Sequence[Chunk]) -> bool:
    """Return True if neighbouring hours follow each other without a gap or a step back."""
    names = [chunk.home.name for chunk in hours]
    joined = all(one.parts[-1] == other.chain[0].number for one, other in pairwise(hours))
    return joined and names == sorted(names) and all("-" not in name for name in names)


def _writable(folder: Path) -> tuple[Path, Path | None]:
    """Return the folder to write into, and the temporary folder to delete later (None if `folder` can be written)."""
    from dbdyno.base.files import make_inner_folder

    try:
        make_inner_folder(folder.parent, exist_ok=True)
        make_inner_folder(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder, None
    except OSError:
        aside = Path(tempfile.mkdtemp(prefix="dbdyno-sums-"))
        return aside, aside
