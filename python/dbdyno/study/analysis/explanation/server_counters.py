"""Server counters of an arm per transaction: blocks, rows, WAL, checkpoints, and scans by table.

Counters are read before and after a stretch of load. If arms alternate within a stretch, the counters belong to all
arms together, so no arm has counters here. If the run has only one arm, all counters belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dbdyno.evidence.run import Block
from dbdyno.study.analysis.explanation.fetched_rows import fetched_objects
from dbdyno.study.analysis.explanation.objects import ObjectCounters, transactions
from dbdyno.study.analysis.figure_data.pictures import has_table
from dbdyno.study.analysis.measured.measures import ArmMeasures

SESSION, GLOBAL = "session status", "global status"
"""Sources of MariaDB's counters: the load's own sessions, and the whole server."""
DATABASE = "pg_stat_database"
LATE_S = 1.2
"""Shortest stretch for reliable counters [s]; a session of PostgreSQL publishes its counters once a second."""
SEEN_LEAST = 0.5
"""Smallest share of the load's transactions that the server must have counted, if it counts transactions."""
_HANDLER = "handler_read_"
_READS = tuple(_HANDLER + way for way in ("first", "key", "last", "next", "prev", "rnd", "rnd_next"))
_MARIADB = (SESSION, GLOBAL)


def _both_scopes(*metrics: str) -> tuple[tuple[str, str], ...]:
    """Return these status variables twice: for the load's sessions and for the whole server."""
    return tuple((source, metric) for source in _MARIADB for metric in metrics)


