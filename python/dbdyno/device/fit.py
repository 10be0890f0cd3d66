"""Fit of a device to measurements by fio or a probe, or to a block trace with response times, as an `empirical` device.

Its service times are those of requests that had the device to themselves: the job of the smallest depth, or the
requests of a trace that found the device idle. How many requests it serves at once follows from throughput times
service time (the utilisation law) or from replays of the trace's first half. The error of the fit is measured on data
that it did not use: the other jobs, or the trace's second half.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from dbdyno.base.errors import DeviceError
from dbdyno.device.block_trace import LATENCY_LOG, BlockTrace
from dbdyno.device.job import MeasuredJob
from dbdyno.device.replay import ComparedFigure, compare_times, largest_gap, largest_outstanding, replayed_ns
from dbdyno.model.describe import SCHEMA

LEAST = 200
"""Minimum number of requests for fitting a distribution of service times."""
SERVERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_POINTS = np.concatenate(
    [[0.0], np.arange(0.01, 0.9, 0.02), np.arange(0.9, 0.99, 0.01), 1 - np.geomspace(0.01, 1e-4, 15), [1.0]]
)


class FittedJob(TypedDict):
    """A job compared with the fitted device: I/Os per second at its depth, as measured and by the utilisation law."""

    job: str
    operation: str
    depth: int
    measured_us: float
    measured_iops: float
    modelled_iops: float
    error: float
    fitted: bool


class DeviceFitPage(TypedDict):
    """Model of the page about a fit; `jobs` for fio and flash probes, `rows` and the distances for a trace."""

    schema: int
    kind: str
    page: str
    title: str
    servers: int
    jobs: list[FittedJob]
    rows: list[ComparedFigure]
    gap: float | None
    floor: float | None
    sentences: list[str]
    toml: str


Table = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Probabilities from 0 to 1, and quantiles [us]."""


def fit_jobs(
    jobs: list[MeasuredJob], *, name: str, title: str, capacity_gb: float, notes: Sequence[str] = ()
) -> DeviceFitPage:
    """Fit a device to jobs of fio or of flash probes.

    Raises:
        DeviceError: There is no job with enough requests.
    """
    jobs = [job for job in jobs if job.requests >= LEAST]
    if not jobs:
        raise DeviceError(f"no job has at least {LEAST} reads or writes", next_step="measure for longer")
    alone = {}
    for operation in ("read", "write"):
        own = [job for job in jobs if job.operation == operation]
        if own:
            alone[operation] = min(own, key=lambda job: job.depth)
    busy: dict[str, float] = {}
    for job in jobs:
        busy[job.name] = busy.get(job.name, 0.0) + job.iops * alone[job.operation].mean_us / 1e6
    servers = max(1, round(max(busy.values())))
    rows = [_against(job, alone, servers, busy) for job in jobs]
    sentences = _depth_sentences(alone, jobs, servers)
    unseen = [row for row in rows if not row["fitted"]]
    if unseen:
        worst = max(unseen, key=lambda row: abs(row["error"]))
        sentences.append(
            f"Of the jobs that were not used for the service times ({len(unseen)}), {worst['job']} "
            f"({worst['operation']}) has the largest error: {worst['error']:+.0%} in I/Os per second."
        )
    else:
        sentences.append("Every job was used for the fit, so its error cannot be measured.")
    tables = {operation: (_POINTS, np.interp(_POINTS, *job.table)) for operation, job in alone.items()}
    return _page(title, servers, _toml(name, title, capacity_gb, servers, tables), [*sentences, *notes], jobs=rows)


def _against(job: MeasuredJob, alone: dict[str, MeasuredJob], servers: int, busy: dict[str, float]) -> FittedJob:
    service_us = alone[job.operation].mean_us
    share = job.iops * service_us / 1e6 / busy[job.name]
    modelled = min(job.depth, servers) * share / service_us * 1e6
    return {
        "job": job.name,
        "operation": job.operation,
        "depth": job.depth,
        "measured_us": job.mean_us,
        "measured_iops": job.iops,
        "modelled_iops": modelled,
        "error": modelled / job.iops - 1,
        "fitted": job is alone[job.operation],
    }


def _depth_sentences(alone: dict[str, MeasuredJob], jobs: list[MeasuredJob], servers: int) -> list[str]:
    if all(job.depth == 1 for job in jobs):
        return ["No job has a depth above 1: how many requests the device serves at once was not measured."]
    at_once = (
        f"It serves {servers} request{'s' if servers > 1 else ''} at once: the largest product of throughput and "
        f"service time in these jobs."
    )
    deep = [
        f"The smallest depth of a job with {job.operation}s is {job.depth}: its times may include waits for other "
        f"requests. Also measure at depth 1: --iodepth=1 of fio, --depth 1 of a flash probe."
        for job in alone.values()
        if job.depth > 1
    ]
    return [at_once, *deep]


