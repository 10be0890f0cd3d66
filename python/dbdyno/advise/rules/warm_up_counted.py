"""Rule: warm-up is included in the figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

LEAST_BLOCKS = 6
APART = 0.15


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if the first counted blocks are slower than all later blocks."""
    one = facts.row_of(Measurements)
    if len(one.per_s) < LEAST_BLOCKS:
        yield InsufficientEvidence(f"{len(one.per_s)} blocks: too few to detect a warm-up", "--blocks 8")
        return
    rest = one.per_s[2:]
    slow = [at for at, rate in enumerate(one.per_s[:2]) if rate < (1 - APART) * min(rest)]
    if 0 not in slow:
        return
    middle = statistics.median(rest)
    yield Advice(
        f"warm-up is in the figures: the first {'two blocks' if len(slow) == 2 else 'block'} that count"
        f"{'s' if len(slow) == 1 else ''} had {count(one.per_s[0])} transactions a second, the later ones"
        f" {count(middle)}, none fewer than {count(min(rest))}",
        (
            Evidence("first block", one.per_s[0], "per_s", "calls, base arm, first block that counts"),
            Evidence("median of the others", middle, "per_s", "calls, base arm"),
            Evidence("warm-up blocks", one.warmup_blocks, "count", "blocks"),
        ),
        "means and quantiles include the time in which caches filled; the longer the run, the less it matters",
        (f"-- [schedule] warmup_blocks = {one.warmup_blocks + 2}",),
        subject="warm-up",
    )


RULE = benchmark(
    "warm_up_counted",
    "Warm-up in the figures",
    "the first block that counts is 15 % slower than the slowest block after the second",
    "the figures without the first two blocks are the same",
    (Measurements,),
    judge,
)
