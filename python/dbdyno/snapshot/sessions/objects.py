"""Tables and indexes of an interval with its active sessions: their counters, and who used them.

    rows = objects(history, "table")     # per table: sessions in statements that name it, scans, rows read and changed

A session works on a table if the text of its statement names the table; a statement that names two tables counts in
both. Counters are those of the whole interval, whichever sessions `history` selects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.errors import Error
from dbdyno.base.sections import MissingMeasurement, Row, missing_measurement
from dbdyno.snapshot.reading.statement_names import names_of, short_name
from dbdyno.snapshot.sessions.history import TABLE, History

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

INDEX = "index"
OBJECTS = (TABLE, INDEX)
"""Objects that can be listed like dimensions; sessions can be filtered by table."""
COLUMNS = {
    TABLE: "name:text:table aas:aas share:ratio scans:count:sequential_scans scanned:count:rows_scanned"
    " fetched:count:rows_by_index inserted updated deleted",
    INDEX: "name:text:index table:text scans rows:count:entries_read",
}
ABOUT = {
    TABLE: "aas: average active sessions in statements that name the table; the counters include all sessions.",
    INDEX: "Scans of each index in this interval, by all sessions.",
}
_POSTGRES = {
    TABLE: (
        "pg_stat_user_tables",
        """select schemaname || '.' || relname as name, sum(seq_scan) as scans, sum(seq_tup_read) as scanned,
          sum(idx_tup_fetch) as fetched, sum(n_tup_ins) as inserted, sum(n_tup_upd) as updated,
          sum(n_tup_del) as deleted, any_value(verdict) as verdict, any_value(why) as why
        from pg_stat_user_tables group by 1""",
    ),
    INDEX: (
        "pg_stat_user_indexes",
        """select schemaname || '.' || indexrelname as name, schemaname || '.' || any_value(relname) as "table",
          sum(idx_scan) as scans, sum(idx_tup_read) as "rows", any_value(verdict) as verdict, any_value(why) as why
        from pg_stat_user_indexes group by schemaname, indexrelname""",
    ),
}
_MARIADB = {
    TABLE: (
        "table_io_waits_summary_by_table",
        """select OBJECT_SCHEMA || '.' || OBJECT_NAME as name, null::bigint as scans, null::bigint as scanned,
          COUNT_FETCH as fetched, COUNT_INSERT as inserted, COUNT_UPDATE as updated, COUNT_DELETE as deleted,
          verdict, why from table_io_waits_summary_by_table""",
    ),
    INDEX: (
        "table_io_waits_summary_by_index_usage",
        """select OBJECT_SCHEMA || '.' || OBJECT_NAME || '.' || INDEX_NAME as name,
          OBJECT_SCHEMA || '.' || OBJECT_NAME as "table", null::bigint as scans, COUNT_READ as "rows", verdict, why
        from table_io_waits_summary_by_index_usage where INDEX_NAME is not null""",
    ),
}
_ENGINES = {"postgres": _POSTGRES, "mariadb": _MARIADB}


def objects(history: History, kind: str) -> list[Row]:
    """Return the interval's tables or indexes, most used first; if a table is selected, only those of that table.

    Raises:
        SnapshotError: The view is not in the snapshots.
        EvidenceError: A file cannot be read.
    """
    known = _ENGINES.get(history.engine)
    if known is None or missing_reason(history.interval, kind) is not None:
        return []
    view, sql = known[kind]
    rows = history.interval.query(sql, view)
    only = history.where.get(TABLE)
    if only is not None:
        rows = [row for row in rows if row["name" if kind == TABLE else "table"] == only]
    if kind == INDEX:
        return sorted(rows, key=lambda row: (-(row["scans"] or row["rows"] or 0), row["name"]))
    return _with_sessions(history, rows)


def missing_reason(interval: Interval, kind: str) -> MissingMeasurement | None:
    """Return why tables or indexes are unknown in an interval; None if they are known."""
    known = _ENGINES.get(interval.before.engine)
    plural = {TABLE: "tables", INDEX: "indexes"}[kind]
    if known is None:
        return missing_measurement(plural, "not read on this engine")
    missing = interval.missing_reason(known[kind][0])
    return None if missing is None else missing_measurement(plural, *missing)


def _with_sessions(history: History, rows: list[Row]) -> list[Row]:
    """Return the tables with the active sessions whose statements name them, sorted by number of sessions."""
    try:
        found = {row["name"]: row["aas"] for row in history.averages_by("statement")}
    except Error:
        found = {}
    whole = sum(found.values())
    sessions: dict[str, float] = {}
    for name, aas in found.items():
        for table in names_of(history.text_of[name]).tables if name in history.text_of else ():
            sessions[table] = sessions.get(table, 0.0) + aas
    made = []
    for row in rows:
        aas = sessions.get(short_name(str(row["name"])), 0.0) if history.looks else None
        made.append({**row, "aas": aas, "share": aas / whole if aas is not None and whole else None})
    return sorted(made, key=lambda row: (-(row["aas"] or 0.0), -_touched(row), row["name"]))


def _touched(row: Row) -> float:
    return float(sum(row[name] or 0 for name in ("scanned", "fetched", "inserted", "updated", "deleted")))
