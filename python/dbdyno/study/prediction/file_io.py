"""Reads and writes of an arm's files, by the statement that waited for them.

A wait belongs to the call of its session during which it took place. The recorder knows processes, whereas the load
generator knows sessions, so a process is assigned to the session whose calls contain most of its waits. The waits are
then subtracted from the times of the calls, so that CPU, delays, locks and flushes remain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

DATA_READ, DATA_WRITE = "IO:DataFileRead", "IO:DataFileWrite"
TEMP_READ, TEMP_WRITE = "IO:BufFileRead", "IO:BufFileWrite"
EVENTS = {"reads": DATA_READ, "writes": DATA_WRITE, "temp_reads": TEMP_READ, "temp_writes": TEMP_WRITE}
"""Wait events for files, by the key under which a statement counts them."""
SLACK_NS = 20_000
"""Time by which a wait can seem to end after its call [ns], because their clocks are not read at the same time."""
COUNTS_MOST = 64
"""Maximum number of values in a distribution of waits per execution; if there are more, neighbours are combined."""


@dataclass(frozen=True)
class Size:
    """A table or index: its rows (0 for an index) and its bytes."""

    rows: float
    size_bytes: float


@dataclass(frozen=True)
class FileIo:
    """Waits for files within the calls of an arm.

    Attributes:
        call: Index of the call that contains each wait.
        event: Wait event of each wait.
        started_ns: Start of each wait [ns].
        elapsed_ns: Length of each wait [ns].
    """

    call: Ints
    event: NDArray[np.object_]
    started_ns: Ints
    elapsed_ns: Ints

    def waits_for(self, event: str) -> FileIo:
        """Return the waits for one event."""
        own = self.event == event
        return FileIo(self.call[own], self.event[own], self.started_ns[own], self.elapsed_ns[own])

    def counts(self, event: str, calls: Ints) -> dict[str, list[float]] | None:
        """Return the distribution of the number of waits for an event per execution; None if no execution had any.

        Args:
            event: The event.
            calls: Indexes of the executions.
        """
        import numpy as np

        own = self.waits_for(event)
        by_call = np.bincount(own.call, minlength=int(calls.max()) + 1 if len(calls) else 0)[calls]
        if not len(calls) or not by_call.any():
            return None
        numbers, shares = _few(by_call)
        return {"count": numbers, "share": [round(share / len(calls), 8) for share in shares]}


def no_file_io() -> FileIo:
    """Return the `FileIo` of an arm that never waits for files."""
    import numpy as np

    none = np.array([], dtype=np.int64)
    return FileIo(none, np.array([], dtype=object), none, none)


def _few(counts: Ints) -> tuple[list[float], list[float]]:
    """Return at most `COUNTS_MOST` different numbers and the frequency of each, with nearly the same mean."""
    import numpy as np

    numbers, times = np.unique(counts, return_counts=True)
    if len(numbers) <= COUNTS_MOST:
        return [int(one) for one in numbers], [float(one) for one in times]
    parts = [part for part in np.array_split(np.sort(counts), COUNTS_MOST) if len(part)]
    return [round(float(part.mean())) for part in parts], [float(len(part)) for part in parts]


def file_io(calls: JsonObject, waits: JsonObject) -> FileIo:
    """Return the waits for files that are within calls; the calls must be in order of session and time."""
    import numpy as np

    own = np.isin(waits["event"], list(EVENTS.values()))
    pids, started, elapsed = (waits[name][own] for name in ("session", "started_ns", "elapsed_ns"))
    call = np.full(len(started), -1, dtype=np.int64)
    trips = _trips(calls)
    for pid in np.unique(pids):
        mine = np.flatnonzero(pids == pid)
        sessions = [_within(calls, rows, started[mine], elapsed[mine]) for rows in trips]
        if sessions:
            call[mine] = max(sessions, key=lambda found: int((found >= 0).sum()))
    known = call >= 0
    return FileIo(call[known], waits["event"][own][known], started[known], elapsed[known])


def _trips(calls: JsonObject) -> list[Ints]:
    """Return the indexes of the round trips of each session; for a script with one statement, of its transactions."""
    import numpy as np

    found = []
    for session in np.unique(calls["session"]):
        rows = np.flatnonzero(calls["session"] == session)
        trips = rows[calls["kind"][rows] != "transaction"]
        found.append(trips if len(trips) else rows)
    return found


def _within(calls: JsonObject, rows: Ints, started: Ints, elapsed: Ints) -> Ints:
    """Return, for each wait, which of these rows of a session is the call that contains it; -1 if none does."""
    import numpy as np

    begun: Ints = calls["started_ns"][rows]
    order = np.argsort(begun, kind="stable")
    rows, begun = rows[order], begun[order]
    at = np.searchsorted(begun, started, side="right") - 1
    ends = begun + calls["elapsed_ns"][rows] + SLACK_NS
    inside = (at >= 0) & (started + elapsed <= ends[at])
    found: Ints = np.where(inside, rows[at], -1)
    return found


def without_file_waits(calls: JsonObject, io: FileIo) -> JsonObject:
    """Return the calls, transactions included, with their waits for files subtracted from their times."""
    import numpy as np

    if not len(io.call):
        return calls
    spent = np.bincount(io.call, weights=io.elapsed_ns, minlength=len(calls["elapsed_ns"]))
    whole = np.flatnonzero((calls["kind"] == "transaction") & (spent == 0))
    for session in np.unique(calls["session"][whole]):
        own = whole[calls["session"][whole] == session]
        mine = calls["session"][io.call] == session
        at = _within(calls, own, io.started_ns[mine], io.elapsed_ns[mine])
        np.add.at(spent, at[at >= 0], io.elapsed_ns[mine][at >= 0])
    left = np.maximum(calls["elapsed_ns"] - spent.astype(np.int64), 1_000)
    return {**calls, "elapsed_ns": left}


def rows_of(calls: JsonObject, statement: str, kind: str) -> Ints:
    """Return the indexes of a statement's calls; of all transactions if `kind` is `transaction`.

    A script with a single statement is timed as a transaction.
    """
    import numpy as np

    own = calls["kind"] == kind
    if kind != "transaction":
        own &= calls["statement"] == statement
    found: Ints = np.flatnonzero(own)
    return found
