"""What a load did: by rows, or as SSTables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Loaded:
    """What a load did. `resumed`: rows that an earlier process had written; `tables`: SSTables of the direct way,
    `checked`: partitions that were asked for after it."""

    rows: int = 0
    written: int = 0
    partitions: int = 0
    batches: int = 0
    retries: int = 0
    resumed: int = 0
    elapsed_ns: int = 0
    tables: int = 0
    streamed_ns: int = 0
    checked: int = 0
