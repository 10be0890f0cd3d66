"""Rule: no read reaches a device or the file system."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share as share_of
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

LEAST_READS = 0.01


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if there is less than one file read per hundred transactions, and no wait for reads."""
    one = facts.row_of(Measurements)
    if one.reads is None:
        yield InsufficientEvidence(
            "the server's processes were not seen: it is on another host", "run dbdyno on the server's host"
        )
        return
    waited = sum(share for kind, _, share in one.waits if kind == "data read")
    if one.reads >= LEAST_READS or waited >= LEAST_READS:
        return
    yield Advice(
        f"no physical reads: a transaction reads {one.reads:.2g} times from a file, and waits {share_of(waited)} of its"
        " time for reads",
        (
            Evidence("read calls per transaction", one.reads, "number", "analysis.json, resources, read_calls"),
            Evidence("time waiting for reads", waited, "ratio", "waits and calls, base arm, class data read"),
        ),
        "the figures do not depend on data storage, its cache or read-ahead",
        ("-- to test reads, in all arms: data twice as large as memory, or smaller shared_buffers and memory",),
        level="hint",
        subject="reads",
    )


RULE = benchmark(
    "no_physical_io",
    "No physical reads",
    "the sessions' processes read from files less than once in 100 transactions, and waits for reads are under 1 % of "
    "the time",
    "the same run with cold caches has the same figures",
    (Measurements,),
    judge,
)
