"""The views of PostgreSQL that are read, and the meaning of their columns, in one table for versions 12 to 19.

The columns are those that the server has: they are probed, never derived from a version. A column that is not in any
table here is kept: a number counts as a counter, because new columns of these views are usually counters. Milliseconds
stay milliseconds, as the engine names them; an instant becomes microseconds since 1970, an interval microseconds, a WAL
position bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dbdyno.bench.postgres.shown_settings import CREDENTIALS, SECRET_NAMES, SECRET_WORDS
from dbdyno.snapshot.engines.postgres.catalog import CATALOGS
from dbdyno.snapshot.engines.postgres.source import Source, text_column
from dbdyno.snapshot.engines.view import Column

_MAY_BE_SECRET = " or ".join(f"strpos(name, '{word}') > 0" for word in SECRET_WORDS)
_NO_SECRET = (
    f"case when setting <> '' and ({_MAY_BE_SECRET}) and name ~ '{SECRET_NAMES.pattern}'"
    f" or strpos(lower(setting), 'passw') > 0 and setting ~* '{CREDENTIALS}'"
    " then '(hidden)' when source = 'session' then reset_val else setting end"
)
"""SQL for a setting's value as it may be stored: `primary_conninfo` and commands may contain passwords.

What dbdyno's session has set for itself (jit, search_path) is replaced by the server's value.
"""
_FUNCTIONS = " union all ".join(
    f"select * from pg_stat_user_functions where funcid {which}"
    for which in (">= 16384", "< 16384 and current_setting('track_functions') = 'all'")
)
"""SQL for the functions to read.

The server's own functions are counted only with track_functions = all, and reading all 3,000 takes a millisecond.
"""
_MAY_SIZE = "pg_has_role('pg_read_all_stats', 'usage')"


CLUSTER: tuple[Source, ...] = (
    Source("pg_stat_database", ("datid",), "database", scope_by="datid", where="datid is not null"),
    Source("pg_stat_database_conflicts", ("datid",), "database", scope_by="datid"),
    Source("pg_stat_bgwriter", (), "shared", "fixed"),
    Source("pg_stat_checkpointer", (), "shared", "fixed"),
    Source("pg_stat_wal", (), "shared", "fixed"),
    Source("pg_stat_io", ("backend_type", "object", "context"), "shared", "fixed"),
    Source("pg_stat_slru", ("name",), "shared", "fixed"),
    Source("pg_stat_archiver", (), "shared", "fixed"),
    Source("pg_stat_lock", ("locktype",), "shared", "fixed"),
    Source("pg_stat_replication_slots", ("slot_name",), "shared"),
    Source("pg_stat_subscription_stats", ("subid",), "shared"),
    Source("pg_stat_recovery_prefetch", (), "shared", "fixed"),
    Source("pg_stat_replication", ("pid",), "now", states=True, skip=frozenset({"usesysid", "client_hostname"})),
    Source("pg_stat_wal_receiver", ("pid",), "now", states=True, skip=frozenset({"conninfo"})),
    Source("pg_replication_slots", ("slot_name",), "now", states=True),
    Source("pg_stat_progress_vacuum", ("pid",), "now", states=True),
)
"""Views read once for the whole cluster, together with `STORED_SETTINGS`."""

SETTINGS = Source(
    "pg_settings",
    ("name",),
    "now",
    states=True,
    skip=frozenset(
        {
            "short_desc",
            "extra_desc",
            "min_val",
            "max_val",
            "enumvals",
            "sourcefile",
            "sourceline",
            "boot_val",
            "reset_val",
            "category",
        }
    ),
    instead={"setting": _NO_SECRET},
)
"""The server's settings, read when they may have changed."""

DATABASE: tuple[Source, ...] = (
    Source("pg_stat_user_tables", ("relid",), "objects"),
    Source("pg_statio_user_tables", ("relid",), "objects"),
    Source("pg_stat_user_indexes", ("relid", "indexrelid"), "objects"),
    Source("pg_statio_user_indexes", ("relid", "indexrelid"), "objects"),
    Source(
        "pg_stat_user_functions",
        ("funcid",),
        "objects",
        rows=f"({_FUNCTIONS}) f",
        extra=(
            (
                "exists (select from pg_proc p where p.oid = funcid and p.prorettype = 'trigger'::regtype)",
                "is_trigger",
                "text",
                "text",
                "BOOLEAN",
            ),
        ),
    ),
    Source("pg_statio_user_sequences", ("relid",), "objects"),
    Source("pg_extension", ("oid",), "now", states=True, only=frozenset({"oid", "extname", "extversion"})),
    Source(
        "pg_class",
        ("oid",),
        "now",
        where="relkind in ('r', 'm', 'i', 't') and relnamespace <> 11",
        states=True,
        skip=frozenset(
            {
                "relname",
                "relnamespace",
                "reltype",
                "reloftype",
                "relowner",
                "relam",
                "reltablespace",
                "relisshared",
                "relpersistence",
                "relnatts",
                "relchecks",
                "relhasrules",
                "relhastriggers",
                "relhassubclass",
                "relrowsecurity",
                "relforcerowsecurity",
                "relispopulated",
                "relreplident",
                "relispartition",
                "relrewrite",
                "relfrozenxid",
                "relminmxid",
                "relacl",
                "reloptions",
                "relpartbound",
                "relhasindex",
                "relallvisible",
                "relallfrozen",
            }
        ),
        extra=(
            (
                "case when relfrozenxid::text <> '0' then age(relfrozenxid) end",
                "frozen_age",
                "gauge",
                "count",
                "BIGINT",
            ),
            text_column("options", "array_to_string(reloptions, ', ')"),
        ),
    ),
    Source(
        "pg_index",
        ("indexrelid",),
        "now",
        where="indrelid >= 16384",
        states=True,
        only=frozenset({"indexrelid", "indisunique", "indisprimary", "indisexclusion", "indisvalid"}),
        extra=(
            ("indrelid", "relid", "gauge", "count", "BIGINT"),
            ("indkey[0]", "first_column", "gauge", "count", "BIGINT"),
        ),
    ),
    *(source for source, _ in CATALOGS),
)
"""Views read in each database, whose oid becomes the first key."""


