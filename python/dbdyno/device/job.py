"""Reads or writes of a measurement at one queue depth, as fio or the flash probe makes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredJob:
    """Reads or writes that were measured with a constant number of outstanding requests.

    Attributes:
        name: The job's name.
        operation: `read` or `write`.
        depth: Number of outstanding requests: the job's depth times its number of processes.
        requests: Number of requests measured.
        iops: I/Os per second.
        mean_us: Mean of the completion times [us].
        table: Probabilities from 0 to 1, and quantiles of the completion times [us].
    """

    name: str
    operation: str
    depth: int
    requests: int
    iops: float
    mean_us: float
    table: tuple[NDArray[np.float64], NDArray[np.float64]]
