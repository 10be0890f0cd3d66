"""MariaDB's counters of the load's work, as rows of the `metrics` evidence: by session and by index.

`session_counters` reads the status variables of the load's own sessions, so they belong to one arm even if arms
alternate in slices. `index_counters` reads how many rows were fetched through each index of each table, for the whole
server. Both come from the performance schema; nothing is returned if it is off, or if the user may not read it.

Limits: the status of other sessions has no counters of InnoDB pages, which exist only in the global status; if the
instrument `wait/io/table/sql/handler` is off, rows are not counted by index.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.metrics import Metric

SESSION = "session status"
BY_INDEX = "table_io_waits_summary_by_index_usage"
INDEXES_MOST = 200
"""Maximum number of rows read from `table_io_waits_summary_by_index_usage`, those with the most operations first."""
VARIABLES = (
    *("Handler_read_first", "Handler_read_key", "Handler_read_last", "Handler_read_next", "Handler_read_prev"),
    *("Handler_read_rnd", "Handler_read_rnd_next", "Handler_write", "Handler_update", "Handler_delete"),
    *("Handler_tmp_write", "Rows_read", "Sort_rows"),
)
"""Status variables that MariaDB counts for each session."""

_SESSIONS = """
select a.attr_value, a.processlist_id, s.variable_name, s.variable_value
from performance_schema.session_connect_attrs a
join performance_schema.threads t on t.processlist_id = a.processlist_id
join performance_schema.status_by_thread s on s.thread_id = t.thread_id
where a.attr_name = 'program_name' and a.attr_value in %s and s.variable_name in %s
"""
_INDEXES = f"""
select object_schema, object_name, coalesce(index_name, ''), count_fetch
from performance_schema.{BY_INDEX}
where object_schema not in ('mysql', 'sys', 'information_schema', 'performance_schema')
order by count_star desc, 1, 2, 3 limit {INDEXES_MOST}
"""  # noqa: S608  # only constants of this module


def session_counters(
    connection: Any, programs: Mapping[str, str], clock: Callable[[], int] = time.time_ns
) -> list[tuple[str, Metric]]:
    """Return the work counted for each session of the load, as (arm name, metric).

    The result is empty if the server does not report this work; a lost connection is noticed at the next reading.

    Args:
        connection: Connection to the server.
        programs: Arm name for each `program_name`.
        clock: Returns UNIX time in ns.
    """
    found: list[tuple[Any, ...]] = []
    with contextlib.suppress(driver().Error):
        found = rows(connection, _SESSIONS, [list(programs), list(VARIABLES)])
    at_ns = clock()
    return [
        (
            programs[name],
            Metric(SESSION, "session", str(session), variable.lower(), at_ns, int(value), "count", "counter"),
        )
        for name, session, variable, value in found
    ]


def index_counters(connection: Any, clock: Callable[[], int] = time.time_ns) -> list[Metric]:
    """Return the number of rows fetched through each index so far; empty if the server does not report it.

    The object is `schema/table/index`, with an empty index for rows fetched without one.
    """
    found: list[tuple[Any, ...]] = []
    with contextlib.suppress(driver().Error):
        found = rows(connection, _INDEXES)
    at_ns = clock()
    return [
        Metric(BY_INDEX, "index", f"{schema}/{table}/{index}", "rows_fetched", at_ns, int(count), "count", "counter")
        for schema, table, index, count in found
    ]
