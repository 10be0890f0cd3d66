"""Rule: sorts and hashes of sessions that spill to temporary files."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share
from dbdyno.advise.rule import Advice, Evidence, Rule
from dbdyno.advise.traces import SPILLS, Traced, TracedEvent, TracedStatement

LEAST_SHARE = 0.02


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding about the time of reads and writes of temporary segments."""
    whole = facts.row_of(Traced).response_ns
    found = [event for event in facts.rows_of(TracedEvent) if event.name in SPILLS]
    spent = sum(event.ns for event in found)
    spilling = sum(one.ns for one in facts.rows_of(TracedStatement) if one.spill_ns)
    if not whole or spent / whole < LEAST_SHARE:
        return
    yield Advice(
        f"sorts and hashes spill to temporary files: {share(spent / whole)} of the response time",
        tuple(Evidence(event.name, event.ns, "ns", f"waits, {event.name}, {event.count:,} of them") for event in found),
        f"these {share(spent / whole)} of the response time if they fit in memory, and the passes over spilled data,"
        f" which are not counted separately: the statements that spill take {share(min(spilling / whole, 1.0))}",
        ("-- alter session set workarea_size_policy = manual, sort_area_size = ... for this batch; or a larger PGA",),
        stake=min(max(spilling, spent) / whole, 1.0),
        subject="temporary files",
    )


RULE = Rule(
    name="sorts_on_disk",
    family="trace",
    title="Sorts and hashes on disk",
    reads=(Traced, TracedEvent, TracedStatement),
    condition="direct path reads and writes of temporary segments are 2 % of the time or more",
    expects="the waits for temporary files",
    risk="each sort of each session can use this memory",
    source="Oracle Database Performance Tuning Guide, PGA (2025)",
    refuted="a trace with the larger work area takes as long",
    judge=judge,
    engines=("oracle",),
)
