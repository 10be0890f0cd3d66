"""Rule: clients in lock step, whose transactions repeatedly begin at the same time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share as share_of
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

TIMES = 4.0
LEAST_NEAR = 0.3
NEAR = 0.02
LEAST = 200


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if transactions start just after one of another session far more often than chance explains."""
    one = facts.row_of(Measurements)
    if one.near is None or one.transactions < LEAST:
        yield InsufficientEvidence("one session, or fewer than 200 transactions", "two sessions or more")
        return
    alone = 1 - math.exp(-NEAR * (one.sessions - 1))
    if one.near < max(LEAST_NEAR, TIMES * alone):
        return
    yield Advice(
        f"sessions run in lock step: {share_of(one.near)} of the transactions begin within 2 % of a transaction's time"
        f" after another session's, where independent sessions would in {share_of(alone)}",
        (
            Evidence("starts just after another session's", one.near, "ratio", "calls, started_ns, base arm"),
            Evidence("of independent sessions", alone, "ratio", "1 - exp(-0.02 x (sessions - 1))"),
            Evidence("sessions", one.sessions, "count", "manifest.json, arms"),
        ),
        "all transactions come at once, then none: queues and waits come from bursts, which real users do not cause",
        ("-- an open loop with random arrivals: [load] rate_per_s; or random pauses between transactions",),
        subject="sessions",
    )


RULE = benchmark(
    "lock_step",
    "Clients in lock step",
    "30 % or more of the transactions begin shortly after a transaction of another session (within 2 % of the mean "
    "transaction time), and these are four times as many as with independent sessions",
    "an open loop at the same rate has the same latencies",
    (Measurements,),
    judge,
    source="Schroeder, Wierman, Harchol-Balter, Open Versus Closed (NSDI 2006; read 2025)",
)
