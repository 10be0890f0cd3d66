"""Rule: a closed loop is used to measure tail latency."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Benchmark
from dbdyno.advise.rule import Advice, Evidence

_TAIL = re.compile(r"p9\d*(\.\d+)?|max")


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if a closed loop's tail is judged: it omits the time that waiting clients would have seen."""
    one = facts.row_of(Benchmark)
    if not one.is_closed or not _TAIL.fullmatch(one.metric):
        return
    yield Advice(
        f"the verdict is on {one.metric}, and the load is a closed loop: sessions send nothing while they wait",
        (
            Evidence("metric of the verdict", one.metric, "text", "manifest.json, plan, judge"),
            Evidence("rate", "none", "text", "manifest.json, plan, load"),
        ),
        "a stall of s seconds hides s × rate requests that users would have noticed: the tail looks too good",
        ("-- in the plan: [load] rate_per_s = ... below the peak: an open loop counts from the intended start",),
        subject=one.metric,
    )


RULE = benchmark(
    "closed_loop",
    "A claim about tail latency from a closed loop",
    "the verdict is on a quantile from p90 on or the maximum, and an arm has no rate",
    "the same quantile in an open loop below the peak rate is no larger",
    (Benchmark,),
    judge,
    source="wrk2 on coordinated omission; pgbench manual, Good Practices (2025)",
)
