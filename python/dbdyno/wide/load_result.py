"""What a load did: by rows, or as SSTables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Loaded:
    """What a load did. `resumed`: rows that an earlier process had written, `repeated`: those written again, since a
    node that was started since may have lost them; `tables`: SSTables of the direct way,
    `checked`: partitions that were asked for after it."""

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
        """In words."""
        how = f"{self.tables:,} SSTables" if self.tables else f"{self.batches:,} batches, {self.retries:,} retries"
        yield f"{self.rows:,} rows; {self.partitions:,} partitions, {how}."
        if self.resumed:
            yield f"{self.resumed:,} rows were acknowledged before; all had the same timestamp."
        if self.repeated:
            since = "a node was started since, or none tells"
            yield f"{self.repeated:,} of them were written again: {since}, and may have lost them."
        rate = self.written / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0
        yield f"{self.elapsed_ns / 1e9:.3g} s of writing, {rate:,.0f} rows/s."
        once = "keys are there once, static columns have one value in a partition"
        if self.tables:
            yield f"Of it {self.streamed_ns / 1e9:.3g} s are streaming the SSTables to the nodes."
            yield f"Proved: {once}, every node took its files, and {self.checked:,} partitions asked for were there."
        else:
            yield f"Proved: {once}, each write was acknowledged."
