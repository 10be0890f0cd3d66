"""Taking of snapshots: once, or periodically with the sessions sampled in between."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.protocol import Collector, engine_module
from dbdyno.snapshot.engines.registry import engine_of
from dbdyno.snapshot.engines.view import Options, View
from dbdyno.snapshot.sessions.samples import Source, statements_of
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.store.upkeep import tidy_when_due


def open_collector(dsn: str, options: Options) -> Collector:
    """Return the collector for a connection string.

    Raises:
        SnapshotError: The server does not answer.
    """
    return engine_module(engine_of(dsn)).open_collector(dsn, options)


def take(
    collector: Collector,
    store: Store,
    *,
    engine_name: str,
    note: str = "",
    sampled: tuple[list[View], int] | None = None,
    source: Source | None = None,
) -> Snapshot:
    """Take one snapshot into the store.

    `sampled` is what a sampler saw since the last snapshot, and `source` says how the sessions were sampled.
    """
    started, cpu = time.perf_counter(), time.process_time()
    before = store.last(collector.name)
    if sampled is not None:
        collector.wanted_texts = statements_of(sampled[0])
    views = collector.collect(before)
    collected = time.perf_counter()
    cost: JsonObject = {
        "collect_s": collected - started,
        "collect_cpu_s": time.process_time() - cpu,
    }
    cost["own_transactions"] = getattr(collector, "own_transactions", {})
    if source is not None:
        cost |= {"sessions_by": source.by} | ({"not_by_memory": source.why} if source.why else {})
    if sampled is not None:
        views = [*views, *sampled[0]]
        cost["looks"] = sampled[1]
    return store.add(
        views,
        engine=engine_name,
        target=collector.name,
        at_ns=collector.at_ns,
        facts=collector.facts(),
        note=note,
        cost=cost,
        before=before,
    )


def watch(
    dsn: str,
    store: Store,
    options: Options,
    *,
    every_s: float,
    for_s: float | None = None,
    sample_s: float | None = 1.0,
    note: str = "",
    stop: threading.Event | None = None,
) -> Iterator[Snapshot | SnapshotError]:
    """Yield a snapshot now and one per period, until `for_s` is over or `stop` is set, and a last one at the end.

    A failure is yielded too, and watching continues. Sessions are sampled every `sample_s` seconds; never if it is
    None.
    """
    stop = stop or threading.Event()
    name = engine_of(dsn)
    with open_collector(dsn, options) as collector:
        sampler = collector.sampler(sample_s) if sample_s else None
        begun = time.monotonic()
        due = begun
        sampled: tuple[list[View], int] | None = None
        try:
            if sampler is not None:
                sampler.start()
            while True:
                try:
                    source = sampler.source if sampler is not None else None
                    made = take(collector, store, engine_name=name, note=note, sampled=sampled, source=source)
                    sampled = None
                    yield made
                    tidy_when_due(store, made)
                except SnapshotError as error:
                    yield error
                over = for_s is not None and due - begun >= for_s
                if over or stop.is_set():
                    return
                due = max(due + every_s, time.monotonic())
                if for_s is not None:
                    due = min(due, begun + for_s)
                if stop.wait(max(0.0, due - time.monotonic())):
                    due = begun + (for_s or 0)
                if sampler is not None:
                    if stop.is_set() or (for_s is not None and due - begun >= for_s):
                        sampler.stop()
                    sampled = merge_samples(sampled, sampler.take())
        finally:
            if sampler is not None:
                sampler.stop()


def merge_samples(kept: tuple[list[View], int] | None, new: tuple[list[View], int]) -> tuple[list[View], int]:
    """Return the samples that a failed snapshot did not store, followed by the later ones."""
    if kept is None:
        return new
    import dataclasses

    views = []
    for old, later in zip(kept[0], new[0], strict=True):
        views.append(dataclasses.replace(later, rows=old.rows + later.rows))  # type: ignore[operator]
    return views, kept[1] + new[1]
