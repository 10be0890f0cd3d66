"""Reader of the files that `pgbench --log` writes: a line per transaction, or sums of `--aggregate-interval`.

A line is `client transaction time script epoch us [lag] [retries]`. If pgbench ran with `--rate`, the time is measured
from the intended start, and so is the latency. A skipped or failed transaction has the word `skipped` or `failed`
instead of its time.
"""

from __future__ import annotations

import itertools
import re

from dbdyno.base.errors import EvidenceError
from dbdyno.imports.contents import NS, Contents, Interval, Sums, TimedOperations, known_values

LINE = re.compile(
    r"\d{1,9} \d{1,15} (?:\d{1,15}|skipped|failed|serialization|deadlock) \d{1,6} \d{9,12} \d{1,6}(?: \d+)*"
)
AGGREGATE = re.compile(r"\d{9,12} \d{1,15}(?: \d{1,30}){4,13}")
ERRORS = {"serialization": "40001", "deadlock": "40P01", "failed": "40000", "skipped": "SKIPD"}
FAILURES = 13
"""Positions of the failure counts in an aggregated line, from pgbench 15 on."""


def matches(head: str) -> bool:
    """Return True if the first line is a line of such a log."""
    first = head.split("\n", 1)[0].strip()
    return bool(LINE.fullmatch(first) or AGGREGATE.fullmatch(first))


def read(text: str, where: str) -> Contents:
    """Return the transactions, or the sums by interval.

    Raises:
        EvidenceError: No line can be read.
    """
    if AGGREGATE.fullmatch(text.split("\n", 1)[0].strip()):
        return _aggregate_sums(text, where)
    arm, unread, clients = TimedOperations("pgbench"), [], set()
    names: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        try:
            client, _, took, script, seconds, micros = words[:6]
            error = ERRORS.get(took)
            elapsed_ns = 0 if error else int(took) * NS["us"]
            ended_ns = int(seconds) * NS["s"] + int(micros) * NS["us"]
            statement = names.setdefault(script, f"script {int(script)}")
            arm.add(ended_ns - elapsed_ns, elapsed_ns, session=int(client), statement=statement, error=error)
        except ValueError:
            if words:
                unread.append(number)
            continue
        clients.add(client)
    if not arm.elapsed_ns:
        raise EvidenceError("has no readable line", where=where, next_step="give a log written by pgbench --log")
    arm.sessions = len(clients)
    ended_ns = max(map(sum, zip(arm.started_ns, arm.elapsed_ns, strict=True)))
    return Contents("pgbench", settings={}, timed=[arm], unread=unread, ended_ns=ended_ns)


def _aggregate_sums(text: str, where: str) -> Contents:
    """Return the sums by interval, each ending where the next begins; the last is as long as the one before."""
    rows: list[list[int]] = []
    unread: list[int] = []
    for number, line in enumerate(text.splitlines(), 1):
        if AGGREGATE.fullmatch(line.strip()):
            rows.append([int(word) for word in line.split()])
        elif line.strip():
            unread.append(number)
    begins = [row[0] * NS["s"] for row in rows]
    if len(rows) < 2 or any(a >= b for a, b in itertools.pairwise(begins)):
        raise EvidenceError(
            "does not have two or more intervals in order of time",
            where=where,
            next_step="give the log of one thread (pgbench --jobs 1), with two intervals or more",
        )
    ends = [*begins[1:], 2 * begins[-1] - begins[-2]]
    intervals = [Interval(a, b, _sums(row, b - a)) for row, a, b in zip(rows, begins, ends, strict=True)]
    sums = [Sums("pgbench", intervals)]
    return Contents("pgbench", settings={}, sums=sums, unread=unread, ended_ns=ends[-1])


def _sums(row: list[int], length_ns: int) -> dict[str, float]:
    """Return the values of an interval; the last interval is incomplete, so its throughput is too low."""
    count, total, least, most = row[1], row[2], row[4], row[5]
    failed = sum(row[FAILURES : FAILURES + 2]) if len(row) >= FAILURES + 2 else None
    return known_values(
        throughput=count * NS["s"] / length_ns,
        transactions=float(count),
        failed=None if failed is None else float(failed),
        mean=total / count * NS["us"] if count else None,
        min=float(least * NS["us"]) if count else None,
        max=float(most * NS["us"]) if count else None,
    )
