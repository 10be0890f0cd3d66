"""How a run's evidence is read, as its manifest says: the analysis asks this, never what kind of bench it was."""

from __future__ import annotations

from dbdyno.bench.protocol import Reads
from dbdyno.evidence.run import Run, reading


def reads(run: Run) -> Reads:
    """How the run's evidence is read, as its manifest says."""
    with reading("kind of evidence", run.id):
        return Reads.from_json(run.manifest.reads)


def in_virtual_time(run: Run) -> bool:
    """Whether the run passed in a model's time, which no machine disturbs."""
    return reads(run).virtual
