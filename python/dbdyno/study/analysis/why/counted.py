"""What the server counted beside an arm, per transaction: blocks, rows, WAL, checkpoints, and scans by table.

Counters are read before and after a stretch of load. Where arms alternate inside of a stretch they are of all arms,
and of none alone: then nothing is known here. A run with one arm has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.drawn.pictures import has_table
from dbdyno.study.analysis.measured.measures import ArmMeasures

TOTALS: dict[str, tuple[tuple[str, str], ...]] = {
    "blocks_read": (("pg_stat_database", "blks_read"), ("global status", "innodb_buffer_pool_reads")),
    "blocks_hit": (("pg_stat_database", "blks_hit"),),
    "blocks_asked": (("global status", "innodb_buffer_pool_read_requests"),),
    "rows_read": (("pg_stat_database", "tup_returned"), ("global status", "handler_read_rnd_next")),
    "read_ns": (("pg_stat_database", "blk_read_time"),),
    "temp_bytes": (("pg_stat_database", "temp_bytes"),),
    "wal_bytes": (("pg_stat_wal", "wal_bytes"), ("global status", "innodb_os_log_written")),
    "full_pages": (("pg_stat_wal", "wal_fpi"),),
    "checkpoints": (
        ("pg_stat_bgwriter", "checkpoints_req"),
        ("pg_stat_bgwriter", "checkpoints_timed"),
        ("pg_stat_checkpointer", "num_requested"),
        ("pg_stat_checkpointer", "num_timed"),
    ),
    "checkpoint_ns": (
        ("pg_stat_bgwriter", "checkpoint_write_time"),
        ("pg_stat_bgwriter", "checkpoint_sync_time"),
        ("pg_stat_checkpointer", "write_time"),
        ("pg_stat_checkpointer", "sync_time"),
    ),
}
"""What is known by one name on every engine: the counters that are added up for it."""
_SPANS = """
select source, object, metric, sum(value), sum(last), sum(seconds) from (
  select block, source, object, metric, max(value) - min(value) as value, arg_max(value, at_ns) as last,
    (max(at_ns) - min(at_ns)) / 1e9 as seconds
  from metrics where arm = $1 and block in (select unnest($2::int[]))
    and source in ('pg_stat_database', 'pg_stat_wal', 'pg_stat_bgwriter', 'pg_stat_checkpointer', 'global status',
      'pg_stat_user_tables', 'pg_stat_user_indexes', '/proc/stat')
  group by all having count(*) > 1)
group by all
"""


@dataclass(frozen=True)
class Object:
    """A table or an index: what was counted of it per transaction, and the last value of each (rows, indexes)."""

    per: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)

    @property
    def came(self) -> float:
        """Rows inserted less those deleted since the server counts: exact where live rows are counted twice."""
        return self.last.get("n_tup_ins", 0.0) - self.last.get("n_tup_del", 0.0)


@dataclass(frozen=True)
class Counted:
    """Per transaction of an arm: totals by name, tables, indexes; `count` are the transactions, `busy_ns` is the CPU of
    the whole host for each, `seconds` how long it was counted."""

    totals: dict[str, float]
    tables: dict[str, Object]
    indexes: dict[str, Object]
    count: int
    busy_ns: float | None = None
    seconds: float = 0.0

    def per(self, name: str) -> float | None:
        """A total per transaction; None where nobody counted."""
        return self.totals.get(name)

    @property
    def blocks(self) -> float | None:
        """Blocks that a transaction touched."""
        if "blocks_asked" in self.totals:
            return self.totals["blocks_asked"]
        found = [self.totals.get(name) for name in ("blocks_hit", "blocks_read")]
        return None if found[0] is None or found[1] is None else found[0] + found[1]


def counted(connection: Any, arm: ArmMeasures, *, alone: bool) -> Counted | None:
    """What was counted of an arm; `alone`: the run has no other. None where arms share their stretches."""
    if not has_table(connection, "metrics"):
        return None
    listed = [block.index for block in arm.blocks]
    rows = connection.execute(_SPANS, [arm.name, listed]).fetchall()
    if not rows and alone:
        rows = connection.execute(_SPANS, ["", listed]).fetchall()
    count = sum(own["transactions"] for own in _reports(arm.blocks, arm.number))
    return _made(rows, count, len(listed)) if rows and count else None


def _reports(blocks: Sequence[Block], number: int) -> list[dict[str, Any]]:
    return [own for block in blocks for own in block.report["arms"] if own["arm"] == number]


def _made(rows: list[tuple[Any, ...]], count: int, blocks: int) -> Counted:
    totals: dict[str, float] = {}
    things: dict[str, dict[str, Object]] = {"pg_stat_user_tables": {}, "pg_stat_user_indexes": {}}
    known = {place: name for name, places in TOTALS.items() for place in places}
    busy = 0.0
    for source, thing, metric, value, last, _ in rows:
        if source in things:
            one = things[source].setdefault(thing, Object())
            one.per[metric] = value / count
            one.last[metric] = last / blocks
        elif source == "/proc/stat":
            busy += value if metric in ("cpu_user", "cpu_nice", "cpu_system") else 0.0
        elif name := known.get((source, metric.lower())):
            totals[name] = totals.get(name, 0.0) + value / count
    seconds = max(row[5] for row in rows)
    tables, indexes = things.values()
    return Counted(totals, tables, indexes, count, busy / count if busy else None, seconds)
