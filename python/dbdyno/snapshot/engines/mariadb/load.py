"""Sections of MariaDB's report on throughput, load profile, most accessed tables, indexes and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.snapshot.engines.mariadb.views import STATEMENTS
from dbdyno.snapshot.engines.shared_sections import load_profile, needs, sum_of

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

TABLES = "table_io_waits_summary_by_table"
INDEXES = "table_io_waits_summary_by_index_usage"
FILES = "file_summary_by_event_name"

_THROUGHPUT = columns(
    "database:text tps:per_s hitrate:ratio lio_ps:per_s rd_ps:per_s rows_ps:per_s ins_ps:per_s"
    " upd_ps:per_s del_ps:per_s qps:per_s"
)
_LINES = (
    ("statements", ("questions",), "count", 1),
    ("COMMIT", ("com_commit",), "count", 1),
    ("ROLLBACK", ("com_rollback",), "count", 1),
    ("SELECT", ("com_select",), "count", 1),
    ("INSERT, REPLACE", ("com_insert", "com_insert_select", "com_replace"), "count", 1),
    ("UPDATE", ("com_update", "com_update_multi"), "count", 1),
    ("DELETE", ("com_delete", "com_delete_multi"), "count", 1),
    ("time in statements", ("query_time",), "ns", 1e9),
    ("pages asked for", ("innodb_buffer_pool_read_requests",), "count", 1),
    ("pages read", ("innodb_buffer_pool_reads",), "count", 1),
    ("rows read by key", ("handler_read_key",), "count", 1),
    ("rows read by scans", ("handler_read_rnd_next",), "count", 1),
    ("rows inserted", ("handler_write",), "count", 1),
    ("rows updated", ("handler_update",), "count", 1),
    ("rows deleted", ("handler_delete",), "count", 1),
    ("redo written", ("innodb_os_log_written",), "bytes", 1),
    ("file syncs of InnoDB", ("innodb_data_fsyncs",), "count", 1),
    ("row lock waits", ("innodb_row_lock_waits",), "count", 1),
    ("time in row lock waits", ("innodb_row_lock_time",), "ns", 1e6),
    ("temporary tables", ("created_tmp_tables",), "count", 1),
    ("temporary tables on disk", ("created_tmp_disk_tables",), "count", 1),
    ("connections", ("connections",), "count", 1),
    ("sent", ("bytes_sent",), "bytes", 1),
    ("received", ("bytes_received",), "bytes", 1),
)
"""Lines of the load profile: label, names of status counters, unit, factor for conversion to the unit."""


def status(interval: Interval) -> dict[str, float | None]:
    """Return the increase of each status counter over the interval; None if it is not known."""
    rows = interval.query("select name, value from global_status", "global_status")
    return {row["name"]: row["value"] for row in rows}


def hit_ratio(found: dict[str, float | None]) -> float | None:
    """Return the share of page requests that the buffer pool served, or None if it is not known."""
    asked = found.get("innodb_buffer_pool_read_requests")
    read = found.get("innodb_buffer_pool_reads")
    return None if not asked or read is None else 1 - read / asked


def throughput(interval: Interval, top: int) -> Part:
    """Return the section on the throughput of the whole server and of each database."""
    found = status(interval)
    per_s = {name: None if v is None else v / interval.seconds for name, v in found.items()}
    commits, rollbacks = per_s.get("com_commit"), per_s.get("com_rollback")
    read = [per_s.get(f"handler_read_{way}") for way in _WAYS]
    whole = interval.verdict("status")
    server = {
        "database": "(server)",
        "tps": None if commits is None or rollbacks is None else commits + rollbacks,
        "hitrate": hit_ratio(found),
        "lio_ps": per_s.get("innodb_buffer_pool_read_requests"),
        "rd_ps": per_s.get("innodb_buffer_pool_reads"),
        "rows_ps": None if None in read else sum(one or 0 for one in read),
        "ins_ps": per_s.get("handler_write"),
        "upd_ps": per_s.get("handler_update"),
        "del_ps": per_s.get("handler_delete"),
        "qps": per_s.get("questions"),
        "verdict": whole.word,
        "why": whole.why,
    }
    missing = interval.missing_reason(TABLES)
    lacks = [missing_measurement("throughput of each database", *missing)] if missing else []
    return section(
        "throughput",
        "Database throughput",
        [table("", _THROUGHPUT, [server, *([] if missing else _databases(interval))])],
        about="tps: COMMIT and ROLLBACK statements; statements that commit by themselves are in"
        " qps. hitrate: 1 - innodb_buffer_pool_reads / read_requests. lio_ps: pages requested;"
        " rd_ps: read from disk. rows_ps: rows read by handlers. For one database: counts on its tables, and "
        "statements of sessions that had it as default; pages are counted for"
        " the server only.",
        not_measured=lacks,
        notes=_boundaries(interval),
    )


_WAYS = ("first", "key", "last", "next", "prev", "rnd", "rnd_next")


def _databases(interval: Interval) -> list[Row]:
    s = repr(interval.seconds)
    digests = "(select '' as database, 0 as calls where false)"
    if interval.has(STATEMENTS.name):
        interval.table(STATEMENTS.name)
        digests = f"(select SCHEMA_NAME as database, sum(COUNT_STAR) as calls from {STATEMENTS.name} group by 1)"
    return interval.query(
        f"""with t as (select OBJECT_SCHEMA as database, sum(COUNT_FETCH) as f,
            sum(COUNT_INSERT) as i, sum(COUNT_UPDATE) as u, sum(COUNT_DELETE) as d,
            max(verdict) filter (verdict <> 'ok') as word, max(why) filter (verdict <> 'ok') as why
          from {TABLES} group by 1)
        select database, null as tps, null as hitrate, null as lio_ps, null as rd_ps,
          f / {s} as rows_ps, i / {s} as ins_ps, u / {s} as upd_ps, d / {s} as del_ps,
          calls / {s} as qps,
          case when f is null then coalesce(word, 'ok') else 'ok' end as verdict,
          case when f is null then why end as why
        from t left join {digests} using (database) where f is null or f + i + u + d > 0
        order by rows_ps desc nulls last""",
        TABLES,
    )


def _boundaries(interval: Interval) -> list[str]:
    notes = []
    for end in (interval.before, interval.after):
        count = end.facts.get("long_transactions")
        if count:
            notes.append(f"{count} transactions were open for more than 5 s in snapshot {end.number}")
    return notes


def profile(interval: Interval, top: int) -> Part:
    """Return the section LOAD PROFILE, per second and per statement."""
    found = status(interval)
    values = [(label, sum_of(found, *names), unit, factor) for label, names, unit, factor in _LINES]
    about = "the whole server, except the statements of the snapshots themselves"
    return load_profile(interval, values, found.get("questions"), of="statement", about=about)


@needs(TABLES, name="tables", title="Most accessed tables by pct of tuples")
def tables(interval: Interval, top: int) -> Part:
    """Return the section MOST ACCESSED TABLES, sorted by their share of all rows."""
    rows = interval.query(
        f"""select OBJECT_SCHEMA || '.' || OBJECT_NAME as "table",
          (COUNT_FETCH + COUNT_INSERT + COUNT_UPDATE + COUNT_DELETE) /
            nullif(sum(COUNT_FETCH + COUNT_INSERT + COUNT_UPDATE + COUNT_DELETE) over (), 0)
            as tuples_pct,
          COUNT_FETCH as fetched, COUNT_INSERT as inserted, COUNT_UPDATE as updated,
          COUNT_DELETE as deleted, SUM_TIMER_FETCH as fetch_time,
          SUM_TIMER_INSERT + SUM_TIMER_UPDATE + SUM_TIMER_DELETE as change_time, verdict, why
        from {TABLES} where verdict <> 'ok' or COUNT_FETCH + COUNT_INSERT + COUNT_UPDATE
          + COUNT_DELETE > 0 order by tuples_pct desc nulls last, 1""",
        TABLES,
    )
    shown = columns("table:text tuples_pct:ratio fetched inserted updated deleted fetch_time:ns change_time:ns")
    return section(
        "tables",
        "Most accessed tables by pct of tuples",
        [table("", shown, rows, top=top)],
        about="rows that passed through the handler; the times include waits for locks and disk",
        not_measured=[missing_measurement("hits and reads by table", "MariaDB counts pages for the server only")],
    )


@needs(INDEXES, name="indexes", title="Indexes")
def indexes(interval: Interval, top: int) -> Part:
    """Return the section on indexes sorted by reads, and on indexes that were not read in the interval."""
    name = """INDEX_NAME as "index", OBJECT_SCHEMA || '.' || OBJECT_NAME as "table\""""
    used = interval.query(
        f"""select {name}, COUNT_READ as rows_read, SUM_TIMER_READ as read_time,
          COUNT_WRITE as rows_changed, verdict, why from {INDEXES}
        where verdict <> 'ok' or COUNT_READ > 0 order by COUNT_READ desc nulls last""",
        INDEXES,
    )
    ever = interval.ends(INDEXES)[1]
    unused = interval.query(
        f"""select {name}, e.COUNT_READ as read_ever from {INDEXES} d
          join {ever} e using (OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME)
        where d.verdict = 'ok' and d.COUNT_READ = 0 and INDEX_NAME <> 'PRIMARY'
        order by read_ever, 2, 1"""
    )
    return section(
        "indexes",
        "Indexes",
        [
            table("Most read", columns("index:text table:text rows_read read_time:ns rows_changed"), used, top=top),
            table("Not read in this interval", columns("index:text table:text read_ever"), unused, top=top),
        ],
        about="read_ever: since the server started. A unique index is useful even if it is not read.",
    )


