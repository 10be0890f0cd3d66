"""Engine-specific wording: where a kind of evidence is found, and the SQL statements of fixes.

>>> from dbdyno.advise.facts import Facts
>>> from dbdyno.advise.kinds import Server
>>> end_session(Facts("", "server", {Server: [Server("mariadb", "10.11.6", 101106)]}), 7)
'kill 7'
"""

from __future__ import annotations

from dbdyno.advise.facts import Facts
from dbdyno.advise.kinds import Index

POSTGRES, MARIADB = "postgres", "mariadb"
BOTH = (POSTGRES, MARIADB)
_USE = "table_io_waits_summary_by_index_usage"
_PLACES = {
    "settings": ("pg_settings", "global variables"),
    "sessions": ("pg_stat_activity", "information_schema.processlist"),
    "transaction": ("pg_stat_activity, pid {}, xact_start", "information_schema.innodb_trx, thread {}, trx_started"),
    "state": ("pg_stat_activity, pid {}", "information_schema.processlist, id {}"),
    "blockers": ("pg_blocking_pids", "information_schema.innodb_lock_waits"),
    "waited": ("pg_locks.waitstart, summed", "information_schema.innodb_trx, trx_wait_started, summed"),
    "scans": ("pg_stat_user_indexes, {}, idx_scan", f"{_USE}, {{}}, COUNT_FETCH"),
    "size": ("pg_class, {}, relpages", "mysql.innodb_index_stats, {}, size"),
    "writes": ("pg_stat_user_tables, {}", f"{_USE}, {{}}"),
    "span": ("pg_stat_database.stats_reset", "global status, Uptime"),
    "key": ("pg_sequences, {}", "information_schema.tables, {}, AUTO_INCREMENT"),
    "reads": (
        "pg_stat_database: blk_read_time / blks_read",
        "file_summary_by_event_name, data files: SUM_TIMER_READ / COUNT_READ",
    ),
    "files": (
        "pg_statio_user_tables; pg_class: {}",
        "file_summary_by_instance, COUNT_READ; innodb_sys_tablespaces: {}",
    ),
    "index files": ("pg_statio_user_indexes; pg_class: {}", ""),
    "column": ("pg_attribute, {}", "information_schema.columns, {}"),
}


def is_mariadb(facts: Facts) -> bool:
    """Return True if the evidence is from a MariaDB server."""
    return facts.engine == MARIADB


def place(facts: Facts, what: str, about: object = "") -> str:
    """Return the place of a figure on this engine: view and column, or file."""
    return _PLACES[what][is_mariadb(facts)].format(about)


def source(facts: Facts, pages: str) -> str:
    """Return the source that a rule cites on MariaDB, or "" on PostgreSQL, where the rule's own source applies."""
    return f"MariaDB documentation, {pages} (2025)" if is_mariadb(facts) else ""


def drop_index(facts: Facts, index: Index) -> str:
    """Return the statement that drops an index."""
    if is_mariadb(facts):
        return f"alter table {index.table} drop index {index.name}, algorithm=inplace, lock=none"
    return f"drop index concurrently {index.name}"


def index_name(facts: Facts, index: Index) -> str:
    """Return a unique name for an index."""
    return f"{index.table}.{index.name}" if is_mariadb(facts) else index.name


def end_session(facts: Facts, number: int) -> str:
    """Return the statement that ends a session."""
    return f"kill {number}" if is_mariadb(facts) else f"select pg_terminate_backend({number})"


def cancel(facts: Facts, number: int) -> str:
    """Return the statement that cancels the current statement of a session."""
    return f"kill query {number}" if is_mariadb(facts) else f"select pg_cancel_backend({number})"
