"""A day of complete hours on disk: what a long interval needs from it, so that a month opens 30 days and not 720 hours.

    sums/<target>/<day>/<digest>/
        day.json              duration, verdicts, events, how often a session was idle in a transaction
        sessions.parquet      a row per combination of what an active session was and did, with how often it was seen
        minutes.parquet       how often each wait event was seen in each minute
        transactions.parquet  the longest open transactions
        horizons.parquet      the transactions that held back vacuum
        looks.parquet         a row per combination of what any session was and did, with how often it was seen
        <view>.sum.parquet    the rows of the hours' files of the same name, in their order
        <view>.parquet        the same for a view with few rows

As for hours, the digest is computed from what the day was made of, a folder is written under a temporary name and
renamed, and all folders may be deleted. `reading/days.py` makes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.files import read_json
from dbdyno.snapshot.engines.view import Column
from dbdyno.snapshot.reading.sums.chunk import Chunk
from dbdyno.snapshot.reading.sums.index import VERSION
from dbdyno.snapshot.store.integrity import damage

NAME = "day.json"
DAY_VERSION = 2
SESSIONS, MINUTES, TRANSACTIONS = "sessions.parquet", "minutes.parquet", "transactions.parquet"
LOOKS, HORIZONS = "looks.parquet", "horizons.parquet"
LOOK_COLUMNS = "session, kind, state, statement, event_type, event"
"""Columns that distinguish the rows of `LOOKS`, which cover all sessions."""
_SAMPLED = {SESSIONS, MINUTES, TRANSACTIONS, LOOKS, HORIZONS}
_KEYS = {"parts": int, "elapsed_ns": int, "verdicts": list, "events": list, "sampled": bool, "idle": int}
_KEYS |= {"rows": dict, "sums": dict, "views": dict, "few": list}


class Day:
    """A day with its hours, none of which may grow any more."""

    def __init__(self, home: Path, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        said = " ".join([str(VERSION), str(DAY_VERSION), *(one.digest for one in chunks)])
        self.home = home
        self.folder = home / hashlib.blake2b(said.encode(), digest_size=12).hexdigest()

    @property
    def first(self) -> int:
        """Return the number of the snapshot before the day's first sub-interval."""
        return self.chunks[0].chain[0].number

    @property
    def last(self) -> int:
        """Return the number of the day's last snapshot."""
        return self.chunks[-1].parts[-1]

    @cached_property
    def model(self) -> JsonObject | None:
        """Return the content of `day.json`, or None if the day is not cached, or its files were changed."""
        path = self.folder / NAME
        if not path.is_file():
            return None
        try:
            found = read_json(path)
        except EvidenceError:
            return None
        if not isinstance(found, dict) or not all(isinstance(found.get(name), kind) for name, kind in _KEYS.items()):
            return None
        known = _SAMPLED if found["sampled"] else set()
        whole = known <= found["sums"].keys() and all(
            damage(self.folder / name, known) is None for name, known in found["sums"].items()
        )
        return found if whole else None

    def hours_without(self, view: str) -> list[Chunk]:
        """Return the hours in which nothing was sampled for a view, as far as that is cached."""
        counts = (self.model or {}).get("rows", {}).get(view, ())
        return [chunk for chunk, count in zip(self.chunks, counts, strict=False) if not count]

    def shape(self, view: str) -> list[list[str]]:
        """Return the columns of a view's rows as they are stored; empty if the day has no file of them."""
        found: list[list[str]] = (self.model or {}).get("views", {}).get(view, [])
        return found

    def columns(self, view: str) -> list[Column]:
        """Return the columns of a view's rows; empty if the day has no file of them."""
        return [Column(*one) for one in self.shape(view)]

    def has(self, view: str, *, folded: bool) -> bool:
        """Return True if the day has a file that replaces the hours' files of a view, folded or by sub-interval."""
        return bool(self.shape(view)) and (folded or view in (self.model or {})["few"])

    def file(self, view: str, *, folded: bool) -> Path:
        """Return the file with the rows of a view."""
        return self.path(f"{view}{'.sum' if folded else ''}.parquet")

    @property
    def is_cached(self) -> bool:
        """Return True if the day is cached, without checking its files."""
        return (self.folder / NAME).is_file()

    @property
    def is_sampled(self) -> bool:
        """Return True if the sums of the day's sampled sessions are cached and may replace the samples."""
        return self.model is not None and bool(self.model["sampled"])

    def path(self, name: str) -> Path:
        """Return the path of one of the day's files."""
        return self.folder / name
