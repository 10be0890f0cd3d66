"""Counters of the engine and the machine at one instant, as rows of the `metrics` evidence.

From each statistics view, the columns that exist in this server version are read. A view that cannot be read (version,
extension, privilege) is skipped without affecting the others or raising an error. Nothing is reset. Values of
PostgreSQL's statistics are whole numbers: its milliseconds become nanoseconds, the kernel's sectors become bytes, and
timestamps become nanoseconds since 1970.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

SECTOR_BYTES = 512
"""Sector size used in /proc/diskstats, independent of the disk's own sector size."""

DISK_FIELDS = (
    ("reads", 0, "count", 1),
    ("read_bytes", 2, "bytes", SECTOR_BYTES),
    ("read_time", 3, "ns", 1_000_000),
    ("writes", 4, "count", 1),
    ("write_bytes", 6, "bytes", SECTOR_BYTES),
    ("write_time", 7, "ns", 1_000_000),
    ("busy_time", 9, "ns", 1_000_000),
    ("weighted_time", 10, "ns", 1_000_000),
    ("flushes", 15, "count", 1),
    ("flush_time", 16, "ns", 1_000_000),
)
"""Fields of /proc/diskstats as (metric, index after the device name, unit, factor).

Source: https://docs.kernel.org/admin-guide/iostats.html
"""

CPU_STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")

MEMORY_GAUGES = ("MemAvailable", "MemFree", "Cached", "Dirty", "Writeback")

GAUGES = frozenset({"numbackends", "op_bytes", "n_live_tup", "indexes", "size_bytes"})


@dataclass(frozen=True, slots=True)
class Metric:
    """One value of one metric at one instant.

    Attributes:
        source: The view or file from which the value was read.
        object_type: Type of the object that the value belongs to.
        object: Name of that object.
        metric: Name of the metric.
        at_ns: UNIX time of the reading, in ns.
        value: The value.
        unit: `count`, `ns`, `bytes` or `ratio`.
        kind: `counter` (only differences are meaningful) or `gauge`.
    """

    source: str
    object_type: str
    object: str
    metric: str
    at_ns: int
    value: int | float
    unit: str
    kind: str


VIEWS: tuple[tuple[str, str, tuple[str, ...], LiteralString], ...] = (
    (
        "pg_stat_database",
        "database",
        ("datname",),
        "select * from pg_stat_database where datname = current_database()",
    ),
    ("pg_stat_wal", "instance", (), "select * from pg_stat_wal"),
    (
        "pg_stat_io",
        "actor",
        ("backend_type", "object", "context"),
        "select * from pg_stat_io where coalesce(reads, 0) + coalesce(writes, 0)"
        " + coalesce(extends, 0) + coalesce(hits, 0) + coalesce(fsyncs, 0) > 0",
    ),
    ("pg_stat_bgwriter", "instance", (), "select * from pg_stat_bgwriter"),
    ("pg_stat_checkpointer", "instance", (), "select * from pg_stat_checkpointer"),
    (
        "wal",
        "instance",
        # A run may have several servers, each with a separate WAL.
        ("port",),
        "select current_setting('port') as port, pg_current_wal_insert_lsn() - '0/0'::pg_lsn as insert_bytes,"
        " pg_current_wal_flush_lsn() - '0/0'::pg_lsn as flush_bytes",
    ),
    (
        "pg_stat_user_tables",
        "table",
        ("schemaname", "relname"),
        "select schemaname, relname, seq_scan, seq_tup_read, coalesce(idx_scan, 0) as idx_scan,"
        " coalesce(idx_tup_fetch, 0) as idx_tup_fetch, n_live_tup, n_tup_ins, n_tup_del,"
        " (select relpages from pg_class where oid = relid) * current_setting('block_size')::bigint as size_bytes,"
        " (select count(*) from pg_index where indrelid = relid and indisvalid) as indexes"
        " from pg_stat_user_tables where seq_scan + coalesce(idx_scan, 0) > 0"
        " order by coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) desc, relid limit 20",
    ),
    (
        "pg_stat_user_indexes",
        "index",
        ("schemaname", "relname", "indexrelname"),
        # pg_relation_size would wait for a table that is locked; this size is as of the last VACUUM or ANALYZE.
        "select schemaname, relname, indexrelname, idx_scan,"
        " (select relpages from pg_class where oid = indexrelid) * current_setting('block_size')::bigint as size_bytes"
        " from pg_stat_user_indexes where idx_scan > 0"
        " order by idx_scan desc, indexrelid limit 40",
    ),
)
"""Statistics views as (source, object type, columns that name the object, query)."""


