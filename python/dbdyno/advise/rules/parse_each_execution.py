"""Rule: statements that are parsed for each execution."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import beginning, count, duration, share
from dbdyno.advise.rule import Advice, Evidence, Rule
from dbdyno.advise.traces import Traced, TracedStatement

LEAST_EXECUTIONS, LEAST_PER_EXECUTION, LEAST_SHARE = 20, 0.5, 0.01


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding per statement whose parse calls take time."""
    whole = facts.row_of(Traced).response_ns
    for one in facts.rows_of(TracedStatement):
        if one.executions < LEAST_EXECUTIONS or one.parses < LEAST_PER_EXECUTION * one.executions or not whole:
            continue
        trips = one.round_trip_ns * one.parses / max(one.parses + one.executions + one.fetches, 1)
        gain = (one.parse_ns + trips) / whole
        if gain < LEAST_SHARE:
            continue
        yield Advice(
            f"“{beginning(one.text)}” is parsed {count(one.parses)} times for {count(one.executions)} executions",
            (
                Evidence("parse calls", one.parses, "count", f"calls, {one.identifier}, kind parse"),
                Evidence("hard parses", one.hard_parses, "count", f"calls, {one.identifier}, misses"),
                Evidence("executions", one.executions, "count", f"calls, {one.identifier}, kind exec"),
                Evidence("time of the parse calls", one.parse_ns, "ns", f"calls, {one.identifier}"),
            ),
            f"{share(gain)} of the response time at most: {duration(one.parse_ns / 1e9)} of parse calls,"
            " and round trips",
            (
                "-- keep the cursor open: prepare once, then bind and execute; or use "
                "session_cached_cursors and the driver's cache",
            ),
            stake=gain,
            subject=f"statement {one.identifier}",
        )


RULE = Rule(
    name="parse_each_execution",
    family="trace",
    title="A parse for each execution",
    reads=(Traced, TracedStatement),
    condition="there are 20 executions or more and at least half as many parse calls; with their round trips these "
    "take 1 % of the time",
    expects="the parse calls and their round trips",
    risk="an open cursor keeps its plan, which may be the wrong one with skewed data",
    source="Oracle Database Performance Tuning Guide, Cursor Sharing (2025)",
    refuted="a trace with the cursor kept open takes as long",
    judge=judge,
    engines=("oracle",),
)
