"""Rule: shared_buffers compared with blocks that had to be read again and the time of these reads."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import block_bytes, count, duration, setting_size, share
from dbdyno.advise.kinds import Database, Io, Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_SHARE = 0.10
PAGE_CACHE_S = 0.0001
"""Maximum time [s] of a read that the page cache serves; longer reads come from a device."""


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if many blocks had to be read again, and reading takes a notable share of the active time.

    From version 16 on, evictions show how many blocks were read again; in older versions, the reads in excess of the
    number of buffers show it.
    """
    buffers = facts.setting("shared_buffers")
    databases = facts.rows_of(Database)
    if buffers is None:
        return
    if any(one.read_ms is None for one in databases):
        yield InsufficientEvidence("reads are not timed", "track_io_timing = on")
        return
    active = [one.active_ms for one in databases if one.active_ms is not None]
    if not active:
        yield InsufficientEvidence("this version has no active_time in pg_stat_database", "PostgreSQL 14 or later")
        return
    active_ms, read_ms = sum(active), sum(one.read_ms or 0.0 for one in databases)
    reads = sum(one.reads for one in databases)
    blocks = buffers.bytes // block_bytes(facts)
    again = _evictions(facts) if Io in facts.rows else reads - blocks
    if reads == 0 or active_ms <= 0 or again < blocks or read_ms / active_ms < LEAST_SHARE:
        return
    yield _advice(buffers, reads, again, read_ms, active_ms)


def _evictions(facts: Facts) -> int:
    return sum(one.evictions for one in facts.rows_of(Io) if one.context == "normal" and one.object == "relation")


def _advice(buffers: Setting, reads: int, again: int, read_ms: float, active_ms: float) -> Advice:
    each_s, gain = read_ms / reads / 1000, min(read_ms / active_ms, 1.0)
    cached = each_s < PAGE_CACHE_S
    reason = (
        "reads are that short because the page cache answers them: a change saves only copies, and moves memory "
        "between the caches"
        if cached
        else "the reads come from a device"
    )
    wanted = setting_size(2 * buffers.bytes)
    return Advice(
        f"reading blocks takes {share(gain)} of the sessions' active time, and {count(again)} blocks had been in"
        " shared_buffers before",
        (
            Evidence("shared_buffers", buffers.bytes, "bytes", "pg_settings"),
            Evidence("blocks read", reads, "count", "pg_stat_database.blks_read, all databases"),
            Evidence("read again or evicted", again, "count", "blks_read minus shared_buffers; from 16 on, evictions"),
            Evidence("time of reads", read_ms * 1e6, "ns", "pg_stat_database.blk_read_time"),
            Evidence("active time", active_ms * 1e6, "ns", "pg_stat_database.active_time"),
        ),
        f"if everything fitted: {share(gain)} of active time, and the untimed work of each read (freeing a buffer, a "
        f"checksum); a read takes {duration(each_s)}: {reason}",
        (f"alter system set shared_buffers = '{wanted}'  -- takes a restart",),
        level="hint" if cached else "warning",
        stake=gain,
        subject="shared_buffers",
        proposed=wanted,
    )


RULE = Rule(
    name="shared_buffers",
    family="memory",
    title="Blocks that are read again because shared_buffers is small",
    reads=(Setting, Database),
    condition="reads take 10 % of active time or more, and blocks read again (from version 16: evicted in normal "
    "context) are at least as many as shared_buffers holds",
    expects="the time of the reads that a larger cache avoids; nothing if the working set does not fit into it either",
    risk="the page cache loses the memory; large scans use a separate ring buffer and gain nothing; the "
    "change needs a restart",
    source="PostgreSQL documentation, Resource Consumption and pg_stat_io (2025)",
    refuted="read time per transaction is the same with both sizes after the warm-up",
    judge=judge,
    setting="shared_buffers",
)
