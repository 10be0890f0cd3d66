"""Rule: the data fits into shared_buffers."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.benchmarks import benchmark
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import size
from dbdyno.advise.kinds import Benchmark, Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Report a benchmark whose data fit in shared_buffers."""
    one, buffers = facts.row_of(Benchmark), facts.setting("shared_buffers")
    if one.data_bytes is None or buffers is None:
        yield InsufficientEvidence("size of the data or shared_buffers are not in the manifest")
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
        "this tests processors and the log; it says nothing about data storage or cache sizes",
        ("-- to test reads: data twice as large as memory; a larger scale, or smaller shared_buffers and memory",),
        level="hint",
        subject="data",
    )


RULE = benchmark(
    "data_in_cache",
    "Data that fits in shared_buffers",
    "the database and the tables of a built-in workload are no larger than shared_buffers",
    "the counters of the run show reads",
    (Benchmark, Setting),
    judge,
)
