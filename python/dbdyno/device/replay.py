"""Replay of a block trace on a device in virtual time, and how far the replayed times are from those in the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from dbdyno.device.block_trace import BlockTrace, columns
from dbdyno.model.describe import SCHEMA

SHOWN = (0.5, 0.9, 0.99, 0.999)
"""Quantiles on the page."""
_BEHIND = 10.0
"""Minimum ratio of the last tenth's median to that of the first for a device to count as too slow for the trace."""


class ComparedFigure(TypedDict):
    """A figure for reads or writes on the device, and the same figure in the trace [us]."""

    operation: str
    figure: str
    modelled_us: float
    measured_us: float | None
    error: float | None


class ReplayPage(TypedDict):
    """Model of the page about a replay."""

    schema: int
    kind: str
    page: str
    title: str
    device: str
    form: str
    requests: int
    seconds: float
    outstanding: int
    gap: float | None
    rows: list[ComparedFigure]
    sentences: list[str]


def replayed_ns(trace: BlockTrace, toml: str, settings: Sequence[tuple[str, str]], seed: int = 0) -> NDArray[np.int64]:
    """Return the time of each request of the trace on an initially idle device [ns].

    If 10,000 requests are outstanding, the device does not keep up: the result has only the requests up to that point.

    Raises:
        ModelError: The device or a setting is not valid.
        DeviceError: The device does not complete the requests.
    """
    from dbdyno import _core

    found = _core.device_replay(toml, list(settings), columns(trace), seed)
    return np.frombuffer(found, dtype="<u8").astype(np.int64)


def replay_page(trace: BlockTrace, found: NDArray[np.int64], *, device: str, title: str) -> ReplayPage:
    """Return the page about a replay.

    Args:
        trace: The trace that was replayed.
        found: Time of each request on the device [ns]; fewer times than the trace has requests if the device did not
            keep up.
        device: Name of the device.
        title: Title of the page.
    """
    whole, trace = trace, trace.part(0, len(found))
    rows = compare_times(trace.is_read, found, trace.response_ns)
    gap = None if trace.response_ns is None else largest_gap(found, trace.response_ns)
    most = largest_outstanding(trace.arrived_ns, trace.arrived_ns + found)
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "replay",
        "title": title,
        "device": device,
        "form": trace.form,
        "requests": len(trace),
        "seconds": float(trace.arrived_ns[-1]) / 1e9,
        "outstanding": most,
        "gap": gap,
        "rows": rows,
        "sentences": [*_sentences(whole, found, rows, device, most), *trace.notes],
    }


def compare_times(
    is_read: NDArray[np.bool_], found: NDArray[np.int64], measured: NDArray[np.int64] | None
) -> list[ComparedFigure]:
    """Return the mean and quantiles of reads and of writes, each with the measured figure."""
    rows: list[ComparedFigure] = []
    for operation, chosen in (("read", is_read), ("write", ~is_read)):
        if not chosen.any():
            continue
        own = _figures(found[chosen])
        other = None if measured is None else _figures(measured[chosen])
        for name, value in own.items():
            beside = other[name] if other else None
            rows.append(
                {
                    "operation": operation,
                    "figure": name,
                    "modelled_us": value,
                    "measured_us": beside,
                    "error": value / beside - 1 if beside else None,
                }
            )
    return rows


def _figures(values: NDArray[np.int64]) -> dict[str, float]:
    quantiles = np.quantile(values, SHOWN) / 1e3
    found = {"mean": float(values.mean()) / 1e3}
    return found | {f"p{q * 100:g}": float(value) for q, value in zip(SHOWN, quantiles, strict=True)}


def largest_gap(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the largest distance between the distribution functions of two samples (Kolmogorov-Smirnov), 0 to 1."""
    first, second = np.sort(first), np.sort(second)
    points = np.concatenate([first, second])
    below = [np.searchsorted(side, points, side="right") / len(side) for side in (first, second)]
    return float(np.abs(below[0] - below[1]).max())


def largest_outstanding(begins: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return the largest number of requests that were outstanding at the same time."""
    steps = np.concatenate([np.ones(len(begins), dtype=np.int64), -np.ones(len(ends), dtype=np.int64)])
    # At the same instant, ends are counted before begins.
    order = np.lexsort((steps, np.concatenate([begins, ends])))
    return int(np.cumsum(steps[order]).max(initial=0))


def _sentences(
    trace: BlockTrace, found: NDArray[np.int64], rows: list[ComparedFigure], device: str, limit: int
) -> list[str]:
    said = []
    if len(found) < len(trace):
        said.append(
            f"{device} does not keep up: {trace.arrived_ns[len(found)] / 1e9:.3g} s after the start {limit:,} requests "
            f"are in progress. The {len(trace) - len(found):,} after them are left out; --speed below "
            f"1 slows the trace down."
        )
    tenth = max(len(found) // 10, 1)
    first, last = float(np.median(found[:tenth])), float(np.median(found[-tenth:]))
    if not said and len(found) >= 1000 and last > _BEHIND * first and limit > len(found) // 20:
        said.append(
            f"{device} does not keep up: requests wait longer and longer, and {limit:,} are in progress at once. The "
            f"times below show how long the trace is, not how slow the device is."
        )
    means = {row["operation"]: row for row in rows if row["figure"] == "mean"}
    for operation, row in means.items():
        text = f"A {operation} takes {_time(row['modelled_us'])} on {device} on average"
        if row["measured_us"] is not None and row["error"] is not None:
            text += f", {_time(row['measured_us'])} in the trace"
        said.append(text + ".")
    if trace.response_ns is None:
        said.append("The trace has no response times: there is nothing to compare the device with.")
    return said


def _time(us: float) -> str:
    return f"{us:.3g} us" if us < 1e3 else f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"
