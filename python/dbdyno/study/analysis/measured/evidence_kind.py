"""Kind of a run's evidence according to its manifest, which the analysis uses instead of the kind of bench."""

from __future__ import annotations

from dbdyno.bench.protocol import EvidenceReading
from dbdyno.evidence.run import Run, type_errors_as_evidence_errors


def reads(run: Run) -> EvidenceReading:
    """Return the manifest's description of how the run's evidence is read."""
    with type_errors_as_evidence_errors("kind of evidence", run.id):
        return EvidenceReading.from_json(run.manifest.reads)


def in_virtual_time(run: Run) -> bool:
    """Return True if the run used a model's virtual time, which nothing on this machine can disturb."""
    return reads(run).virtual
