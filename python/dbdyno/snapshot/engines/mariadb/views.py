"""The tables of MariaDB that are read, and the meaning of their columns.

The columns are those that the server has; their names tell their kind: the performance schema names counters COUNT_ and
SUM_, a lifetime's minimum and maximum MIN_ and MAX_. Its picoseconds are converted to nanoseconds, because their sums
exceed the 64 bits of a Parquet file after some months.

The status has one value per row: values that accumulate go to `global_status`, states to `global_status_now`. The list
of states below is that of MariaDB 10.11; a number that is not in it counts as a counter, and if it falls, only this
counter is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.snapshot.engines.view import Column

SYSTEM = "('mysql', 'performance_schema', 'information_schema', 'sys')"


@dataclass(frozen=True, slots=True)
class Source:
    """A table of the performance schema; `keep` is a pattern for the columns to read besides the keys."""

    name: str
    keys: tuple[str, ...]
    scope: str
    keep: str
    where: str
    appearance: str = "object"


STATEMENTS = Source(
    "events_statements_summary_by_digest",
    ("SCHEMA_NAME", "DIGEST"),
    "statements",
    r"(COUNT|SUM)_\w+|(MIN|MAX)_TIMER_WAIT|FIRST_SEEN|LAST_SEEN",
    "true",
)
SOURCES = (
    STATEMENTS,
    Source(
        "table_io_waits_summary_by_table",
        ("OBJECT_SCHEMA", "OBJECT_NAME"),
        "tables",
        r"(COUNT|SUM_TIMER)_(FETCH|INSERT|UPDATE|DELETE)|(MIN|MAX)_TIMER_WAIT",
        f"COUNT_STAR > 0 and OBJECT_SCHEMA not in {SYSTEM}",
    ),
    Source(
        "table_io_waits_summary_by_index_usage",
        ("OBJECT_SCHEMA", "OBJECT_NAME", "INDEX_NAME"),
        "tables",
        r"COUNT_(READ|WRITE)|SUM_TIMER_(READ|WRITE)|(MIN|MAX)_TIMER_WAIT",
        f"INDEX_NAME is not null and OBJECT_SCHEMA not in {SYSTEM}",
    ),
    Source(
        "events_waits_summary_global_by_event_name",
        ("EVENT_NAME",),
        "waits",
        r"COUNT_STAR|SUM_TIMER_WAIT|(MIN|MAX)_TIMER_WAIT",
        "COUNT_STAR > 0",
    ),
    Source(
        "file_summary_by_event_name",
        ("EVENT_NAME",),
        "waits",
        r"COUNT_(READ|WRITE|MISC)|SUM_TIMER_(READ|WRITE|MISC)|SUM_NUMBER_OF_BYTES_\w+",
        "COUNT_STAR > 0",
    ),
)
"""Tables read once per snapshot; rows in which nothing was counted are left out, so a new row began at zero."""

OTHER_DIGEST = "(all others)"
"""The digest of the row that counts statements for which the full table of digests had no room."""


def available_columns(source: Source, probed: Sequence[tuple[str, str]]) -> list[tuple[str, Column]]:
    """Return (SQL expression, column) for each column to read; `probed` are the server's columns as (name, type)."""
    found = []
    for name, kind in probed:
        if name in source.keys:
            fallback = OTHER_DIGEST if name == "DIGEST" else ""
            found.append((f"coalesce({name}, '{fallback}')", _column(name, "key", "text")))
        elif re.fullmatch(source.keep, name):
            found.append(_measure(name, kind))
    return found


def _measure(name: str, kind: str) -> tuple[str, Column]:
    if kind == "timestamp":
        of = "since" if name == "FIRST_SEEN" else "time"
        return f"cast(unix_timestamp({name}) * 1000000 as signed)", _column(name, of, "us")
    of = {"MIN": "low", "MAX": "high"}.get(name[:3], "counter")
    if "_TIMER" in name or name == "SUM_LOCK_TIME":
        return f"{name} div 1000", _column(name, of, "ns")
    return name, _column(name, of, "bytes" if "_BYTES" in name else "count")


def _column(name: str, kind: str, unit: str) -> Column:
    return Column(name, kind, unit, "VARCHAR" if unit == "text" else "BIGINT")


STATES = re.compile(
    r"""acl_\w+ | aria_pagecache_blocks_\w+ | innodb_.*_pct\w* | innodb_have_\w+
    | innodb_buffer_pool_(pages_(data|dirty|free|misc|old|total)|bytes_\w+)
    | innodb_data_pending_\w+ | innodb_(checkpoint|ibuf_(size|free_list|segment_size)|mem_)\w*
    | innodb_(history_list_length|max_trx_id|page_size|num_open_files|available_undo_logs)
    | innodb_row_lock_(current_waits|time_avg|time_max) | innodb_encryption_.*estimated\w*
    | innodb_onlineddl_\w+ | key_blocks_\w+ | last_query_cost | max_\w+_used | max_used_\w+
    | memory_used\w* | open_\w+ | not_flushed_\w+ | prepared_stmt_count
    | qcache_(free|total|queries_in)\w* | rpl_semi_sync_\w+_(clients|avg_wait_time|sessions)
    | slave_(heartbeat_period|open_temp_tables) | slaves_\w+ | ssl_\w+ | stack_usage
    | table_open_cache_active_instances | tc_log_\w+ | threadpool_\w+
    | threads_(cached|connected|running) | uptime\w* | wsrep\w* | binlog_snapshot_position
    | delayed_insert_threads | rpl_status""",
    re.VERBOSE,
)
"""Pattern of lower-case status names that are states, in which nothing accumulates."""

VOLATILE = re.compile(r"gtid_\w*pos|gtid_\w*state|timestamp|rand_seed\d|insert_id|last_insert_id")
"""Pattern of variables that change by themselves and are not settings."""

OWN_COUNTERS = re.compile(
    r"""com_\w+ | handler_(?!tmp)\w+ | bytes_\w+ | select_\w+ | sort_\w+
    | created_tmp_(disk_)?tables | questions | rows_(read|sent) | query_time
    | empty_queries | opened_table\w+ | table_open_cache_(hits|misses|overflows) | optimizer_\w+""",
    re.VERBOSE,
)
"""Pattern of counters that the server also keeps per session, from which the collector's share is subtracted."""

STATUS = (
    Column("name", "key", "text", "VARCHAR"),
    Column("value", "counter", "count", "DOUBLE"),
    Column("own", "gauge", "count", "DOUBLE"),
    Column("own_end", "gauge", "count", "DOUBLE"),
)
"""Columns of the status counters.

`own` is the part of the value that the collector's session had added when the value was read, `own_end` the part that
it had added at the end of the snapshot.
"""
STATUS_NOW = (Column("name", "key", "text", "VARCHAR"), Column("value", "gauge", "count", "DOUBLE"))
VARIABLES = (Column("name", "key", "text", "VARCHAR"), Column("value", "text", "text", "VARCHAR"))


def is_state(name: str) -> bool:
    """Return True if a status value is a state and not a counter."""
    return STATES.fullmatch(name) is not None
