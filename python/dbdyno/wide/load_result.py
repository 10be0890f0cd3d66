"""Result of a load, by statements or by SSTables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class LoadResult:
    """Result of a load.

    `resumed` counts rows written by an earlier process, `repeated` those written again because a restarted node may
    have lost them. For a load by SSTables, `tables` is the number of SSTables and `checked` the number of partitions
    queried afterwards.
    """

    rows: int = 0
    written: int = 0
    partitions: int = 0
    batches: int = 0
    retries: int = 0
    resumed: int = 0
    repeated: int = 0
    elapsed_ns: int = 0
    tables: int = 0
    streamed_ns: int = 0
    checked: int = 0

    def sentences(self) -> Iterator[str]:
        """Yield the result as sentences."""
        how = f"{self.tables:,} SSTables" if self.tables else f"{self.batches:,} batches, {self.retries:,} retries"
        yield f"{self.rows:,} rows; {self.partitions:,} partitions, {how}."
        if self.resumed:
            yield f"{self.resumed:,} rows had been acknowledged before; all had the same timestamp."
        if self.repeated:
            since = "a node was started since then, or this is unknown"
            yield f"{self.repeated:,} of them were written again: {since}; it may have lost them."
        rate = self.written / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0
        yield f"{self.elapsed_ns / 1e9:.3g} s of writing, {rate:,.0f} rows/s."
        once = "each key occurs once, static columns have one value per partition"
        if self.tables:
            yield f"This includes {self.streamed_ns / 1e9:.3g} s of streaming the SSTables to the nodes."
            yield f"Proved: {once}, every node took its files, and {self.checked:,} requested partitions were there."
        else:
            yield f"Proved: {once}, each write was acknowledged."
