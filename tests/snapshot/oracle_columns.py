"""Columns of Oracle's views that the collector can use, written down manually from the public reference.

Each column has the first release that contains it: 11.2 means "11.2 or earlier". The table was copied neither from an
instance nor from a download of the reference; the columns of 11.2 are from memory.
"""

from __future__ import annotations

OLD, C12 = "11.2", "12.1"
EXECUTED = (
    "executions",
    "elapsed_time",
    "cpu_time",
    "user_io_wait_time",
    "application_wait_time",
    "concurrency_wait_time",
    "cluster_wait_time",
    "buffer_gets",
    "disk_reads",
    "direct_writes",
    "rows_processed",
    "fetches",
    "parse_calls",
)
"""Counters of a cursor that all views of statements have."""

COLUMNS: dict[str, dict[str, str]] = {
    "v$sysstat": dict.fromkeys(("statistic#", "name", "class", "value", "stat_id"), OLD),
    "v$sys_time_model": dict.fromkeys(("stat_id", "stat_name", "value"), OLD),
    "v$system_event": dict.fromkeys(
        (
            "event",
            "total_waits",
            "total_timeouts",
            "time_waited",
            "average_wait",
            "time_waited_micro",
            "total_waits_fg",
            "total_timeouts_fg",
            "time_waited_fg",
            "average_wait_fg",
            "time_waited_micro_fg",
            "event_id",
            "wait_class_id",
            "wait_class#",
            "wait_class",
        ),
        OLD,
    ),
    "v$event_histogram_micro": dict.fromkeys(
        ("event#", "event", "wait_time_micro", "wait_count", "last_update_time", "con_id"), C12
    ),
    "v$event_name": dict.fromkeys(("event#", "event_id", "name", "wait_class_id", "wait_class#", "wait_class"), OLD),
    "v$segment_statistics": {
        **dict.fromkeys(
            (
                "owner",
                "object_name",
                "subobject_name",
                "tablespace_name",
                "ts#",
                "obj#",
                "dataobj#",
                "object_type",
                "statistic_name",
                "statistic#",
                "value",
            ),
            OLD,
        ),
        "con_id": C12,
    },
    "v$sqlstats": dict.fromkeys(
        (
            "sql_text",
            "sql_id",
            "plan_hash_value",
            "force_matching_signature",
            *EXECUTED,
        ),
        OLD,
    ),
    "v$session": dict.fromkeys(
        (
            "sid",
            "serial#",
            "type",
            "username",
            "module",
            "sql_id",
            "state",
            "status",
            "wait_class",
            "event",
            "blocking_session",
            "row_wait_obj#",
        ),
        OLD,
    ),
    "v$instance": dict.fromkeys(("instance_number", "instance_name", "host_name", "version", "startup_time"), OLD),
    "v$database": dict.fromkeys(("dbid", "resetlogs_time", "database_role", "open_mode"), OLD),
    "v$parameter": dict.fromkeys(("num", "name", "value", "display_value", "isdefault", "ismodified"), OLD),
    "v$active_session_history": dict.fromkeys(
        (
            "sample_id",
            "sample_time",
            "session_id",
            "session_serial#",
            "session_type",
            "sql_id",
            "session_state",
            "wait_class",
            "event",
        ),
        OLD,
    ),
}
