"""Rule: tables that use more pages than their rows need, according to an estimate, which is labelled as such."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import block_bytes, count, share, size
from dbdyno.advise.kinds import Database, Setting, Table, Width
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_PAGES, LEAST_SPARE, LEAST_SCANS, MOST = 1000, 0.4, 10, 10
PAGE_HEAD, ROW_HEAD, POINTER, ALIGNED = 24, 24, 4, 8


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield bloated tables that are scanned completely, most spare pages first; look-ups do not suffer from bloat."""
    widths = {one.table: one for one in facts.rows_of(Width)}
    block = block_bytes(facts)
    found = []
    for one in facts.rows_of(Table):
        width = widths.get(one.name)
        rows = one.estimated_rows
        if width is None or not one.pages or one.pages < LEAST_PAGES or rows is None or rows < 0 or not width.known:
            continue
        needed = pages(rows, width.bytes, block, float(one.option("fillfactor") or 100))
        spare = one.pages - needed
        if spare >= LEAST_SPARE * one.pages and spare >= LEAST_PAGES and one.seq_scans >= LEAST_SCANS:
            found.append((spare, one, width, needed))
    for spare, one, width, needed in sorted(found, key=lambda row: -row[0])[:MOST]:
        yield _advice(facts, one, width, spare, needed)


def pages(rows: float, row_bytes: float, block: int, fillfactor: float) -> int:
    """Return the number of pages that rows take, with a header and pointer for each row, aligned to eight bytes.

    >>> pages(1000, 100, 8192, 100)  # 132 bytes each, 61 on a page
    17
    """
    each = ROW_HEAD + -(-row_bytes // ALIGNED) * ALIGNED + POINTER
    a_page = max(int((block - PAGE_HEAD) * fillfactor / 100 / each), 1)
    return int(-(-rows // a_page))


def _advice(facts: Facts, table: Table, width: Width, spare: int, needed: int) -> Advice:
    block = block_bytes(facts)
    timed = [
        each for each in facts.rows_of(Database) if each.is_current and each.read_ms and each.reads and each.active_ms
    ]
    gain = None
    words = "reads are not timed, or nothing was read from outside of shared_buffers: no time is known"
    if timed and table.heap_reads:
        each_ms = (timed[0].read_ms or 0.0) / timed[0].reads
        gain = min(table.heap_reads * each_ms * spare / (table.pages or 1) / (timed[0].active_ms or 1.0), 1.0)
        words = (
            f"{share(gain)} of active time goes into reading its surplus pages; the CPU time to scan "
            f"them is not counted"
        )
    return Advice(
        f"{table.name} takes {count(table.pages or 0)} pages, and its rows are estimated to need {count(needed)}:"
        f" {size(spare * block)} are read unnecessarily by each scan",
        (
            Evidence("pages", table.pages, "count", f"pg_class, {table.name}, relpages"),
            Evidence("rows (the planner's)", table.estimated_rows, "count", f"pg_class, {table.name}, reltuples"),
            Evidence("width of a row", width.bytes, "bytes", f"pg_stats, {table.name}, avg_width × (1 - null_frac)"),
            Evidence("pages needed, estimated", needed, "count", "rows × (width + 28), fillfactor"),
            Evidence("scans of the whole table", table.seq_scans, "count", f"pg_stat_user_tables, {table.name}"),
        ),
        f"{words}. An estimate from statistics: it counts a tenth of padding as bloat, and stale statistics mislead "
        f"it; look-ups gain nothing",
        (
            f"-- measure first: extension pgstattuple, pgstattuple_approx('{table.name}')",
            f"-- then vacuum full {table.name} (exclusive lock, twice the space), or "
            f"pg_repack; autovacuum prevents new bloat",
        ),
        level="hint",
        stake=gain,
        subject=table.name,
    )


RULE = Rule(
    name="bloat",
    family="vacuum",
    title="Tables with more pages than their rows need (estimated)",
    reads=(Setting, Database, Table, Width),
    condition="the planner's row count and the widths in pg_stats show that 40 % of the pages, and at least 1,000 "
    "pages, are not needed; and the table had 10 full scans",
    expects="time of full scans, but not of look-ups",
    risk="vacuum full locks the table for as long as it copies it",
    source="PostgreSQL documentation, Database Page Layout and pgstattuple (2025)",
    refuted="pgstattuple_approx finds less free space, or a scan of a copy reads as many pages",
    judge=judge,
)
