"""Rule: reads are not timed."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count
from dbdyno.advise.kinds import Database, Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST = 1_000_000


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if there are many reads and their time is not measured."""
    timing = facts.setting("track_io_timing")
    reads = sum(one.reads for one in facts.rows_of(Database))
    if timing is None or timing.is_on or reads < LEAST:
        return
    yield Advice(
        f"{count(reads)} blocks were read and none was timed",
        (
            Evidence("blocks read", reads, "count", "pg_stat_database.blks_read, all databases"),
            Evidence("track_io_timing", timing.value, "text", "pg_settings"),
        ),
        "no time directly: rules on memory and costs can then be judged; it costs two clock readings per read",
        ("alter system set track_io_timing = on", "select pg_reload_conf()"),
        level="hint",
        subject="track_io_timing",
        proposed="on",
    )


RULE = Rule(
    name="track_io_timing",
    family="measurement",
    title="Reads that are not timed",
    reads=(Setting, Database),
    condition="track_io_timing is off and a million blocks or more were read",
    expects="evidence for other rules",
    risk="the cost may be noticeable if pg_test_timing shows more than 100 ns per reading",
    source="PostgreSQL documentation, Run-time Statistics and pg_test_timing (2025)",
    refuted="pg_test_timing shows a slow clock",
    judge=judge,
    setting="track_io_timing",
    gains=False,
)
