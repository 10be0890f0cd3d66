"""Exception classes of dbdyno: what was expected, what was found, where, and the next step.

Each package raises its own subclass of `Error`. A user of the command line sees `str(error)` and exit code 2, never a
traceback.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator


class Error(Exception):
    """Base class of all errors that a user can cause or encounter.

    `where` names the place (file and line, setting, run folder), `next_step` says what to do.
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


def unknown_name(
    failed: type[Error], noun: str, name: str, known: Collection[str], *, where: str | None = None, prefix: str = ""
) -> Error:
    """Return the error of a name that is neither known nor a file: it suggests the most similar name."""
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {prefix}{near[0]}? " if near else ""
    step = f"{hint}use one of {', '.join(known)}, or name a file as {prefix}./FILE.toml"
    return failed(f"there is no {noun} named {name!r}", where=where, next_step=step)


@contextlib.contextmanager
def errors_as(
    failed: type[Error],
    caught: type[Exception] | tuple[type[Exception], ...],
    problem: str,
    where: str | None = None,
    next_step: str | None = None,
) -> Iterator[None]:
    """Turn an exception raised in the context into an error of class `failed`: the problem, then the exception's text.

    Raises:
        Error: An exception of a class in `caught` was raised.
    """
    try:
        yield
    except caught as error:
        raise failed(f"{problem}: {error}", where=where, next_step=next_step) from error


class PlanError(Error):
    """A plan that cannot be read or cannot be carried out."""


class TargetError(Error):
    """A target that does not answer, denies a privilege, or refuses a setting.

    `unreachable` is True if the target was silent for so long that another attempt now would only wait as long again.
    """

    unreachable = False


class ModelError(Error):
    """A machine, workload or run of the model that is not valid."""


class DeviceError(Error):
    """A device that cannot be mounted, read or unmounted, or a campaign of power cuts that cannot continue."""


class EvidenceError(Error):
    """A run folder, or a part of one, that cannot be read or written."""


class StatsError(Error):
    """An analysis that the evidence does not permit."""


class TraceError(Error):
    """A trace that cannot be read, or a question that it cannot answer."""


class CellsError(Error):
    """Cells that cannot be named, reached or read as a whole; the failure of a single cell is recorded as data."""


class ReportError(Error):
    """A report or figure that cannot be rendered."""


class SnapshotError(Error):
    """A snapshot that cannot be taken, stored or found, or two snapshots that cannot be compared."""


class AdviceError(Error):
    """A request for advice that cannot be met: an unknown rule, or a description of a stack that cannot be read."""


class MoveError(Error):
    """A table that cannot be moved, a job that cannot continue, or files that differ from what was written."""


class WideError(Error):
    """A Cassandra cluster that does not answer, or a map of wide tables or a query over them that is not valid."""


class FlowError(Error):
    """A data flow that cannot be read, or an engine that is missing or refuses it."""
