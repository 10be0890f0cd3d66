"""A planted cause: the same load before and after it, with snapshots in between, and the cause that is named first."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.base.json_types import JsonObject
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector, take

PARTS = 3
"""Sub-intervals before the cause, and after it."""


class Planted:
    """Two periods of one load with a cause between them, cut into short sub-intervals. `pause_s` is the time until a
    session's work is counted.
    """

    def __init__(self, engine: str, dsn: str, store: Store, options: Options, *, pause_s: float = 0.02) -> None:
        self.engine = engine
        self.dsn = dsn
        self.store = store
        self.options = options
        self.pause_s = pause_s

    def first_causes(
        self,
        load: Callable[[], object],
        plant: Callable[[], object] = lambda: None,
        after: Callable[[], object] | None = None,
        *,
        sampled: bool = False,
    ) -> list[str]:
        """Return the first cause named by the comparison, and by the report."""
        heads = [one["sections"][0] for one in self.models(load, plant, after, sampled=sampled)]
        for head in heads:
            print(head["about"], head["notes"], *(row for table in head["tables"] for row in table["rows"]), sep="\n")
        return [head["tables"][0]["rows"][0]["what"] if head["tables"] else "nothing" for head in heads]

    def models(
        self,
        load: Callable[[], object],
        plant: Callable[[], object],
        after: Callable[[], object] | None,
        *,
        sampled: bool,
    ) -> tuple[JsonObject, JsonObject]:
        """Return the comparison of the periods before and after, and the report over both."""
        numbers = self._snapshots(load, plant, after or load, sampled)
        store = self.store
        ends = ((numbers[0], numbers[PARTS]), (numbers[PARTS], numbers[-1]))
        periods = [period(store, f"snap:{a}..{b}") for a, b in ends]
        with Interval(store, find(store, str(numbers[0])), find(store, str(numbers[-1]))) as interval:
            return compare(store, *periods), report(interval)

    def _snapshots(
        self, load: Callable[[], object], plant: Callable[[], object], after: Callable[[], object], sampled: bool
    ) -> list[int]:
        numbers = []
        with open_collector(self.dsn, self.options) as collector:
            sampler = collector.sampler(0.02)
            if sampled:
                sampler.start()
            try:
                load()
                for step in range(2 * PARTS + 1):
                    if step == PARTS + 1:
                        plant()
                    if step:
                        (load if step <= PARTS else after)()
                    time.sleep(self.pause_s)
                    numbers.append(self._take(collector, sampler.take() if sampled else None))
            finally:
                if sampled:
                    sampler.stop()
        return numbers

    def _take(self, collector: Any, seen: Any) -> int:
        """Take a snapshot, with a second try if a restart interrupts the first; return its number."""
        try:
            return take(collector, self.store, engine_name=self.engine, sampled=seen).number
        except SnapshotError:
            return take(collector, self.store, engine_name=self.engine, sampled=seen).number
