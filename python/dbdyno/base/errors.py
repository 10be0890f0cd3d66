"""The one error family: what was expected, what was found, where, and the next step.

Each room raises its own kind; a command line user sees `str(error)` and exit code 2, never a
traceback.
"""

from __future__ import annotations


class Error(Exception):
    """Root of all errors that a user can cause or meet.

    `where` names the place (file and line, setting, run folder); `next_step` says what to do.
    """

    def __init__(self, message: str, *, where: str | None = None, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.next_step = next_step

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        step = f"\n  next: {self.next_step}" if self.next_step else ""
        return f"{place}{self.message}{step}"


class PlanError(Error):
    """A plan that cannot be read or cannot be carried out."""


class TargetError(Error):
    """A target that does not answer, lacks a right, or refuses a setting."""


class ModelError(Error):
    """A machine, a workload or a run of the model that cannot be."""


class EvidenceError(Error):
    """A run folder or one of its parts that cannot be read or written."""


class StatsError(Error):
    """An analysis that the evidence does not allow."""


class TraceError(Error):
    """A trace that cannot be read, or a question that it cannot answer."""


class CellsError(Error):
    """Cells that cannot be named, reached or read as a whole; one cell's failure is data."""


class ReportError(Error):
    """A report or figure that cannot be rendered."""


class SnapshotError(Error):
    """A snapshot that cannot be taken, stored or found, or two that cannot be compared."""


class AdviceError(Error):
    """Something that cannot be advised on: no such rule, a description of a stack that cannot be read."""


class MoveError(Error):
    """A table that cannot be moved, a job that cannot go on, or files that are not what was written."""


class WideError(Error):
    """A Cassandra that does not answer, a map of wide tables or a question over them that cannot be."""


class FlowError(Error):
    """A data flow that cannot be read, or an engine that is not there or refuses it."""
