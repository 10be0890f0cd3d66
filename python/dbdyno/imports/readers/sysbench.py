"""Reader of sysbench 1.0's output: its summary, and the lines of `--report-interval`, which are the intervals."""

from __future__ import annotations

import re

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.contents import NS, Contents, Interval, Sums, known_values

VERSION = re.compile(r"^sysbench (\d[\w.\-]{0,40})", re.MULTILINE)
THREADS = re.compile(r"^Number of threads: (\d{1,6})", re.MULTILINE)
_N = r"(\d{1,15}(?:\.\d{1,9})?)"
REPORT = re.compile(
    rf"^\[ {_N}s \] thds: (\d{{1,6}}) (?:tps: {_N}[^\n]{{0,200}}? lat \(ms,(\d{{1,3}})%\): {_N}(?: err/s:? {_N})?|"
    rf"eps: {_N} lat \(ms,(\d{{1,3}})%\): {_N})",
    re.MULTILINE,
)
TRANSACTIONS = re.compile(rf"^ +transactions: +(\d{{1,15}}) +\({_N} per sec\.\)", re.MULTILINE)
IGNORED = re.compile(r"^ +ignored errors: +(\d{1,15})", re.MULTILINE)
EVENTS = re.compile(r"^ +total number of events: +(\d{1,15})", re.MULTILINE)
TIME = re.compile(rf"^ +(?:total time|time elapsed): +{_N}s", re.MULTILINE)
LATENCY = {
    "min": re.compile(rf"^ +min: +{_N}", re.MULTILINE),
    "mean": re.compile(rf"^ +avg: +{_N}", re.MULTILINE),
    "max": re.compile(rf"^ +max: +{_N}", re.MULTILINE),
}
PERCENTILE = re.compile(rf"^ +(\d{{1,3}})th percentile: +{_N}", re.MULTILINE)
TESTS = {"SQL statistics": "oltp", "CPU speed": "cpu", "File operations": "fileio", "Total operations": "memory"}
KEPT = ("50", "90", "95", "99")


def matches(head: str) -> bool:
    """Return True if the text begins like sysbench's."""
    return bool(VERSION.search(head) or REPORT.search(head))


def read(text: str, where: str) -> Contents:
    """Return the intervals of --report-interval, or else the sums of the whole run.

    Raises:
        EvidenceError: There is neither a summary nor a line of an interval, or the text contains several runs.
    """
    if len(VERSION.findall(text)) > 1:
        raise EvidenceError(
            "contains several runs of sysbench", where=where, next_step="write each run into its own file"
        )
    totals, intervals = _totals(text), _intervals(text)
    if not totals and not intervals:
        raise EvidenceError(
            "has neither a result nor a line of an interval",
            where=where,
            next_step="give the complete output of `sysbench ... run`",
        )
    threads, version = THREADS.search(text), VERSION.search(text)
    sessions = max(1, min(int(threads[1]) if threads else 1, 65535))
    test = next((own for words, own in TESTS.items() if words in text), "")
    elapsed = TIME.search(text)
    whole = Interval(0, round(float(elapsed[1]) * NS["s"]) if elapsed else 0, totals)
    return Contents(
        "sysbench",
        version[1] if version else "",
        test,
        {"threads": sessions},
        sums=[Sums(test or "sysbench", intervals or [whole], sessions)],
        totals=totals,
    )


def _totals(text: str) -> dict[str, float]:
    done, events, elapsed = (pattern.search(text) for pattern in (TRANSACTIONS, EVENTS, TIME))
    if done is None and (events is None or elapsed is None or not float(elapsed[1])):
        return {}
    count = float(done[1]) if done else float(events[1]) if events else 0.0
    rate = float(done[2]) if done else count / float(elapsed[1]) if elapsed else 0.0
    ignored, percentile = IGNORED.search(text), PERCENTILE.search(text)
    times = {own: float(found[1]) * NS["ms"] for own, one in LATENCY.items() if (found := one.search(text))}
    if percentile and percentile[1] in KEPT:
        times[f"p{percentile[1]}"] = float(percentile[2]) * NS["ms"]
    failed = float(ignored[1]) if ignored else None
    return known_values(throughput=rate, transactions=count, failed=failed) | times


def _intervals(text: str) -> list[Interval]:
    found: list[Interval] = []
    before_ns = 0
    for line in REPORT.finditer(text):
        at_ns = round(float(line[1]) * NS["s"])
        if at_ns <= before_ns:
            continue
        seconds = (at_ns - before_ns) / NS["s"]
        rate = float(line[3] or line[7])
        percentile, time = line[4] or line[8], float(line[5] or line[9])
        quantile = {f"p{percentile}": time * NS["ms"]} if percentile in KEPT and rate > 0 else {}
        failed = float(line[6]) * seconds if line[6] else None
        values = known_values(throughput=rate, transactions=round(rate * seconds), failed=failed) | quantile
        found.append(Interval(before_ns, at_ns, values))
        before_ns = at_ns
    return found