def fit_trace(trace: BlockTrace, *, name: str, title: str, capacity_gb: float, seed: int = 0) -> DeviceFitPage:
    """Fit a device to the first half of a block trace, and validate it against the second half.

    Raises:
        DeviceError: The trace has no response times, or too few requests.
    """
    if trace.response_ns is None or trace.form == LATENCY_LOG:
        lacks = "no response times" if trace.response_ns is None else "arrivals in whole milliseconds"
        raise DeviceError(
            f"a {trace.form} has {lacks}: no device can be fitted to it",
            next_step="give text of blkparse or JSON of fio, or replay this trace with `dbdyno model replay`",
        )
    if len(trace) < 2 * LEAST:
        raise DeviceError(
            f"{len(trace)} requests are too few to fit a device",
            next_step=f"give a trace with {2 * LEAST} requests or more",
        )
    half = len(trace) // 2
    first, second = trace.part(0, half), trace.part(half, len(trace))
    assert first.response_ns is not None and second.response_ns is not None
    tables, sentences = _service(first)
    overlaps = largest_outstanding(first.arrived_ns, first.arrived_ns + first.response_ns) > 1
    tried = {}
    for servers in SERVERS if overlaps else SERVERS[:1]:
        toml = _toml(name, title, capacity_gb, servers, tables)
        found = replayed_ns(first, toml, (), seed)
        tried[servers] = _distance(found, first.response_ns) if len(found) == len(first) else np.inf
        if len(tried) > 2 and tried[servers] > 1.5 * min(tried.values()):
            break
    servers = min(tried, key=lambda count: (round(tried[count], 3), count))
    toml = _toml(name, title, capacity_gb, servers, tables)
    found = replayed_ns(second, toml, (), seed)
    gap, floor = largest_gap(found, second.response_ns), largest_gap(first.response_ns, second.response_ns)
    rows = compare_times(second.is_read, found, second.response_ns)
    sentences.insert(
        0,
        f"It serves {servers} request{'s' if servers > 1 else ''} at once: with this number a replay of the first half "
        f"is closest to the trace."
        if overlaps
        else "No two requests were under way at once: how many the device serves at once was not measured.",
    )
    sentences.append(
        f"On the second half, which was not used for the fit, its distribution of times is off by {gap:.2f}; the "
        f"halves differ by {floor:.2f}."
    )
    return _page(title, servers, toml, [*sentences, *trace.notes], rows=rows, gap=gap, floor=floor)


def _service(trace: BlockTrace) -> tuple[dict[str, Table], list[str]]:
    """Return the service times of reads and writes, and sentences that say from which requests they come."""
    assert trace.response_ns is not None
    ends = np.maximum.accumulate(trace.arrived_ns + trace.response_ns)
    idle = np.concatenate([[True], trace.arrived_ns[1:] >= ends[:-1]])
    tables, sentences = {}, []
    for operation, chosen in (("read", trace.is_read), ("write", ~trace.is_read)):
        if (chosen & idle).sum() >= LEAST:
            times = trace.response_ns[chosen & idle]
            sentences.append(
                f"Service times of {operation}s come from {len(times):,} requests that found the device idle."
            )
        elif chosen.sum() >= LEAST:
            times = trace.response_ns[chosen]
            sentences.append(
                f"Too few {operation}s found the device idle, so the times include waits for other requests."
            )
        else:
            continue
        tables[operation] = _POINTS, np.quantile(times, _POINTS) / 1e3
    if not tables:
        raise DeviceError(
            f"the first half of the trace has fewer than {LEAST} reads and fewer than {LEAST} writes",
            next_step="give a longer trace",
        )
    return tables, sentences


def _distance(found: NDArray[np.int64], measured: NDArray[np.int64]) -> float:
    """Return the mean distance between the logarithms of corresponding quantiles (first Wasserstein distance)."""
    points = np.arange(0.005, 1, 0.01)
    one, other = (np.log(np.maximum(np.quantile(values, points), 1.0)) for values in (found, measured))
    return float(np.abs(one - other).mean())


def _page(
    title: str,
    servers: int,
    toml: str,
    sentences: list[str],
    *,
    jobs: list[FittedJob] | None = None,
    rows: list[ComparedFigure] | None = None,
    gap: float | None = None,
    floor: float | None = None,
) -> DeviceFitPage:
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "device_fit",
        "title": title,
        "servers": servers,
        "jobs": jobs or [],
        "rows": rows or [],
        "gap": gap,
        "floor": floor,
        "sentences": sentences,
        "toml": toml,
    }


def _toml(name: str, title: str, capacity_gb: float, servers: int, tables: dict[str, Table]) -> str:
    """Return a machine file with the device; an operation that was not measured gets the times of the other one."""
    texts = {operation: _times(*table) for operation, table in tables.items()}
    read, write = (texts.get(one) or next(iter(texts.values())) for one in ("read", "write"))
    heading = " ".join(title.split()).replace("\\", "/").replace('"', "'")
    return (
        f'# Fitted by dbdyno. The capacity was not measured.\ntitle = "{heading}"\n\n'
        f'[devices.{name}]\nkind = "empirical"\ncapacity_gb = {capacity_gb}\nservers = {servers}\n'
        f"regimes = [\n  {{ read = {read},\n    write = {write} }},\n]\n\n"
        f'[storage]\nredo = "{name}"\ndata = "{name}"\n'
    )


def _times(points: NDArray[np.float64], values: NDArray[np.float64]) -> str:
    rising = np.maximum.accumulate(np.maximum(values, 0.001))
    probabilities = ", ".join(f"{point:.6g}" for point in points)
    return f'{{ kind = "measured", probability = [{probabilities}], us = [{", ".join(f"{us:.6g}" for us in rising)}] }}'
