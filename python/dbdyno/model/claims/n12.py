"""N12: group commit."""

from __future__ import annotations

from dbdyno.model.claims.base import Claim, Part
from dbdyno.model.claims.bench import Bench
from dbdyno.model.claims.n02 import MACHINE, TRANSACTIONS, race


def measure(bench: Bench) -> list[Part]:
    """Commits of 20 sessions over writes of the log writer."""
    per_write = (
        "count(*) filter (event = 'log file sync')"
        " / count(*) filter (event = 'log file parallel write')"
    )
    with bench.run(MACHINE, race()[:1], transactions=TRANSACTIONS) as evidence:
        return [Part("commits a write", evidence.of_arm(per_write, "waits", "off"), 3, 8)]


CLAIM = Claim(
    "N12",
    "20 sessions share a log write by 3 to 8",
    "Harrison 2012 (E9): 551,342 redo writes in one of three cells for 4 million commits, or 4.8",
    measure,
)