def counters(conn: Connection, clock: Callable[[], int] = time.time_ns) -> list[Metric]:
    """Read the engine's counters now; a view that fails is left out. `conn` must be in autocommit mode."""
    import psycopg

    found: list[Metric] = []
    for source, object_type, keys, sql in VIEWS:
        try:
            cursor = conn.execute(sql)
        except psycopg.Error:
            continue
        at_ns = clock()
        columns = [column.name for column in cursor.description or ()]
        for row in cursor:
            values = dict(zip(columns, row, strict=True))
            thing = "/".join(str(values.pop(key)) for key in keys)
            found += [
                Metric(source, object_type, thing, name, at_ns, number, unit, kind)
                for name, value in values.items()
                for number, unit, kind in _measurements(name, value)
            ]
    return found


def host_counters(proc: Path = Path("/proc"), clock: Callable[[], int] = time.time_ns) -> list[Metric]:
    """Read this machine's counters now: CPU, disks, memory and load; files that are absent are skipped."""
    found: list[Metric] = []
    for reader in (_cpu, _disks, _memory, _load):
        with contextlib.suppress(OSError, ValueError, IndexError):
            found += reader(proc, clock())
    return found


def columns_of(rows: list[tuple[str, int, Metric]]) -> dict[str, list[Any]]:
    """Convert rows of (arm, block, metric) to columns of the `metrics` evidence."""
    metrics = [metric for _, _, metric in rows]
    return {
        "arm": [arm for arm, _, _ in rows],
        "block": [block for _, block, _ in rows],
        "source": [m.source for m in metrics],
        "object_type": [m.object_type for m in metrics],
        "object": [m.object for m in metrics],
        "metric": [m.metric for m in metrics],
        "at_ns": [m.at_ns for m in metrics],
        "value": [float(m.value) for m in metrics],
        "unit": [m.unit for m in metrics],
        "kind": [m.kind for m in metrics],
    }


def _measurements(name: str, value: Any) -> Iterator[tuple[int | float, str, str]]:
    """Yield (value, unit, kind) of one column, or nothing for text, NULL, booleans and `datid`."""
    if isinstance(value, datetime):
        yield round(value.timestamp() * 1e6) * 1000, "ns", "gauge"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or name == "datid":
        return
    kind = "gauge" if name in GAUGES else "counter"
    if name.endswith("_time"):
        yield round(value * 1_000_000), "ns", kind
    else:
        yield round(value), "bytes" if name.endswith("_bytes") else "count", kind


def _cpu(proc: Path, at_ns: int) -> Iterator[Metric]:
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    for line in (proc / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name == "cpu":
            for state, ticks in zip(CPU_STATES, fields, strict=False):
                value = int(ticks) * tick_ns
                yield Metric("/proc/stat", "host", "", f"cpu_{state}", at_ns, value, "ns", "counter")
        elif name in ("ctxt", "processes"):
            yield Metric("/proc/stat", "host", "", name, at_ns, int(fields[0]), "count", "counter")


def _disks(proc: Path, at_ns: int) -> Iterator[Metric]:
    for line in (proc / "diskstats").read_text().splitlines():
        _, _, name, *fields = line.split()
        if name.startswith(("loop", "ram", "zram")) or not any(int(field) for field in fields):
            continue
        for metric, index, unit, factor in DISK_FIELDS:
            if index < len(fields):
                value = int(fields[index]) * factor
                yield Metric("/proc/diskstats", "disk", name, metric, at_ns, value, unit, "counter")


def _memory(proc: Path, at_ns: int) -> Iterator[Metric]:
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in MEMORY_GAUGES:
            value = int(rest.split()[0]) * 1024
            yield Metric("/proc/meminfo", "host", "", name, at_ns, value, "bytes", "gauge")


def _load(proc: Path, at_ns: int) -> Iterator[Metric]:
    fields = (proc / "loadavg").read_text().split()
    for name, text in zip(("load_1min", "load_5min", "load_15min"), fields, strict=False):
        yield Metric("/proc/loadavg", "host", "", name, at_ns, float(text), "ratio", "gauge")
