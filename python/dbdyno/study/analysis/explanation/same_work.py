"""Check whether two arms did the same work, for the sentence on their CPU; it needs the counters of both.

>>> from dbdyno.study.analysis.explanation.server_counters import ArmCounters
>>> slow, fast = (ArmCounters({"rows_read": rows}, {}, {}, 100) for rows in (20.0, 20.1))
>>> compare_work(Pair("b", "a", (slow, fast))).words
', for the same work'
>>> compare_work(Pair("b", "a", None)).words
'; work was not counted'
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.study.analysis.explanation.formatting import number
from dbdyno.study.analysis.explanation.pair import Pair, ratio_of

SAME = 1.1
"""Largest ratio that counts as equal work: PostgreSQL's counters may miss a second, or include others' work."""
SAME_MOST = 0.5
"""Largest difference per transaction that counts as equal work at any ratio, for example from catalog queries."""
WORK_MEASURES = {
    "rows_read": "rows read",
    "rows_written": "rows written",
    "rows_sorted": "rows sorted",
    "rows_temporary": "rows inserted into temporary tables",
    "blocks": "blocks touched",
}
"""Units in which work is counted, by the names that `Pair.values` takes."""


@dataclass(frozen=True)
class Work:
    """What is said about the work of two arms: the end of a sentence, and the figures with their source."""

    words: str
    evidence: tuple[str, ...] = ()


def compare_work(pair: Pair) -> Work:
    """Return what the counters say about the work of both arms: the same, how it differs, or that none was counted."""
    known = {name: values for name in WORK_MEASURES if (values := pair.values(name)) is not None}
    if not known or pair.counts is None or any(one.is_late for one in pair.counts):
        return Work("; work was not counted")
    differing = [_instead(name, *values) for name, values in known.items() if not _alike(*values)]
    if differing:
        return Work(f"; work differs: {', '.join(differing)} a transaction")
    seen = [name for name, values in known.items() if max(values) > 0] or list(known)[:1]
    figures = ", ".join(f"{number(known[name][0])} and {number(known[name][1])} {WORK_MEASURES[name]}" for name in seen)
    place = pair.counts[0].sources(*known, "blocks_asked", "blocks_hit")
    return Work(", for the same work", (f"a transaction with {pair.slow} and {pair.fast}: {figures} ({place})",))


def _alike(first: float, second: float) -> bool:
    return abs(first - second) <= SAME_MOST or ratio_of(max(first, second), min(first, second)) <= SAME


def _instead(name: str, slow: float, fast: float) -> str:
    return f"{number(slow)} {WORK_MEASURES[name]} instead of {number(fast)}"
