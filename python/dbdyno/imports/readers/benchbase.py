"""Reader of BenchBase's `.summary.json`: throughput and quantiles of the whole run."""

from __future__ import annotations

from dbdyno.base.errors import EvidenceError
from dbdyno.base.json_types import JsonObject
from dbdyno.imports.contents import NS, Contents, Interval, Sums, finite, known_values
from dbdyno.imports.readers.json_text import has_keys, json_object, parse_json

LATENCIES = {
    "mean": "Average Latency (microseconds)",
    "p50": "Median Latency (microseconds)",
    "p90": "90th Percentile Latency (microseconds)",
    "p95": "95th Percentile Latency (microseconds)",
    "p99": "99th Percentile Latency (microseconds)",
    "min": "Minimum Latency (microseconds)",
    "max": "Maximum Latency (microseconds)",
}
SETTINGS = {"scalefactor": "scale", "terminals": "terminals", "isolation": "isolation"}
GOODPUT, THROUGHPUT = "Goodput (requests/second)", "Throughput (requests/second)"


def matches(head: str) -> bool:
    """Return True if the text begins like BenchBase's summary."""
    return has_keys(head, "Benchmark Type") and has_keys(head, THROUGHPUT)


def read(text: str, where: str) -> Contents:
    """Return the sums of a run; throughput is BenchBase's goodput: successful requests per second.

    Raises:
        EvidenceError: The text is not such JSON, or has no throughput.
    """
    given = json_object(parse_json(text, where), "the file", where)
    elapsed_ns = round(finite(given.get("Elapsed Time (nanoseconds)", 0), "Elapsed Time", where))
    ended = given.get("Current Timestamp (milliseconds)")
    ended_ns = None if ended is None else round(finite(ended, "Current Timestamp", where) * NS["ms"])
    sessions = round(finite(given.get("terminals", 1), "terminals", where))
    name = str(given["Benchmark Type"])[:60]
    begun_ns = max(0, (ended_ns or elapsed_ns) - elapsed_ns)
    values = _values(given, where)
    return Contents(
        "BenchBase",
        f"{given.get('DBMS Type', '')} {given.get('DBMS Version', '')}".strip()[:200],
        name,
        {own: str(given[key])[:60] for key, own in SETTINGS.items() if key in given},
        sums=[Sums(name, [Interval(begun_ns, begun_ns + elapsed_ns, values)], max(1, min(sessions, 65535)))],
        ended_ns=ended_ns,
    )


def _values(given: JsonObject, where: str) -> dict[str, float]:
    latency = json_object(given.get("Latency Distribution", {}), "Latency Distribution", where)
    times = {
        own: finite(latency[key], key, where) * NS["us"]
        for own, key in LATENCIES.items()
        if latency.get(key) is not None
    }
    throughput = given.get(GOODPUT, given[THROUGHPUT])
    if throughput is None:
        raise EvidenceError("has no throughput", where=where, next_step="check that the BenchBase run ended normally")
    count = given.get("Measured Requests")
    return (
        known_values(
            throughput=finite(throughput, "the throughput", where),
            transactions=None if count is None else finite(count, "Measured Requests", where),
        )
        | times
    )
