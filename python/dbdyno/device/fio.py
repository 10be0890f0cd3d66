"""Reader of fio's JSON output: throughput and completion times of each job's reads and writes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import DeviceError
from dbdyno.base.files import CHECK_FILE, os_errors_as
from dbdyno.device.job import MeasuredJob


def is_fio_json(path: Path) -> bool:
    """Return True if a file begins as a JSON object; of the file formats accepted for a fit, only fio's output does."""
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def read_fio_json(path: Path) -> list[MeasuredJob]:
    """Return reads and writes of all jobs in a file that fio wrote with `--output-format=json` or `json+`.

    Raises:
        DeviceError: The file cannot be read, or is not fio's JSON.
    """
    try:
        with os_errors_as(DeviceError, "cannot be read", path, CHECK_FILE):
            given = json.loads(path.read_text(encoding="utf-8"))
        shared = given.get("global options") or {}
        return [job for entry in given["jobs"] for job in _jobs(entry, shared)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DeviceError(
            f"is not JSON output of fio: {type(error).__name__}: {error}",
            where=str(path),
            next_step="write the file with `fio --output-format=json+ --output=FILE`",
        ) from None


def _jobs(entry: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[MeasuredJob]:
    options = {**shared, **(entry.get("job options") or {})}
    depth = int(options.get("iodepth", 1)) * int(options.get("numjobs", 1))
    for operation in ("read", "write"):
        part = entry[operation]
        if not part["total_ios"]:
            continue
        times = part.get("clat_ns") or part["lat_ns"]
        yield MeasuredJob(
            str(entry["jobname"]),
            operation,
            depth,
            int(part["total_ios"]),
            float(part["iops"]),
            float(times["mean"]) / 1e3,
            _table(times),
        )


def _table(times: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return quantiles from the bins of json+, else from the percentiles in the file."""
    if bins := times.get("bins"):
        values = np.array(sorted((float(ns), float(count)) for ns, count in bins.items()))
        probabilities = np.cumsum(values[:, 1]) / values[:, 1].sum()
        us = values[:, 0] / 1e3
    else:
        points = sorted((float(p) / 100, float(ns)) for p, ns in times["percentile"].items())
        probabilities = np.array([p for p, _ in points])
        us = np.array([ns for _, ns in points]) / 1e3
    inner = (probabilities > 0) & (probabilities < 1)
    ends = float(times["min"]) / 1e3, float(times["max"]) / 1e3
    # Bins and percentiles are rounded up: no quantile is above the largest time.
    inside = np.clip(us[inner], *ends)
    return (
        np.concatenate([[0.0], probabilities[inner], [1.0]]),
        np.concatenate([[ends[0]], inside, [ends[1]]]),
    )
