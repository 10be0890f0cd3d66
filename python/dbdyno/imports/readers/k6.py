"""Reader of k6's summary: from `--summary-export`, or the data passed to `handleSummary`."""

from __future__ import annotations

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.imports.contents import NS, Contents, Interval, Sums, finite, known_values
from dbdyno.imports.readers.json_text import has_keys, json_object, parse_json

OPERATIONS = {"http_reqs": "http_req_duration", "iterations": "iteration_duration"}
"""Counters of operations, each with the trend of their times; the first one present in a summary is used."""
QUANTILES = {"mean": "avg", "p50": "med", "p90": "p(90)", "p95": "p(95)", "p99": "p(99)", "p99.9": "p(99.9)"}
EXTREMES = {"min": "min", "max": "max"}


def matches(head: str) -> bool:
    """Return True if the text begins like a summary of k6."""
    return has_keys(head, "metrics") and any(has_keys(head, name) for name in (*OPERATIONS, "vus", "data_sent"))


def read(text: str, where: str) -> Contents:
    """Return the sums of HTTP requests, or of iterations if there were no requests.

    Raises:
        EvidenceError: The text is not such JSON, or counts neither.
    """
    metrics = json_object(json_object(parse_json(text, where), "the file", where).get("metrics"), "metrics", where)
    for counter, trend in OPERATIONS.items():
        if counter in metrics:
            return _contents(metrics, counter, trend, where)
    raise EvidenceError("has neither http_reqs nor iterations", where=where, next_step="export the complete summary")


def _contents(metrics: JsonObject, counter: str, trend: str, where: str) -> Contents:
    counted, times = (_values(metrics, name, where) for name in (counter, trend))
    count, rate = (finite(counted.get(name, 0), f"{counter} {name}", where) for name in ("count", "rate"))
    latencies = {
        own: finite(times[key], f"{trend} {key}", where) * NS["ms"]
        for own, key in (QUANTILES | EXTREMES).items()
        if times.get(key) is not None
    }
    failed = None
    if counter == "http_reqs" and "http_req_failed" in metrics:
        share = _values(metrics, "http_req_failed", where)
        failed = finite(share.get("value", share.get("rate", 0)), "http_req_failed", where) * count
    sessions = round(finite(_values(metrics, "vus_max", where).get("max", 1), "vus_max", where))
    elapsed_ns = round(count / rate * NS["s"]) if rate else 0
    values = known_values(transactions=count - (failed or 0), failed=failed, throughput=rate) | latencies
    arm = Sums(counter, [Interval(0, elapsed_ns, values)], max(1, min(sessions, 65535)))
    return Contents("k6", benchmark=counter, settings={"vus_max": sessions}, sums=[arm])


def _values(metrics: JsonObject, name: str, where: str) -> JsonObject:
    """Return the numbers of a metric, which `handleSummary` puts one level deeper."""
    metric = json_object(metrics.get(name, {}), name, where)
    return json_object(metric.get("values", metric), name, where)
