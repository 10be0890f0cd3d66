"""Cached days of a store: sums over complete days, which intervals of more than a day read instead of the samples.

for day in cache_days(interval.sums): ...       # those that are not cached yet
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.files import make_inner_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.base.sql_text import literal
from dbdyno.evidence.files import write_json
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.long_timeline import long_events
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.reading.sums.chunk import Chunk
from dbdyno.snapshot.reading.sums.day import HORIZONS, LOOK_COLUMNS, LOOKS, MINUTES, NAME, SESSIONS, TRANSACTIONS, Day
from dbdyno.snapshot.sessions.active import (
    MINUTE_US,
    STATEMENT_TYPES,
    TRANSACTIONS_KEPT,
    active_rows,
    horizon_holders,
    idle_rows,
    longest_transactions,
    other_rows,
)
from dbdyno.snapshot.sessions.samples import SEEN, activity_columns
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.store.parquet import file_checksum, write_query

RARE_VIEWS = ("blocked",)
"""Sampled views that have no row in most hours."""
FEW_ROWS = 4
"""Largest number of rows per sub-interval up to which a view's rows are copied into the day as well."""
KEYS = "session, datname, usename, application, client, statement, event_type, event"
"""Columns that distinguish rows of active sessions, besides their time."""


def cache_days(sums: Chain, limit: int | None = None) -> Iterator[Day]:
    """Cache the days within a chain that are not cached yet, at most `limit`, the latest first, and yield each.

    Nothing is cached for a store that cannot be written.
    """
    lacking = [one for one in reversed(sums.whole_days) if one.model is None]
    for day in lacking[:limit]:
        make_day(sums.store, day)
        yield day
    if lacking:
        sums.forget_days()


def make_day(store: Store, day: Day) -> None:
    """Write the sums of a day."""
    aside = day.home / f".{day.folder.name}.{os.getpid()}"
    try:
        make_inner_folder(day.home, exist_ok=True)
        shutil.rmtree(aside, ignore_errors=True)
        make_inner_folder(aside)
        with Interval(store, store.open(day.first), store.open(day.last)) as interval:
            model = _model(interval) | _sampled(interval, aside) | _views(interval, aside)
        model["sums"] = {path.name: file_checksum(path) for path in sorted(aside.glob("*.parquet"))}
        write_json(aside / NAME, model)
        shutil.rmtree(day.folder, ignore_errors=True)  # damaged: a whole one is not made again
        with contextlib.suppress(OSError):  # another process made it meanwhile
            aside.rename(day.folder)
        for path in day.home.iterdir():
            if path != day.folder and not path.name.startswith("."):
                shutil.rmtree(path, ignore_errors=True)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _model(interval: Interval) -> JsonObject:
    parts = list(interval.sums.parts())
    return {
        "parts": len(parts),
        "elapsed_ns": sum(one["elapsed_ns"] for one in parts),
        "verdicts": [[one["elapsed_ns"], one["verdicts"]] for one in parts if one["verdicts"]],
        "events": long_events(interval),
        "rows": {view: [_rows(interval, chunk, view) for chunk in interval.sums.chunks] for view in RARE_VIEWS},
    }


def _rows(interval: Interval, chunk: Chunk, view: str) -> int:
    """Return the number of rows that were sampled for a view in an hour."""
    if view not in chunk.model["samples"]:
        return 0
    return int(interval.query(f"select count(*) as n from read_parquet({literal(str(chunk.file(view)))})")[0]["n"])


def _sampled(interval: Interval, temp_path: Path) -> JsonObject:
    """Write the sums of sampled sessions and return the part of `day.json` that describes them.

    `sampled` is False if rows have times outside of the day, or the clock was set: then the samples themselves have to
    be read.
    """
    nothing: JsonObject = {"sampled": False, "idle": 0}
    if interval.before.engine not in STATEMENT_TYPES or interval.inside == "true":
        return nothing
    source, _ = interval.samples("activity", activity_columns(STATEMENT_TYPES[interval.before.engine]))
    strays = interval.query(f"select count(*) as n from {source} where not ({interval.inside})")[0]["n"]
    if strays:
        return nothing
    interval.connection.execute(f"create temp table active_ as from {source} where {active_rows(interval)}")
    seen = f"sum({SEEN})::bigint as seen from active_ group by all order by all"
    queries = {
        LOOKS: f"select {LOOK_COLUMNS}, sum({SEEN})::bigint as seen from {source} where {other_rows(interval)}"
        " group by all order by all",
        SESSIONS: f"select {KEYS}, {seen}",
        MINUTES: f"select at_us // {MINUTE_US} * {MINUTE_US} as at_us, event_type, event, {seen}",
        TRANSACTIONS: longest_transactions(interval, source, 0, TRANSACTIONS_KEPT),
        HORIZONS: horizon_holders(interval, source, TRANSACTIONS_KEPT),
    }
    for name, query in queries.items():
        write_query(interval.connection, query, temp_path / name)
    idle = interval.query(f"select coalesce(sum({SEEN}), 0) as n from {source} where {idle_rows(interval)}")[0]["n"]
    return {"sampled": True, "idle": int(idle)}


def _views(interval: Interval, temp_path: Path) -> JsonObject:
    """Write the rows of the hours' files, one file for each view whose columns are the same in all hours.

    The rows are not added up: sums of floats would depend on which hours are read by day.
    """
    chunks = interval.sums.chunks
    views: JsonObject = {}
    few = []
    for view in sorted({view for chunk in chunks for view in chunk.model["views"]}):
        known = [chunk for chunk in chunks if chunk.shape(view)]
        if any(chunk.shape(view) != known[0].shape(view) for chunk in known):
            continue
        views[view] = known[0].shape(view)
        write_query(interval.connection, f"from {_files(known, view, folded=True)}", temp_path / f"{view}.sum.parquet")
        rows = f"from {_files(known, view, folded=False)}"
        if interval.query(f"select count(*) as n {rows}")[0]["n"] <= FEW_ROWS * sum(
            len(chunk.parts) for chunk in chunks
        ):
            few.append(view)
            write_query(interval.connection, rows, temp_path / f"{view}.parquet")
    return {"views": views, "few": few}


def _files(chunks: list[Chunk], view: str, *, folded: bool) -> str:
    return f"read_parquet([{', '.join(literal(str(one.file(view, folded=folded))) for one in chunks)}])"