@needs(FILES, name="io", title="I/O", what="file access")
def files(interval: Interval, top: int) -> Part:
    """Return the section on file access by the purpose of the file."""
    rows = interval.query(
        f"""select replace(EVENT_NAME, 'wait/io/file/', '') as what, COUNT_READ as reads,
          SUM_NUMBER_OF_BYTES_READ as read_bytes, SUM_TIMER_READ as read_time,
          COUNT_WRITE as writes, SUM_NUMBER_OF_BYTES_WRITE as write_bytes,
          SUM_TIMER_WRITE as write_time, COUNT_MISC as syncs_and_others,
          SUM_TIMER_MISC as other_time, verdict, why
        from {FILES} where verdict <> 'ok' or COUNT_READ + COUNT_WRITE + COUNT_MISC > 0
        order by SUM_TIMER_READ + SUM_TIMER_WRITE + SUM_TIMER_MISC desc nulls last""",
        FILES,
    )
    shown = columns(
        "what:text reads read_bytes:bytes read_time:ns writes write_bytes:bytes write_time:ns"
        " syncs_and_others:count:syncs,_others other_time:ns"
    )
    lacks, notes = [], [] if rows else ["no file access was counted in this interval"]
    if not rows and not interval.after.views[FILES]["rows"]:
        step = (
            "update performance_schema.setup_instruments set enabled = 'YES', timed = 'YES'"
            " where name like 'wait/io/file/%'"
        )
        lacks, notes = [missing_measurement("file access", "no instrument wait/io/file/% is enabled", step)], []
    shown_rows = table("", shown, rows, top=top)
    return section("io", "I/O by who and what", [shown_rows], not_measured=lacks, notes=notes)
