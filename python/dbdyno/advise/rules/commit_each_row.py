"""Rule: there is a commit for each changed row."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, share
from dbdyno.advise.rule import Advice, Evidence, Rule
from dbdyno.advise.traces import Traced, TracedEvent

LEAST_COMMITS, MOST_ROWS, LEAST_SHARE = 20, 2.0, 0.05
SYNC = "log file sync"


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding about many small transactions whose commits wait for the log."""
    one = facts.row_of(Traced)
    waited = sum(event.ns for event in facts.rows_of(TracedEvent) if event.name == SYNC)
    if one.commits < LEAST_COMMITS or one.changed_rows > MOST_ROWS * one.commits or not one.response_ns:
        return
    gain = waited / one.response_ns
    if gain < LEAST_SHARE:
        return
    yield Advice(
        f"{count(one.commits)} commits for {count(one.changed_rows)} changed rows wait {share(gain)} of the response"
        " time for the log",
        (
            Evidence("commits", one.commits, "count", "transactions"),
            Evidence("changed rows", one.changed_rows, "count", "calls, rows of insert, update, delete and merge"),
            Evidence(SYNC, waited, "ns", f"waits, {SYNC}"),
        ),
        f"nearly all of these {share(gain)}, if many rows are committed together: each remaining commit waits once; "
        f"saved round trips and processor time are not counted",
        ("-- commit after the unit of work, not after each row; a batch commits every few hundred rows",),
        stake=gain,
        subject="commits",
    )


RULE = Rule(
    name="commit_each_row",
    family="trace",
    title="A commit for each row",
    reads=(Traced, TracedEvent),
    condition="there are 20 commits or more with two changed rows or fewer each, and log file sync is 5 % of the time",
    expects="waits for the log",
    risk="rows that are committed together are lost together, so this is right only if they are one unit of work",
    source="Oracle Database Concepts, Transactions (2025)",
    refuted="a trace that commits a hundred rows at a time takes as long",
    judge=judge,
    engines=("oracle",),
)
