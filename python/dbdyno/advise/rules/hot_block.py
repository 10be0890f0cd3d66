"""Rule: one hot row or block, or a latch, limits the rate."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share as share_of
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

LEAST_SHARE = 0.3
KINDS = ("lock", "latch")


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if sessions spend most of their time waiting for one another."""
    one = facts.row_of(Measurements)
    if not one.waits:
        yield InsufficientEvidence("no waits were sampled", "activity_hz = 10 under [watch]")
        return
    seen = max(sum(share for _, _, share in one.waits), 1e-9)
    waits = [(share / seen, event) for kind, event, share in one.waits if kind in KINDS]
    whole = sum(share for share, _ in waits)
    if whole < LEAST_SHARE or one.sessions < 2:
        return
    most, event = max(waits)
    yield Advice(
        f"sessions spend {share_of(whole)} of their time waiting for each other, {share_of(most)} for {event}",
        (
            Evidence("waits for locks and latches", whole, "ratio", "waits and calls, base arm"),
            Evidence(event, most, "ratio", "waits and calls, base arm"),
            Evidence("sessions", one.sessions, "count", "manifest.json, arms"),
        ),
        "one row or block limits the rate: more processors, faster storage or more sessions do not raise it",
        ("-- more keys than sessions: a larger scale, or random keys over the whole table",),
        subject=event,
    )


RULE = benchmark(
    "hot_block",
    "One hot row, block or latch limits the rate",
    "there are two sessions or more, and locks and latches are 30 % or more of the base arm's samples",
    "the rate is the same with ten times the keys",
    (Measurements,),
    judge,
)
