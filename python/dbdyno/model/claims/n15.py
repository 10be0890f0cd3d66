"""N15: shares of resource management."""

from __future__ import annotations

from dbdyno.model.claims.base import Claim, Part
from dbdyno.model.claims.bench import Bench


def measure(bench: Bench) -> list[Part]:
    """Nothing: see the notes."""
    del bench
    return []


CLAIM = Claim(
    "N15",
    "IORM shares 10 : 4 give 71 : 29 under contention",
    "Expert Oracle Exadata, ch. 7",
    measure,
    (
        "Not measured here: a run has one database, and shares need two. The cells' own test"
        " (crates/dyno-model/tests/iorm.rs) holds 71 : 29 to 1 %.",
    ),
)
