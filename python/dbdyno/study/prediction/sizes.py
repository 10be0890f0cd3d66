"""Size of a flush, and the time that each KB adds to its waits, from an arm with one session and varying sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.study.prediction.observation import Observation
from dbdyno.study.prediction.slopes import slope

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAGE_BYTES = 8192


def mean_kb(observation: Observation) -> float:
    """Return the mean size of a single session's flush [KB]: its log, plus half a page on either side."""
    redo = observation.calls["redo_bytes"]
    own = redo[redo > 0]
    return (float(own.mean()) + PAGE_BYTES) / 1024.0 if len(own) else 0.0


def per_kb(observation: Observation, event: str) -> tuple[float, float, float] | None:
    """Return the time that a KB of log adds to a wait of a commit [us], with its interval.

    Returns:
        The slope of the wait's time over the log of its commit, with the ends of its interval; None if sizes do not
        differ, or if several sessions share a flush.
    """
    import numpy as np

    waits = observation.waits_for(event)
    commits = np.flatnonzero((observation.calls["kind"] == "commit") & (observation.calls["redo_bytes"] > 0))
    if observation.sessions > 1 or not len(commits):
        return None
    starts: NDArray[np.int64] = observation.calls["started_ns"][commits]
    order = np.argsort(starts)
    commits, starts = commits[order], starts[order]
    begun: NDArray[np.int64] = waits["started_ns"]
    at = np.searchsorted(starts, begun, side="right") - 1
    inside = (at >= 0) & (begun <= (starts + observation.calls["elapsed_ns"][commits])[at])
    kb = observation.calls["redo_bytes"][commits][at[inside]] / 1024.0
    return slope(kb, waits["elapsed_ns"][inside] / 1e3)
