"""Rule: innodb_buffer_pool_size compared with pages that had to be read again and the time of these reads."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.engines.mariadb.queries import DATA_FILES
from dbdyno.advise.engines.mariadb.window import file_reads, statement_ms
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, duration, setting_size, share
from dbdyno.advise.kinds import Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_SHARE = 0.10
PAGE_CACHE_S = 0.0001
"""Maximum time [s] of a read that the page cache serves; longer reads come from a device."""


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if pages were read again: more pages were read than the pool holds."""
    pool, page = facts.setting("innodb_buffer_pool_size"), facts.setting("innodb_page_size")
    status = facts.row_of(Status)
    reads = status.get("innodb_buffer_pool_reads")
    if pool is None or page is None or reads is None:
        return
    pages = pool.bytes // page.bytes
    again = reads - pages
    if again < pages:
        return
    total, files = statement_ms(facts), file_reads(facts)
    for one in (total, files):
        if isinstance(one, InsufficientEvidence):
            yield one
            return
    assert isinstance(files, FileIo) and not isinstance(total, InsufficientEvidence)
    each_s = files.read_ms / files.reads / 1e3
    gain = min(reads * each_s * 1e3 / total, 1.0)
    if gain >= LEAST_SHARE:
        yield _advice(pool, reads, again, each_s, total, gain)


def _advice(pool: Setting, reads: int, again: int, each_s: float, total: float, gain: float) -> Advice:
    cached = each_s < PAGE_CACHE_S
    reason = (
        "reads are that short because a lower cache answers them: a change only moves memory between the caches"
        if cached
        else "the reads come from a device"
    )
    wanted = setting_size(2 * pool.bytes)
    return Advice(
        f"reading pages takes {share(gain)} of the time of statements, and {count(again)} of these pages had been in "
        f"the buffer pool before",
        (
            Evidence("innodb_buffer_pool_size", pool.bytes, "bytes", "global variables"),
            Evidence("pages read", reads, "count", "global status, Innodb_buffer_pool_reads"),
            Evidence("read again", again, "count", "pages read, less those that the pool holds"),
            Evidence("time of a read", each_s * 1e9, "ns", f"file_summary_by_event_name, {DATA_FILES}"),
            Evidence("time of statements", total * 1e6, "ns", "events_statements_summary_by_digest, SUM_TIMER_WAIT"),
        ),
        f"if everything fitted: {share(gain)} of the time of statements, and the untimed work of each read (freeing a "
        f"page, a checksum); a read takes {duration(each_s)}: {reason}",
        (
            f"set global innodb_buffer_pool_size = {_bytes(wanted)}  -- {wanted}; takes effect at once, in steps",
            f"-- and in the server's configuration: innodb_buffer_pool_size = {wanted.removesuffix('B')}",
        ),
        level="hint" if cached else "warning",
        stake=gain,
        subject="innodb_buffer_pool_size",
    )


def _bytes(wanted: str) -> int:
    number = int(wanted[:-2])
    return number * 1024 ** (3 if wanted.endswith("GB") else 2)


RULE = Rule(
    name="buffer_pool",
    family="memory",
    title="Pages that are read again because the buffer pool is small",
    reads=(Setting, Status, Digest, FileIo),
    condition="pages read again are at least as many as the pool holds, and reads take 10 % of the time of statements",
    expects="the time of the reads that a larger pool avoids; nothing if the working set does not fit into it either",
    risk="less memory is left for other programs and the page cache",
    source="MariaDB documentation, InnoDB Buffer Pool and Performance Schema (2025)",
    refuted="pages read per statement are the same with both sizes after the warm-up",
    judge=judge,
    engines=("mariadb",),
)
