"""Rule: page tables of a large shared_buffers without huge pages."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import MIB, size
from dbdyno.advise.kinds import Load, Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST_BYTES = 256 * MIB
SMALL_PAGE, ENTRY = 4096, 8


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if the page tables are large: a session that touches all buffers needs 8 bytes per 4 kB page."""
    buffers, load = facts.setting("shared_buffers"), facts.row_of(Load)
    status = facts.setting("huge_pages_status") or facts.setting("huge_pages")
    if buffers is None or status is None or status.value != "off":
        return
    tables = buffers.bytes // SMALL_PAGE * ENTRY * load.clients
    if tables < LEAST_BYTES:
        return
    yield Advice(
        f"without huge pages {load.clients} sessions need up to {size(tables)} of page tables for"
        f" {size(buffers.bytes)} of shared buffers",
        (
            Evidence("shared_buffers", buffers.bytes, "bytes", "pg_settings"),
            Evidence(status.name, status.value, "text", "pg_settings"),
            Evidence("client sessions", load.clients, "count", "pg_stat_activity, one look"),
            Evidence("size of page tables, at most", tables, "bytes", "shared_buffers / 4 kB × 8 B × sessions"),
        ),
        "that memory, and fewer TLB misses; only a test on the machine shows how much time that saves",
        (
            "-- vm.nr_hugepages: shared_memory_size_in_huge_pages of the server (PostgreSQL 15 and later)",
            "alter system set huge_pages = 'on'  -- takes a restart; 'try' falls back without a word",
        ),
        level="hint",
        subject="huge_pages",
        proposed="on",
    )


RULE = Rule(
    name="huge_pages",
    family="memory",
    title="Page tables without huge pages",
    reads=(Setting, Load),
    condition="huge pages are off, and shared_buffers / 4 kB × 8 B × sessions is 256 MB or more",
    expects="the memory of the page tables; less time in address translation",
    risk="with huge_pages = on, the server does not start if the kernel has too few of them",
    source="PostgreSQL documentation, Linux Huge Pages (2025); derived arithmetic",
    refuted="PageTables in /proc/meminfo is small at full load",
    judge=judge,
    setting="huge_pages",
)
