"""Counters of one table or index in an arm, and the number of transactions that they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.evidence.run import Block


@dataclass(frozen=True)
class ObjectCounters:
    """A table or an index: its counters per transaction (`per`), and their last values (`last`)."""

    per: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    @property
    def net_rows(self) -> float:
        """Return the rows inserted minus those deleted, as counted by the server.

        Unlike the number of live rows, it never counts a row twice.
        """
        return self.last.get("n_tup_ins", 0.0) - self.last.get("n_tup_del", 0.0)


def transactions(blocks: Sequence[Block], number: int) -> int:
    """Return how many transactions the arm numbered `number` ran in these blocks."""
    return sum(own["transactions"] for block in blocks for own in block.report["arms"] if own["arm"] == number)
