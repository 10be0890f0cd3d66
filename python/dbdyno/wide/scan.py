"""Execution of a scan: its statements in parallel, page by page, into Arrow batches.

A few threads query; a bounded queue holds pages that are not taken yet, so a slow consumer slows the nodes down and
memory stays constant. If the consumer stops, the threads stop. Token ranges follow the ring; their number is derived
from `system.size_estimates`.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.errors import WideError
from dbdyno.wide.address import failure
from dbdyno.wide.decode import Decoder
from dbdyno.wide.pushdown import Scan

PAGE_ROWS = 5000
WORKERS = 3
WAITING_PAGES = 6
"""Largest number of pages waiting to be taken."""
RANGE_BYTES = 32 << 20
RANGES_MOST = 4096
LOW, HIGH = -(1 << 63), (1 << 63) - 1
MURMUR = "Murmur3Partitioner"
_LOOK_S = 0.1


@dataclass
class ScanProgress:
    """What a scan has read so far: rows, bytes on the wire (of everything queried meanwhile), and statements."""

    rows: int = 0
    bytes: int = 0
    statements: int = 0


class Meter:
    """Counter of the bytes that a session receives."""

    def __init__(self) -> None:
        self.bytes = 0

    def handler(self) -> Any:
        """Return a protocol handler class for the driver that counts bytes."""
        from cassandra.protocol import ProtocolHandler

        def decode_message(cls: Any, *given: Any) -> Any:
            self.bytes += sum(len(one) for one in given if isinstance(one, bytes))
            return ProtocolHandler.decode_message.__func__(cls, *given)

        return type("Counting", (ProtocolHandler,), {"decode_message": classmethod(decode_message)})


def token_ranges(session: Any, keyspace: str, table: str) -> list[tuple[int, int]]:
    """Return token ranges (from, to] that cover all tokens, each with about `RANGE_BYTES` of data.

    Raises:
        WideError: The nodes do not use the Murmur3 partitioner.
    """
    found = session.execute("select partitioner from system.local").one()[0]
    if not found.endswith(MURMUR):
        raise WideError(
            f"the cluster's partitioner is {found}",
            next_step=f"use a cluster with {MURMUR}: only its token ranges can be read",
        )
    ring = session.cluster.metadata.token_map.ring
    edges = sorted({LOW, HIGH, *(int(one.value) for one in ring)})
    rows = session.execute(
        "select mean_partition_size, partitions_count from system.size_estimates"
        " where keyspace_name = %s and table_name = %s",
        [keyspace, table],
    )
    size = sum(mean * count for mean, count in rows)
    pieces = max(2 * WORKERS, min(RANGES_MOST, size // RANGE_BYTES))
    return split_ranges(edges, int(pieces))


def split_ranges(edges: Sequence[int], pieces: int) -> list[tuple[int, int]]:
    """Cut the ranges between adjacent edges into at least `pieces` ranges of about equal width."""
    width = max(1, (edges[-1] - edges[0]) // pieces)
    found = []
    for low, high in itertools.pairwise(edges):
        parts = max(1, -(-(high - low) // width))
        cuts = [low + (high - low) * part // parts for part in range(parts + 1)]
        found += [pair for pair in itertools.pairwise(cuts) if pair[0] < pair[1]]
    return found


def statement_parameters(session: Any, keyspace: str, scan: Scan) -> list[tuple[Any, ...]]:
    """Return the parameter values of each statement of a scan."""
    partitions = scan.statement.partitions
    firsts = token_ranges(session, keyspace, scan.table.name) if partitions is None else partitions
    return [(*first, *scan.statement.values) for first in firsts]


def read(session: Any, where: str, asked: Sequence[tuple[Any, ...]], scan: Scan, count: ScanProgress) -> Iterator[Any]:
    """Yield the Arrow batches of a scan as they arrive, updating `count`.

    Raises:
        WideError: A statement failed, or a value cannot be converted.
    """
    decoder = Decoder(scan)
    if not asked:
        return
    prepared = session.prepare(scan.statement.cql)
    prepared.fetch_size = PAGE_ROWS
    prepared.is_idempotent = True
    with Pages(session, prepared, asked) as pages:
        for rows in pages:
            if isinstance(rows, Exception):
                raise rows if isinstance(rows, WideError) else failure(rows, where)
            count.rows += len(rows)
            count.statements = pages.statements
            yield decoder.batch(rows)


class Pages:
    """Iterator over the pages of rows that many statements return; it also holds the error that ended them."""

    def __init__(self, session: Any, prepared: Any, asked: Sequence[tuple[Any, ...]]) -> None:
        self._session, self._prepared = session, prepared
        self._left = iter(asked)
        self._lock = threading.Lock()
        self._ready: queue.Queue[Any] = queue.Queue(WAITING_PAGES)
        self._stop = threading.Event()
        self.statements = 0
        count = min(WORKERS, len(asked))
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]

    def __enter__(self) -> Pages:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)

    def __iter__(self) -> Iterator[Any]:
        working = len(self._threads)
        while working:
            found = self._ready.get()
            if found is None:
                working -= 1
            else:
                yield found

    def _take_range(self) -> tuple[Any, ...] | None:
        with self._lock:
            self.statements += 1
            found = next(self._left, None)
            self.statements -= found is None
            return found

    def _work(self) -> None:
        try:
            while not self._stop.is_set() and (values := self._take_range()) is not None:
                answer = self._session.execute(self._prepared, values)
                while True:
                    rows = answer.current_rows
                    self._put(list(rows))
                    if not answer.has_more_pages or self._stop.is_set():
                        break
                    answer.fetch_next_page()
        except Exception as error:  # any error that ends a thread is passed to the consumer
            self._put(error)
        finally:
            self._put(None)

    def _put(self, found: Any) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put(found, timeout=_LOOK_S)
                return
