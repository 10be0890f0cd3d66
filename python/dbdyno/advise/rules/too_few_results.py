"""Rule: too few results, or results that are too similar."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import share as share_of
from dbdyno.advise.kinds import Measurements
from dbdyno.advise.rule import Advice, Evidence

LEAST_BLOCKS = 5
LEAST_SPREAD = 0.0005


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if there are fewer blocks than an interval needs, or the blocks do not differ at all."""
    one = facts.row_of(Measurements)
    rates = one.per_s
    spread = statistics.stdev(rates) / statistics.mean(rates) if len(rates) > 1 else None
    few = len(rates) < LEAST_BLOCKS
    if not few and (spread is None or spread >= LEAST_SPREAD):
        return
    said = f"{len(rates)} blocks are too few to say how repeatable the figures are"
    if not few and spread is not None:
        said = f"{len(rates)} blocks differ by {share_of(spread)}: a real server varies more, so something else sets"
        said += " the rate, such as a timer, a sleep or a limit"
    yield Advice(
        said,
        (
            Evidence("blocks that count", len(rates), "count", "blocks"),
            Evidence("spread of their rates", spread, "ratio", "calls, base arm, standard deviation / mean"),
        ),
        "no interval, or one that is far too narrow" if few else "the figure is the limit's, not the server's",
        ("--blocks 20",)
        if few
        else ("-- look for sleeps, rate limits and timers in the script, the client and the network",),
        subject="results",
    )


RULE = benchmark(
    "too_few_results",
    "Too few blocks, or rates that are too equal",
    "fewer than five blocks count, or the standard deviation of their rates is below 0.05 % of the mean",
    "a repetition with 20 blocks has the same interval",
    (Measurements,),
    judge,
)
