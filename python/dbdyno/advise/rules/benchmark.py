"""What makes a benchmark's figures say less than they seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Benchmark, Setting
from dbdyno.advise.rule import Advice, Evidence, Rule, Unjudged
from dbdyno.advise.words import size, span

WRITES = ("simple-update", "tpcb-like")
CYCLES = 3
_TAIL = re.compile(r"p9\d*(\.\d+)?|max")


def _in_cache(facts: Facts) -> Iterator[Advice | Unjudged]:
    one, buffers = facts.one(Benchmark), facts.setting("shared_buffers")
    if one.data_bytes is None or buffers is None:
        yield Unjudged("size of the data or shared_buffers are not in the manifest")
        return
    if one.data_bytes > buffers.bytes:
        return
    yield Advice(
        f"the data ({size(one.data_bytes)}) fits in shared_buffers ({size(buffers.bytes)}): no read reaches a device",
        (
            Evidence("data", one.data_bytes, "bytes", "manifest.json, targets, database_bytes, and 16 MiB per scale"),
            Evidence("shared_buffers", buffers.bytes, "bytes", "manifest.json, targets, settings"),
            Evidence("memory of the host", one.memory_bytes, "bytes", "manifest.json, targets, host_memory_bytes"),
        ),
        "a test of processors and of the log; it says nothing about storage for data, or about cache sizes",
        ("-- to test reads: data of twice the memory; a larger scale, or shared_buffers and memory made smaller",),
        level="hint",
        subject="data",
    )


def _closed(facts: Facts) -> Iterator[Advice | Unjudged]:
    one = facts.one(Benchmark)
    if not one.metric:
        yield Unjudged("the manifest names no metric of the verdict")
        return
    if not one.is_closed or not _TAIL.fullmatch(one.metric):
        return
    yield Advice(
        f"the verdict is on {one.metric}, and the load is a closed loop: sessions that wait send nothing meanwhile",
        (
            Evidence("metric of the verdict", one.metric, "text", "manifest.json, verdict"),
            Evidence("rate", "none", "text", "manifest.json, plan, load"),
        ),
        "a stall of s seconds hides s × rate requests that users would have felt: the tail is too good",
        ("-- in the plan: [load] rate_per_s = ... below the peak: an open loop counts from the intended start",),
        subject=one.metric,
    )


def _checkpoints(facts: Facts) -> Iterator[Advice | Unjudged]:
    one, timeout = facts.one(Benchmark), facts.setting("checkpoint_timeout")
    if one.builtin not in WRITES or timeout is None:
        return
    cycle_s = timeout.ms / 1000
    if one.wall_s >= CYCLES * cycle_s:
        return
    yield Advice(
        f"the run wrote for {span(one.wall_s)}, less than three checkpoints by time ({span(cycle_s)} each)",
        (
            Evidence("run", one.wall_s, "span", "manifest.json, wall_s"),
            Evidence("checkpoint_timeout", cycle_s, "span", "manifest.json, targets, settings"),
            Evidence("workload", one.builtin, "text", "manifest.json, plan"),
        ),
        "writes and full-page images of checkpoints are hardly in the figures; both arms miss them alike",
        ("-- a longer run (--full), or a claim about commits and processors only",),
        level="hint",
        subject="checkpoints",
    )


def _rule(name: str, title: str, condition: str, refuted: str, reads: tuple[type, ...], judge: object) -> Rule:
    return Rule(
        name=name,
        family="benchmark",
        title=title,
        reads=reads,
        condition=condition,
        expects="figures that hold for more than this run",
        risk="a longer run, or more data",
        source="pgbench manual, Good Practices (2025); wrk2 on coordinated omission",
        refuted=refuted,
        judge=judge,  # type: ignore[arg-type]
    )


RULES = (
    _rule(
        "data_in_cache",
        "Data that fits in shared_buffers",
        "the database and the tables of a built-in workload are no larger than shared_buffers",
        "the counters of the run show reads",
        (Benchmark, Setting),
        _in_cache,
    ),
    _rule(
        "closed_loop",
        "A closed loop for a claim about the tail of latency",
        "the verdict is on a quantile from p90 on or the maximum, and an arm has no rate",
        "the same quantile at a rate below the peak is no larger",
        (Benchmark,),
        _closed,
    ),
    _rule(
        "no_checkpoints",
        "Too short for checkpoints",
        "a built-in workload that writes, and a run shorter than three times checkpoint_timeout",
        "the metrics of the run count three checkpoints, asked for by the WAL",
        (Benchmark, Setting),
        _checkpoints,
    ),
)
