"""Values of each metric per sub-interval of an interval, cut at the snapshots between its ends.

They are the samples of a comparison and the curves of a report. A sub-interval in which something was reset, crashed or
restarted has no value, never a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.engines.metric import Metric
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.sums.chain import Chain
from dbdyno.snapshot.store.folder import Snapshot, Store

HOUR_US = 3600 * 10**6
POINTS = 1500
"""Largest number of points in a chart, about one per pixel."""


@dataclass
class Series:
    """Values of each metric per sub-interval; `at_us` are the ends of the sub-intervals.

    An end is the first snapshot's time plus the time elapsed since then, so that a clock that steps moves no point.
    """

    metrics: list[Metric] = field(default_factory=list)
    at_us: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    values: dict[str, list[float | None]] = field(default_factory=dict)


def series(store: Store, chain: list[Snapshot], sums: Chain | None = None) -> Series:
    """Return the metrics between each snapshot and the next; `sums` are the chain's sums, if they are open."""
    found = Series()
    if len(chain) == 2:
        with Interval(store, chain[0], chain[1], chain) as part:
            values = [(metric, [value]) for metric, value in part.engine.metrics(part)]
            _add(found, values, [part.seconds], [chain[0].at_ns + round(part.seconds * 1e9)])
        return found
    with_sums = sums or Chain(store, chain, Interval)
    try:
        at_ns = chain[0].at_ns
        for chunk in with_sums.chunks:
            elapsed = [one["elapsed_ns"] for one in with_sums.parts_of(chunk)]
            if not elapsed:  # nothing is known between snapshots whose clock went back
                continue
            numbers = [one["number"] for one in with_sums.parts_of(chunk)]
            metrics = [Metric(*one) for one in chunk.model["metrics"]]
            ends = list(accumulate(elapsed, initial=at_ns))[1:]
            at_ns += sum(elapsed)
            values = [(metric, [*map(chunk.values(metric.name).get, numbers)]) for metric in metrics]
            _add(found, values, [one / 1e9 for one in elapsed], ends)
    finally:
        if sums is None:
            with_sums.close()
    return found


def _add(
    series: Series,
    measured: Sequence[tuple[Metric, list[float | None]]],
    seconds: Sequence[float],
    ends_ns: Sequence[int],
) -> None:
    """Add sub-intervals to a series: the values of each metric in them, their durations and ends."""
    for metric, values in measured:
        if metric.name not in series.values:
            series.metrics.append(metric)
            series.values[metric.name] = [None] * len(series.at_us)
        series.values[metric.name].extend(values)
    series.seconds.extend(seconds)
    series.at_us.extend(end_ns // 1000 for end_ns in ends_ns)
    for known in series.values.values():
        known.extend([None] * (len(series.at_us) - len(known)))


def report_series(interval: Interval) -> JsonObject:
    """Return the value of a report's key `series`; empty if the interval has only two snapshots."""
    if len(interval.chain) <= 2:
        return {}
    return {"series": chart_data([thin_out(series(interval.store, interval.chain, interval.sums))])}


def chart_data(parts: Sequence[Series]) -> dict[str, object]:
    """Return the data of the chart over time: the metrics of all parts, one part after the other."""
    metrics = {m.name: m for part in parts for m in part.metrics}
    return {
        "at_us": [at for part in parts for at in part.at_us],
        "from_us": [
            at - round(seconds * 1e6) for part in parts for at, seconds in zip(part.at_us, part.seconds, strict=True)
        ],
        "metrics": [
            {
                "name": m.name,
                "label": m.label,
                "unit": m.unit,
                "values": [v for part in parts for v in part.values.get(m.name, [None] * len(part.at_us))],
            }
            for m in metrics.values()
        ],
    }


def thin_out(series: Series, limit: int = POINTS) -> Series:
    """Return a series with at most `limit` points, each the mean of the same number of neighbouring sub-intervals."""
    step = -(-len(series.at_us) // limit)
    if step <= 1:
        return series
    return _merged(series, list(range(0, len(series.at_us), step)))


def hourly_series(series: Series) -> Series:
    """Return a series with one point for the sub-intervals that end in the same hour, their mean over time."""
    hours = [at // HOUR_US for at in series.at_us]
    return _merged(series, [at for at, hour in enumerate(hours) if at == 0 or hours[at - 1] != hour])


def _merged(series: Series, cuts: list[int]) -> Series:
    """Return a series with one point from each index in `cuts` to the next."""
    spans = list(zip(cuts, [*cuts[1:], len(series.at_us)], strict=True))
    seconds = [series.seconds[at:end] for at, end in spans]
    lengths = [sum(some) for some in seconds]
    return Series(
        series.metrics,
        [series.at_us[end - 1] for _, end in spans],
        lengths,
        {
            name: [
                _mean(values[at:end], some, length)
                for (at, end), some, length in zip(spans, seconds, lengths, strict=True)
            ]
            for name, values in series.values.items()
        },
    )


def _mean(values: Sequence[float | None], seconds: Sequence[float], length: float) -> float | None:
    """Return the time-weighted mean of the values that are not None; `length` is the sum of `seconds`."""
    known = [(value, s) for value, s in zip(values, seconds, strict=True) if value is not None]
    if len(known) == len(seconds):
        return sum(value * s for value, s in known) / length
    return sum(value * s for value, s in known) / sum(s for _, s in known) if known else None