TOTALS: dict[str, tuple[tuple[str, str], ...]] = {
    "transactions": ((DATABASE, "xact_commit"), (DATABASE, "xact_rollback")),
    "blocks_read": ((DATABASE, "blks_read"), (GLOBAL, "innodb_buffer_pool_reads")),
    "blocks_hit": ((DATABASE, "blks_hit"),),
    "blocks_asked": ((GLOBAL, "innodb_buffer_pool_read_requests"),),
    "rows_read": ((DATABASE, "tup_returned"), *_both_scopes(*_READS)),
    "rows_scanned": _both_scopes(f"{_HANDLER}rnd_next"),
    "rows_fetched": _both_scopes("rows_read"),
    "rows_written": (
        *((DATABASE, f"tup_{done}") for done in ("inserted", "updated", "deleted")),
        *_both_scopes(*(f"handler_{done}" for done in ("write", "update", "delete"))),
    ),
    "rows_sorted": _both_scopes("sort_rows"),
    "rows_temporary": _both_scopes("handler_tmp_write"),
    "read_ns": ((DATABASE, "blk_read_time"),),
    "temp_bytes": ((DATABASE, "temp_bytes"),),
    "wal_bytes": (("pg_stat_wal", "wal_bytes"), (GLOBAL, "innodb_os_log_written")),
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
"""Counters that are added up for each total; a total has the same name on every engine.

Counters of the load's sessions take precedence over counters of the whole server.
"""
_SPANS = """
select source, object, metric, sum(value), sum(last), sum(seconds) from (
  select block, source, object, metric, max(value) - min(value) as value, arg_max(value, at_ns) as last,
    (max(at_ns) - min(at_ns)) / 1e9 as seconds
  from metrics where arm = $1 and block in (select unnest($2::int[]))
    and source in ('pg_stat_database', 'pg_stat_wal', 'pg_stat_bgwriter', 'pg_stat_checkpointer', 'global status',
      'session status', 'pg_stat_user_tables', 'pg_stat_user_indexes', '/proc/stat')
  group by all having count(*) > 1)
group by all
"""


@dataclass(frozen=True)
class ArmCounters:
    """Counters of an arm per transaction.

    Attributes:
        totals: Totals per transaction, by name.
        tables: Counters of tables per transaction, by name.
        indexes: Counters of indexes per transaction, by name.
        count: Number of transactions.
        busy_ns: CPU time of the whole host per transaction [ns].
        seconds: Time over which the counters were collected [s].
    """

    totals: dict[str, float]
    tables: dict[str, ObjectCounters]
    indexes: dict[str, ObjectCounters]
    count: int
    busy_ns: float | None = None
    seconds: float = 0.0
    places: dict[str, str] = field(default_factory=dict)
    """Source of each total, and of `tables` if MariaDB counted them."""
    stretch_s: float = 0.0
    """Mean length of a stretch between two readings [s]."""

    @property
    def is_late(self) -> bool:
        """Return True if the counters were published too late and so miss much of the work in their stretch."""
        few = self.totals.get("transactions", 1.0) < SEEN_LEAST
        return DATABASE in self.places.values() and (few or self.stretch_s < LATE_S)

    def per_transaction(self, name: str) -> float | None:
        """Return a total per transaction; None if it was not counted."""
        return self.totals.get(name)

    def sources(self, *names: str) -> str:
        """Return the sources of these totals, as evidence names them."""
        return "metrics: " + ", ".join(dict.fromkeys(self.places[name] for name in names if name in self.places))

    @property
    def blocks(self) -> float | None:
        """Return the blocks that a transaction touched; None if they were not counted."""
        if "blocks_asked" in self.totals:
            return self.totals["blocks_asked"]
        found = [self.totals.get(name) for name in ("blocks_hit", "blocks_read")]
        return None if found[0] is None or found[1] is None else found[0] + found[1]


def counters_of(connection: Any, arm: ArmMeasures, *, alone: bool, warmup: Sequence[Block] = ()) -> ArmCounters | None:
    """Return the counters of an arm, or None if the arms share their stretches and cannot be distinguished.

    Args:
        connection: Connection to the evidence.
        arm: The arm.
        alone: True if the run has no other arm, so that all counters belong to this one.
        warmup: The run's warm-up blocks, in which MariaDB's rows by index are counted by arm if other blocks are
            shared.
    """
    if not has_table(connection, "metrics"):
        return None
    listed = [block.index for block in arm.blocks]
    rows = connection.execute(_SPANS, [arm.name, listed]).fetchall()
    if not rows and alone:
        rows = connection.execute(_SPANS, ["", listed]).fetchall()
    count = transactions(arm.blocks, arm.number)
    if not rows or not count:
        return None
    made = _counted_of(rows, count, len(listed))
    if made.tables:
        return made
    tables, indexes, place = fetched_objects(connection, arm, warmup, made.per_transaction("rows_fetched"))
    return replace(made, tables=tables, indexes=indexes, places=made.places | {"tables": place})


def _counted_of(rows: list[tuple[Any, ...]], count: int, blocks: int) -> ArmCounters:
    by_source: dict[str, dict[str, float]] = {}
    things: dict[str, dict[str, ObjectCounters]] = {"pg_stat_user_tables": {}, "pg_stat_user_indexes": {}}
    known: dict[tuple[str, str], list[str]] = {}
    for name, places in TOTALS.items():
        for place in places:
            known.setdefault(place, []).append(name)
    busy = 0.0
    for source, thing, metric, value, last, _ in rows:
        if source in things:
            one = things[source].setdefault(thing, ObjectCounters())
            one.per[metric] = value / count
            one.last[metric] = last / blocks
        elif source == "/proc/stat":
            busy += value if metric in ("cpu_user", "cpu_nice", "cpu_system") else 0.0
        for name in known.get((source, metric.lower()), ()):
            sums = by_source.setdefault(source, {})
            sums[name] = sums.get(name, 0.0) + value / count
    seconds = max(row[5] for row in rows)
    tables, indexes = things.values()
    totals, places_of = _preferred_totals(by_source)
    return ArmCounters(
        totals, tables, indexes, count, busy / count if busy else None, seconds, places_of, seconds / blocks
    )


def _preferred_totals(by_source: dict[str, dict[str, float]]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the totals by name, and the source of each.

    The counters of the load's sessions take precedence over those of the whole server, which include dbdyno's own
    queries.
    """
    totals: dict[str, float] = {}
    places: dict[str, str] = {}
    own = by_source.pop(SESSION, {})
    for source, sums in by_source.items():
        for name, value in sums.items():
            totals[name] = totals.get(name, 0.0) + value
            places[name] = source
    return totals | own, places | dict.fromkeys(own, SESSION)
