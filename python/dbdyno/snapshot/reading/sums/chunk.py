"""An hour of sub-intervals on disk: their differences, each view's sums, verdicts, metrics, samples.

    sums/<target>/<hour>/<digest>/
        chunk.json              the sub-intervals: times, verdicts, metrics, changed settings
        <view>.parquet          a row per key and sub-interval in which something was counted
        <view>.sum.parquet      the same, folded to a row per key
        activity.parquet ...    what was sampled, and its sums (`look_sums.py`)

The digest is computed from the snapshots' digests: a snapshot that was changed, added or deleted gives another folder,
so a stale one is never read. A folder is written under a temporary name and renamed. An hour that grows reuses what it
had. All folders may be deleted: they are computed again, and so is a folder whose files were changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from dbdyno.base.errors import EvidenceError
from dbdyno.base.files import make_inner_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal, quoted
from dbdyno.evidence.files import read_json, write_json
from dbdyno.snapshot.engines.registry import engine
from dbdyno.snapshot.engines.view import Column, Verdict
from dbdyno.snapshot.reading.changed_settings import changed_settings
from dbdyno.snapshot.reading.clock import elapsed_ns
from dbdyno.snapshot.reading.sums import look_sums
from dbdyno.snapshot.reading.sums.batch import Batch
from dbdyno.snapshot.reading.sums.index import VERSION, sampled_rows
from dbdyno.snapshot.reading.sums.indexed_snapshots import IndexedSnapshot
from dbdyno.snapshot.reading.sums.pairwise import Pairwise
from dbdyno.snapshot.reading.sums.total import fold_parts
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.store.integrity import damage
from dbdyno.snapshot.store.parquet import file_checksum, write_query

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.ends import Ends

_KEPT = ("key", "text", "gauge", "counter", "sum")


class Model(dict[str, Any]):
    """The content of `chunk.json`."""


class Shape(dict[str, Any]):
    """The views and metrics of an hour, which are the same for nearly all hours of a target."""


_OPEN: WeakValueDictionary[Path, Model] = WeakValueDictionary()
"""Models in use, by path, so that two intervals over the same hour read it once."""
_SHAPES: WeakValueDictionary[str, Shape] = WeakValueDictionary()
"""Shapes in use, by their text, so that the hours of a month share one shape and do not need 720."""


class Chunk:
    """The sub-intervals that end in one hour; `chain` begins with the snapshot before the first.

    `alone` is a function that makes the interval of two snapshots, for engines that are read pair by pair.
    """

    def __init__(self, folder: Path, chain: Sequence[IndexedSnapshot], alone: Callable[..., Any]) -> None:
        self._alone = alone
        self.chain = chain
        self.parts = [one.number for one in chain[1:]]
        ids = [one.digest for one in chain]
        self.digest = hashlib.blake2b(" ".join([str(VERSION), *ids]).encode(), digest_size=12).hexdigest()
        self.home = folder
        self.folder = folder / self.digest

    @cached_property
    def model(self) -> JsonObject:
        """Return the content of `chunk.json`, which is computed if it does not exist or is damaged."""
        path = self.folder / "chunk.json"
        if path in _OPEN:
            return _OPEN[path]
        if not self.is_cached:
            self._make()
        try:
            model = self._read(path)
        except EvidenceError:
            model = self._read(self._again())
        _OPEN[path] = model
        return model

    def _read(self, path: Path) -> Model:
        """Return the stored model.

        Raises:
            EvidenceError: The model is damaged, or of another version.
        """
        found = read_json(path)
        if not isinstance(found, dict) or found.get("version") != VERSION:
            raise EvidenceError(
                "was not made by dbdyno", where=str(path), next_step="delete the folder; dbdyno creates it again"
            )
        model = Model(found)
        try:
            model |= _shared({name: found[name] for name in ("views", "metrics")})
            model["values"] = _columns_of(found["parts"], [one[0] for one in found["metrics"]])
            model["parts"] = [_small(part) for part in found["parts"]]
        except (TypeError, KeyError, AttributeError, IndexError, ValueError) as error:
            raise EvidenceError(
                "is damaged", where=str(path), next_step="delete the folder; dbdyno creates it again"
            ) from error
        return model

    def _again(self) -> Path:
        """Compute a damaged hour again, and return the path of its model."""
        aside = self.home / f".{self.digest}.{os.getpid()}.torn"
        with contextlib.suppress(OSError):
            self.folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
        self._make()
        return self.folder / "chunk.json"

    def values(self, metric: str) -> dict[int, float]:
        """Return the known values of a metric by the number of the sub-interval."""
        found = self.model["values"].get(metric, ())
        return {number: value for number, value in zip(self._numbers, found, strict=False) if not math.isnan(value)}

    @cached_property
    def _numbers(self) -> list[int]:
        return [one["number"] for one in self.model["parts"]]

    @property
    def is_cached(self) -> bool:
        """Return True if the hour is cached."""
        return (self.folder / "chunk.json").is_file()

    def shape(self, view: str) -> list[list[str]]:
        """Return the columns of a view's rows as they are stored; empty if nothing was counted."""
        found: list[list[str]] = self.model["views"].get(view, [])
        return found

    def columns(self, view: str) -> list[Column]:
        """Return the columns of a view's rows; empty if nothing was counted."""
        return [Column(*one) for one in self.shape(view)]

    def is_empty(self, view: str) -> bool:
        """Return True if it is known that nothing was counted in a view, so that its files have no rows."""
        return bool(self.model.get("counts", {}).get(view) == 0)

    def file(self, view: str, *, folded: bool = False) -> Path:
        """Return the file with the rows of a view; if a file was changed, the hour is computed again."""
        path = self.folder / f"{view}{'.sum' if folded else ''}.parquet"
        if damage(path, self.model.get("sums", {}).get(path.name)) is not None:
            self.model = self._read(self._again())
            _OPEN[self.folder / "chunk.json"] = self.model
        return path

    def _make(self) -> None:
        """Compute what is not cached yet."""
        self._earlier: tuple[Path, JsonObject] | None = self._grown_from()
        done = len(self._earlier[1]["parts"]) if self._earlier else 0
        holder = Store(self.chain[0].store)  # one store for all, so that their columns are read once
        new = [holder.open(one.number) for one in self.chain[done:]]
        at_once = hasattr(engine(self.chain[0].engine), "part_metrics")
        batch = Batch(new) if at_once else Pairwise(new, self._alone)
        aside = self.home / f".{self.digest}.{os.getpid()}"
        try:
            make_inner_folder(self.home, exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            make_inner_folder(aside)
            model = self._write(batch, aside)
            write_json(aside / "chunk.json", model)
            with contextlib.suppress(OSError):  # another report computed it meanwhile
                aside.rename(self.folder)
            self._forget()
        finally:
            batch.close()
            shutil.rmtree(aside, ignore_errors=True)

    def _grown_from(self) -> tuple[Path, JsonObject] | None:
        """Return the cached folder and model of the same hour that hold the beginning of this one, or None."""
        for path in self.home.glob("*/chunk.json"):
            with contextlib.suppress(EvidenceError, KeyError):  # models of earlier versions have no checksums
                found = read_json(path)
                ids = [one.digest for one in self.chain[: len(found.get("ids", ())) or 1]]
                same = found.get("version") == VERSION and found.get("ids") == ids and len(ids) > 1
                if same and all(damage(path.parent / name, known) is None for name, known in found["sums"].items()):
                    return path.parent, found
        return None

    def _forget(self) -> None:
        """Delete earlier caches of this hour, except the one that this cache extends, which may be in use."""
        used = {self.folder, self._earlier[0] if self._earlier else None}
        for path in self.home.iterdir():
            if path not in used and not path.name.startswith("."):
                shutil.rmtree(path, ignore_errors=True)

    def _write(self, batch: Batch, temp_path: Path) -> JsonObject:
        old = self._earlier[1] if self._earlier else {"views": {}, "parts": [], "metrics": []}
        views = {}
        counts = {}
        for view in sorted({*batch.views(), *old["views"]}):
            before = [Column(*one) for one in old["views"].get(view, ())]
            columns, counts[view] = self._write_view(batch, view, temp_path, before)
            if columns:
                views[view] = [[c.name, c.kind, c.unit, c.type] for c in columns]
        samples = [name for name in ("activity", "blocked", "ash") if self._write_samples(batch, name, temp_path)]
        metrics = batch.metrics() if batch.pairs else []
        names = {
            metric.name: [metric.name, metric.label, metric.unit, metric.higher] for row in metrics for metric, _ in row
        }
        known = {one[0]: one for one in old["metrics"]} | names
        parts = [*old["parts"], *(_part(batch, at, metrics[at]) for at in range(len(batch.pairs)))]
        is_looked = bool(parts) and look_sums.write_look_sums(batch.connection, self.chain, parts, temp_path)
        return {
            "version": VERSION,
            "ids": [one.digest for one in self.chain],
            "parts": parts,
            "metrics": list(known.values()),
            "views": views,
            "counts": counts,
            "samples": samples,
            "looked": is_looked,
            "sums": {path.name: file_checksum(path) for path in sorted(temp_path.glob("*.parquet"))},
        }

    def _write_view(self, batch: Batch, view: str, temp_path: Path, before: list[Column]) -> tuple[list[Column], int]:
        """Write the rows of a view and their sums, and return their columns and the number of sums."""
        sources, columns = [], {c.name: c for c in before}
        if before and self._earlier:
            sources.append(f"(from read_parquet({literal(str(self._earlier[0] / f'{view}.parquet'))}))")
        if batch.has(view):
            batch.table(view)
            new = [c for pair in batch.pairs_with(view) for c in pair.after.columns(view) if c.kind in _KEPT]
            columns |= {c.name: c for c in [Column("part", "gauge", "count", "BIGINT"), *new]}
            names = ", ".join(quoted(name) for name in [*dict.fromkeys(["part", *(c.name for c in new)])])
            sources.append(f"(select {names}, life, verdict, why from {quoted(view)})")
        if not sources:
            return [], 0
        path = temp_path / f"{view}.parquet"
        write_query(batch.connection, " union all by name ".join(sources), path)
        kept = list(columns.values())
        folded = fold_parts(f"read_parquet({literal(str(path))})", kept)
        count = write_query(batch.connection, folded, temp_path / f"{view}.sum.parquet")
        return kept, count

    def _write_samples(self, batch: Batch, view: str, temp_path: Path) -> bool:
        """Write what was sampled in the hour to one file, and return True if there was anything."""
        there = sampled_rows(self.chain[1:], view)
        if there:
            write_query(batch.connection, f"from {there}", temp_path / f"{view}.parquet")
        return bool(there)


def _columns_of(parts: Sequence[JsonObject], metrics: Sequence[str]) -> dict[str, array[float]]:
    """Return the values of each metric as an array, NaN where unknown; a month of them as objects takes 150 MB."""
    values = [part.pop("values") for part in parts]
    return {name: array("d", [one.get(name, math.nan) for one in values]) for name in metrics}


def _shared(shape: Mapping[str, Any]) -> JsonObject:
    """Return a shape as the one object that all hours with the same shape share."""
    said = str(shape)
    kept = _SHAPES.get(said)
    if kept is None:
        for columns in shape["views"].values():
            [Column(*one) for one in columns]  # which fails if they are damaged
        kept = _SHAPES[said] = Shape(shape)
    return {**kept, "shape": kept}


_FIELDS = {"number", "at_us", "elapsed_ns", "verdicts", "settings"}
"""Fields of each sub-interval in `chunk.json`."""


def _small(part: Mapping[str, Any]) -> JsonObject:
    """Return a sub-interval in a dict of minimal size; most have no verdicts and no changed settings.

    Raises:
        ValueError: A field is missing.
    """
    if not part.keys() >= _FIELDS:
        raise ValueError(part.keys())
    return {name: value if value != [] else () for name, value in part.items()}


def _part(batch: Batch, at: int, metrics: Sequence[tuple[Any, float | None]]) -> JsonObject:
    """Return what is known about one sub-interval."""
    pair = batch.pairs[at]
    elapsed = elapsed_ns(pair.before, pair.after)
    scopes = {record.get("scope") for record in pair.after.views.values()}
    return {
        "number": pair.after.number,
        "at_us": pair.after.at_ns // 1000,
        "elapsed_ns": elapsed,
        "verdicts": [
            [
                *(scope, value, one.word, one.why, one.at_us, scope in scopes or scope.startswith("view:")),
                *_lost(pair, scope, one, elapsed),
            ]
            for (scope, value), one in pair.verdicts.items()
            if one.word != "ok" or one.why
        ],
        "settings": changed_settings(pair.before, pair.after, pair.query),
        "values": {metric.name: value for metric, value in metrics if value is not None},
    }


def _lost(pair: Ends, scope: str, verdict: Verdict, elapsed: int) -> list[int]:
    """Return a list with the time in ns that was lost by the reset of a bounded table; empty without such a reset."""
    bounded = any(r.get("scope") == scope and r["appearance"] == "entry" for r in pair.after.views.values())
    if verdict.word != "reset" or verdict.at_us is None or not bounded:
        return []
    return [min(max(elapsed - (pair.after.at_ns - verdict.at_us * 1000), 0), elapsed)]


def folder_of(store: Store, target: str) -> Path:
    """Return the folder for the sums of a target."""
    from dbdyno.snapshot.reading.sums.index import FOLDER

    return store.folder / FOLDER / hashlib.blake2b(target.encode(), digest_size=6).hexdigest()