def _size_column(kind: str, privilege: str) -> tuple[str, str, str, str, str]:
    """Return the definition of a column: the size of a database or tablespace, NULL if the role may not measure it."""
    allowed = f"{_MAY_SIZE} or has_{kind}_privilege(oid, '{privilege}')"
    return (f"case when {allowed} then pg_{kind}_size(oid) end", "size_bytes", "gauge", "bytes", "BIGINT")


SIZES: tuple[Source, ...] = (
    Source(
        "pg_database",
        ("oid",),
        "now",
        states=True,
        only=frozenset({"oid", "datname"}),
        extra=(_size_column("database", "connect"),),
    ),
    Source(
        "pg_tablespace",
        ("oid",),
        "now",
        states=True,
        only=frozenset({"oid", "spcname"}),
        extra=(
            text_column("location", "pg_tablespace_location(oid)"),
            _size_column("tablespace", "create"),
        ),
    ),
)
"""Views read once for the whole cluster, and not in each snapshot, because the server examines every file."""

STATEMENTS = Source(
    "pg_stat_statements",
    ("userid", "dbid", "queryid", "toplevel"),
    "statements",
    "entry",
    where="queryid is not null",
    skip=frozenset({"query"}),
)
STATEMENTS_INFO = Source("pg_stat_statements_info", (), "statements_info", "fixed")

GAUGES = frozenset(
    {
        "numbackends",
        "op_bytes",
        "n_live_tup",
        "n_dead_tup",
        "n_mod_since_analyze",
        "n_ins_since_vacuum",
        "mean_exec_time",
        "stddev_exec_time",
        "mean_plan_time",
        "stddev_plan_time",
        "mean_time",
        "stddev_time",
        "dealloc",
        "wal_distance",
        "block_distance",
        "io_depth",
    }
)
"""Numbers in the views above that do not accumulate."""

SUMS = frozenset({"idx_scan", "idx_tup_fetch", "idx_blks_read", "idx_blks_hit", "tidx_blks_read", "tidx_blks_hit"})
"""Columns of a table that are added up over its indexes; the sums fall when an index is dropped."""

LIFETIME = {
    "min_exec_time": "low",
    "max_exec_time": "high",
    "min_plan_time": "low",
    "max_plan_time": "high",
    "min_time": "low",
    "max_time": "high",
}

MS_SUFFIXES = ("_time",)
BYTES_SUFFIXES = ("_bytes",)
INTEGERS = frozenset({"bigint", "integer", "smallint", "oid", "xid", "numeric"})
FLOATS = frozenset({"double precision", "real"})


def available_columns(source: Source, probed: Sequence[tuple[str, str]]) -> list[tuple[str, Column]]:
    """Return (SQL expression, column) for each column to read; `probed` are the server's columns as (name, type)."""
    names = {name for name, _ in probed}
    found = []
    for name, kind_of_type in probed:
        if name in source.skip or (source.only and name not in source.only):
            continue
        sql = source.instead.get(name) or _expression(name, kind_of_type)
        found.append((sql, _column(source, name, kind_of_type, names)))
    found += [(sql, Column(name, kind, unit, kind_of)) for sql, name, kind, unit, kind_of in source.extra]
    return found


def _expression(name: str, kind: str) -> str:
    quoted = '"' + name + '"'
    if kind.startswith("timestamp") or kind == "interval":
        return f"(extract(epoch from {quoted}) * 1000000)::bigint"
    if kind == "pg_lsn":
        return f"({quoted} - '0/0'::pg_lsn)::bigint"
    return quoted


def _column(source: Source, name: str, kind: str, names: Iterable[str]) -> Column:
    if kind.startswith("timestamp") or kind == "interval":
        return Column(name, _time_kind(source, name, kind), "us", "BIGINT")
    if kind == "pg_lsn":
        return Column(name, "gauge", "bytes", "BIGINT")
    if kind in INTEGERS:
        duck, unit = "BIGINT", "bytes" if name.endswith(BYTES_SUFFIXES) else "count"
    elif kind in FLOATS:
        duck, unit = "DOUBLE", "ms" if name.endswith(MS_SUFFIXES) else "count"
    else:
        duck, unit = "BOOLEAN" if kind == "boolean" else "VARCHAR", "text"
    return Column(name, _kind(source, name, unit, names), unit, duck)


def _kind(source: Source, name: str, unit: str, names: Iterable[str]) -> str:
    """Return the kind of a text or number column, such as key, gauge or counter."""
    if name in source.keys or unit == "text":
        return "key" if name in source.keys else "text"
    if source.states or name in GAUGES or name.endswith(("oid", "relid")) or name == "datid":
        return "gauge"
    if name in LIFETIME:
        return "gauge" if "stats_since" in names else LIFETIME[name]
    is_sum = name in SUMS and source.name.endswith("_user_tables")
    return "sum" if is_sum else "counter"


def _time_kind(source: Source, name: str, kind: str) -> str:
    if source.states or kind == "interval" or name == "minmax_stats_since":
        return "gauge"
    if name == "stats_since":
        return "since"
    if name == "stats_reset":  # for a database it changes although the row is kept
        return "since" if source.scope in ("shared", "objects") else "gauge"
    return "time"
