"""Rule: the checkpoints are outside the measured period."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark, rows_written
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, duration
from dbdyno.advise.kinds import Benchmark, Measurements, Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence

CYCLES = 3
LEAST_WRITTEN = 0.1
"""Minimum rows written per transaction for the load to count as writing."""


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if there were fewer than three checkpoints while rows were written."""
    one, run, timeout = facts.row_of(Measurements), facts.row_of(Benchmark), facts.setting("checkpoint_timeout")
    if one.checkpoints is None or one.written is None:
        yield InsufficientEvidence("this run did not count checkpoints", "counters = true under [watch]")
        return
    if one.written < LEAST_WRITTEN or one.checkpoints >= CYCLES:
        return
    cycle = f" (checkpoint_timeout {duration(timeout.ms / 1000)})" if timeout else ""
    yield Advice(
        f"the run took {duration(run.wall_s)} and contained {one.checkpoints} checkpoint"
        f"{'' if one.checkpoints == 1 else 's'}{cycle}",
        (
            Evidence("checkpoints", one.checkpoints, "count", "metrics, checkpoint counters, blocks that count"),
            rows_written(one),
            Evidence("run", run.wall_s, "span", "manifest.json, wall_s"),
        ),
        f"the figures of {count(one.transactions)} transactions hardly contain the writes and full-page images of "
        f"checkpoints, in all arms alike",
        ("-- a longer run (--full), a smaller max_wal_size in all arms, or a claim about commits and processors only",),
        level="hint",
        subject="checkpoints",
    )


RULE = benchmark(
    "no_checkpoints",
    "Checkpoints outside the measured time",
    "transactions write a tenth of a row or more, and the blocks that count saw fewer than three checkpoints",
    "a run with three checkpoints has the same figures",
    (Measurements, Benchmark, Setting),
    judge,
)
