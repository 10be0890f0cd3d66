"""Rule: wal_buffers was full."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import MIB, count, size
from dbdyno.advise.kinds import Setting, Wal
from dbdyno.advise.rule import Advice, Evidence, Rule

LEAST, MOST_BYTES = 1000, 64 * MIB


def judge(facts: Facts) -> Iterator[Advice]:
    """Yield a finding if sessions had to write WAL themselves for lack of a free buffer, once per MB of WAL or more."""
    wal, buffers = facts.row_of(Wal), facts.setting("wal_buffers")
    full = wal.buffers_full
    if full is None or buffers is None or full < LEAST or full * MIB < wal.bytes or buffers.bytes >= MOST_BYTES:
        return
    wanted = f"{64 if buffers.bytes >= 16 * MIB else 16}MB"
    yield Advice(
        f"{count(full)} times a session found no free WAL buffer ({size(buffers.bytes)}) and wrote the WAL itself",
        (
            Evidence("wal_buffers_full", full, "count", "pg_stat_wal.wal_buffers_full"),
            Evidence("WAL", wal.bytes, "bytes", "pg_stat_wal.wal_bytes"),
            Evidence("wal_buffers", buffers.bytes, "bytes", "pg_settings"),
        ),
        "sessions no longer do these writes; a bulk load gains, but small transactions flush at commit anyway",
        (f"alter system set wal_buffers = '{wanted}'  -- takes a restart",),
        level="hint",
        subject="wal_buffers",
        proposed=wanted,
    )


RULE = Rule(
    name="wal_buffers",
    family="wal",
    title="WAL buffers that were full",
    reads=(Setting, Wal),
    condition="wal_buffers_full is 1,000 or more and at least one per MB of WAL; wal_buffers is below 64 MB",
    expects="the WAL writes that sessions do themselves while they insert",
    risk="the setting needs memory and a restart",
    source="PostgreSQL documentation, Write Ahead Log and pg_stat_wal (2025)",
    refuted="the bulk load takes as long with the larger value",
    judge=judge,
    setting="wal_buffers",
)
