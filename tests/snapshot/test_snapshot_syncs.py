"""WAL syncs that become slow, in synthetic snapshots of version 18: with a steady load, and beside a slow minute."""

from __future__ import annotations

from pathlib import Path

from made_store import MadeServer, counters

from dbdyno.base.json_types import JsonObject, TableRow
from dbdyno.judge.snapshots import compare
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.names import find
from dbdyno.snapshot.reading.periods import period
from dbdyno.snapshot.report import report

SLOW = "syncs of the WAL became slow"


class Synced(MadeServer):
    """A server that counts its syncs as version 18 does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.fsyncs, self.fsync_ms = 0, 0.0

    def views(self) -> list[View]:
        keys = tuple(Column(name, "key", "text", "VARCHAR") for name in ("backend_type", "object", "context"))
        rows = [
            ("client backend", "wal", "normal", self.fsyncs, self.fsync_ms),
            ("checkpointer", "relation", "n", 9, 1.0),
        ]
        shown = (*keys, *counters(("fsyncs", "fsync_time")))
        return [*super().views(), View("pg_stat_io", "shared", shown, rows, appearance="fixed")]

    def minute(self, sync_ms: float) -> int:
        """Add 600 commits with the same statement times, whatever a sync takes; return the snapshot's number."""
        self.call(1, 600, 60.0)
        self.fsyncs += 600
        self.fsync_ms += 600 * sync_ms
        return self.step().number


def heads(server: Synced, before: list[float], after: list[float]) -> list[TableRow]:
    """Return the first section of a comparison of these minutes, and of a report over all."""
    numbers = [server.minute(before[0]), *(server.minute(ms) for ms in (*before, *after))]
    cut = numbers[len(before)]
    store = server.store
    periods = [period(store, f"snap:{a}..{b}") for a, b in ((numbers[0], cut), (cut, numbers[-1]))]
    with Interval(store, find(store, str(numbers[0])), find(store, str(numbers[-1]))) as interval:
        return [compare(store, *periods)["sections"][0], report(interval)["sections"][0]]


def named(head: JsonObject) -> list[str]:
    return [row["what"] for table in head["tables"] for row in table["rows"]]


def test_a_slow_minute_before_does_not_hide_a_storage_that_became_slow(tmp_path: Path) -> None:
    found = heads(Synced(tmp_path / "snaps"), [5, 5, 5, 180], [60, 60, 60, 60])
    assert [named(head) for head in found] == [[SLOW], [SLOW]]
    assert found[0]["tables"][0]["rows"][0]["evidence"].startswith("a sync took 5 ms → 60 ms")


def test_a_slow_minute_is_no_storage_that_became_slow(tmp_path: Path) -> None:
    assert all(SLOW not in named(head) for head in heads(Synced(tmp_path / "snaps"), [5, 5, 5, 5], [5, 200, 5, 5]))
