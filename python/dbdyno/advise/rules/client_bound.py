"""Rule: the client and not the server limits the rate."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share as share_of
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence

LEAST_SHARE = 0.5
LEAST_BUSY = 0.8


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if sessions wait for their client, or the client's threads are fully busy."""
    one = facts.row_of(Measurements)
    waiting = sum(share for _, event, share in one.waits if event == "ClientRead")
    busy = one.client_cores / one.client_threads if one.client_cores and one.client_threads else None
    if waiting < LEAST_SHARE and (busy is None or busy < LEAST_BUSY):
        return
    said = f"the server waits for its client {share_of(waiting)} of a transaction's time"
    if waiting < LEAST_SHARE and busy is not None:
        said = f"the load generator's threads are busy {share_of(busy)} of the time"
    yield Advice(
        said,
        (
            Evidence("ClientRead inside of transactions", waiting, "ratio", "waits and calls, base arm"),
            Evidence("processors used by the client", one.client_cores, "number", "blocks, report, cpu_ns / wall_ns"),
            Evidence("its threads", one.client_threads, "count", "blocks, report, threads"),
        ),
        "a faster server would not improve these figures: the client limits them",
        ("-- fewer round trips or no pauses inside a transaction; more sessions; the client on a separate host",),
        subject="client",
    )


RULE = benchmark(
    "client_bound",
    "The client limits the rate",
    "sessions wait for their client for half of a transaction's time or more, or the load generator's threads use a "
    "processor for 80 % of the time",
    "a second client beside this one does not raise the rate",
    (Measurements,),
    judge,
)
