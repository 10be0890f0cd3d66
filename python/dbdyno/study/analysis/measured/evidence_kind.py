"""Kind of a run's evidence, as its manifest says; the analysis uses this and never the kind of bench."""

from __future__ import annotations

from dbdyno.bench.protocol import EvidenceReading
from dbdyno.evidence.run import Run, type_errors_as_evidence_errors


def reads(run: Run) -> EvidenceReading:
    """Return how the run's evidence is read, as its manifest says."""
    with type_errors_as_evidence_errors("kind of evidence", run.id):
        return EvidenceReading.from_json(run.manifest.reads)


def in_virtual_time(run: Run) -> bool:
    """Return True if the run used a model's time, which no machine disturbs."""
    return reads(run).virtual
