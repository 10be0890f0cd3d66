"""Counters of a MariaDB server at one instant, from SHOW GLOBAL STATUS, as rows of the `metrics` evidence.

Every numeric value is recorded, rounded to a whole number, under the server's own name in lower case. Times become
nanoseconds, according to the unit in the server's manual. Values that are not numbers (versions, names) are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.metrics import Metric

SOURCE = "global status"
_GAUGES = (
    "open_files open_streams open_table_definitions open_tables threads_cached threads_connected threads_running "
    "uptime innodb_row_lock_current_waits innodb_history_list_length innodb_buffer_pool_pages_data "
    "innodb_buffer_pool_pages_dirty innodb_buffer_pool_pages_free innodb_buffer_pool_pages_misc "
    "innodb_buffer_pool_pages_total innodb_buffer_pool_bytes_data innodb_buffer_pool_bytes_dirty innodb_page_size "
    "innodb_checkpoint_age innodb_checkpoint_max_age innodb_num_open_files innodb_data_pending_fsyncs "
    "innodb_data_pending_reads innodb_data_pending_writes innodb_os_log_pending_fsyncs innodb_os_log_pending_writes "
    "innodb_row_lock_time_avg innodb_row_lock_time_max max_used_connections memory_used memory_used_initial "
    "qcache_free_blocks qcache_free_memory qcache_queries_in_cache qcache_total_blocks prepared_stmt_count "
    "last_query_cost key_blocks_unused key_blocks_used aria_pagecache_blocks_unused aria_pagecache_blocks_used "
    "innodb_mem_adaptive_hash innodb_mem_dictionary "
)
GAUGES = frozenset(_GAUGES.split())
"""Variables whose current value is meaningful; for all others only differences are."""
MILLISECONDS = frozenset(("innodb_row_lock_time", "innodb_row_lock_time_avg", "innodb_row_lock_time_max"))
SECONDS = frozenset(("busy_time", "cpu_time"))
BYTES = frozenset(
    (
        *("innodb_os_log_written", "innodb_data_read", "innodb_data_written", "memory_used", "innodb_page_size"),
        *("bytes_received", "bytes_sent", "innodb_checkpoint_age", "innodb_checkpoint_max_age"),
    )
)


def counters(connection: Any, clock: Callable[[], int] = time.time_ns) -> list[Metric]:
    """Read the server's counters now.

    Raises:
        pymysql.Error: The server does not answer.
    """
    found = rows(connection, "show global status")
    at_ns = clock()
    return [metric for name, value in found if (metric := _metric(name.lower(), value, at_ns)) is not None]


def _metric(name: str, text: str, at_ns: int) -> Metric | None:
    try:
        value = float(text)
    except ValueError:
        return None
    unit, factor = "count", 1.0
    if name in MILLISECONDS:
        unit, factor = "ns", 1e6
    elif name in SECONDS or name == "uptime":
        unit, factor = "ns", 1e9
    elif name in BYTES or "_bytes_" in name:
        unit = "bytes"
    kind = "gauge" if name in GAUGES else "counter"
    return Metric(SOURCE, "instance", "", name, at_ns, round(value * factor), unit, kind)
