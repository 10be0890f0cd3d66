"""What happened, ranked: the section that opens a report and a comparison."""

from __future__ import annotations

import math
from typing import Any

from dbdyno.snapshot.causes import load, objects, server
from dbdyno.snapshot.causes.change import Cause, Change, three
from dbdyno.snapshot.interval import Interval
from dbdyno.snapshot.model import Row, columns, section, table

MOST = 5
LEAST_PARTS = 6
"""Sub-intervals that an interval needs, to be searched for a change inside."""
LEAST_CHANGE = 0.2
"""Statement time that changes by less is called steady."""

_SHOWN = columns("what:text share:ratio:of_the_change evidence:text when:text")


def causes(change: Change) -> list[Cause]:
    """All causes, largest and most direct share first; a statement whose cause is known is left out."""
    found = [cause for family in (objects, load, server) for rule in family.RULES for cause in rule(change)]
    explained = frozenset[int]().union(*(c.statements for c in found if c.direct))
    kept = [c for c in found if c.direct or not c.statements <= explained]
    return sorted(kept, key=lambda c: -_score(change, c))


def _score(change: Change, cause: Cause) -> float:
    share = change.share(cause.statements) if cause.statements else None
    return cause.weight * (0.3 if share is None else share) - (0 if cause.direct else 0.001)


def happened(change: Change, about: str = "") -> dict[str, Any]:
    """The section of the first causes, with what they leave unexplained."""
    ranked = causes(change)
    rows: list[Row] = [
        {
            "what": c.words,
            "share": change.share(c.statements) if c.statements else None,
            "evidence": c.evidence,
            "when": c.when,
        }
        for c in ranked
    ]
    every = frozenset[int]().union(*(c.statements for c in ranked[:MOST])) if ranked else frozenset[int]()
    notes = [budget(change, ranked)]
    known = change.share(every)
    if known is not None:
        notes.append(f"{1 - known:.0%} of the change is not explained by these")
    return section("happened", "What happened", [table("", _SHOWN, rows, top=MOST)], about=about, notes=notes)


def budget(change: Change, ranked: list[Cause]) -> str:
    """The change of database time in words: how much, whose, and the first cause."""
    words = f"{'+' if change.grown_ms > 0 else ''}{three(change.grown_ms)} ms of statement time a second"
    first = max(change.statements.items(), key=lambda item: item[1].grown("ms"), default=None)
    if change.grown_ms > 0 and first is not None:
        words += f", of it {change.share([first[0]]) or 0:.0%} {load.named(first[1])}"
    if ranked:
        named = (ranked[0].words if ranked[0].direct else "", ranked[0].evidence)
        words += "; " + "; ".join(filter(None, named))
    return words


def within(interval: Interval) -> dict[str, Any] | None:
    """What happened inside of one interval: its two parts around the point where statement time changed most.
    None where there are too few sub-intervals, or the engine has no statements of this kind."""
    cut = _cut(interval)
    if cut is None:
        return None
    at, old, new = cut
    chain = interval.chain
    if abs(new - old) < LEAST_CHANGE * max(old, new):
        about = (
            f"Statement time was steady over the interval: {three(old)} and {three(new)} ms a second at its two parts."
        )
        return section("happened", "What happened", about=about, notes=["nothing stands out"])
    with (
        Interval(interval.store, chain[0], chain[at], chain[: at + 1]) as before,
        Interval(interval.store, chain[at], chain[-1], chain[at:]) as after,
    ):
        about = (
            f"Statement time went from {three(old)} to {three(new)} ms a second at snapshot {chain[at].number}"
            f" ({chain[at].at:%H:%M:%S} UTC): what is before it, against what is after."
        )
        return happened(Change(before, after), about)


def _cut(interval: Interval) -> tuple[int, float, float] | None:
    """The snapshot at which the mean of statement time changed most, and the means at both sides."""
    view = "pg_stat_statements"
    if interval.before.engine != "postgres" or len(interval.chain) <= LEAST_PARTS or not interval.has(view):
        return None
    parts = list(interval.sums.parts())
    source, known = interval.sums.relation(view, folded=False)
    if not source or len(parts) != len(interval.chain) - 1:
        return None
    time = "total_exec_time" if "total_exec_time" in {c.name for c in known} else "total_time"
    rows = interval.query(f"select part, sum({time}) as ms from {source} group by 1")
    spent = {row["part"]: float(row["ms"] or 0) for row in rows}
    values = [(spent.get(part["number"], 0.0), part["elapsed_ns"] / 1e9) for part in parts]
    at = _change_point([ms / seconds for ms, seconds in values])
    old, new = (sum(v for v, _ in some) / sum(s for _, s in some) for some in (values[:at], values[at:]))
    return at, old, new


def _change_point(rates: list[float]) -> int:
    """Where the mean of the logarithms changes most, at least two from either end: a burst in a busy stretch
    weighs no more than its ratio. Near zero differences count for nothing."""
    least = 0.02 * sum(rates) / len(rates) or 1.0
    logs = [math.log(max(rate, 0.0) + least) for rate in rates]

    def weight(at: int) -> float:
        old, new = sum(logs[:at]) / at, sum(logs[at:]) / (len(logs) - at)
        return abs(new - old) * math.sqrt(at * (len(logs) - at))

    return max(range(2, len(logs) - 1), key=weight)
