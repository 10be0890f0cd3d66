"""Which views of PostgreSQL are read, and what their columns mean. One table, versions 12 to 19.

The columns are those that the server has: they are probed, never deduced from a version. A column
that no table here knows is kept: a number is taken for a counter, which is what PostgreSQL adds to
these views. Milliseconds stay milliseconds, as the engine names them; an instant becomes
microseconds since 1970, an interval microseconds, a position in the log bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dbdyno.snapshot.view import Column


@dataclass(frozen=True, slots=True)
class Source:
    """One view to read. `relation` is what its columns are probed on, `rows` what it is read
    from where that differs. `states`: nothing in it accumulates. `where`: which rows."""

    name: str
    keys: tuple[str, ...]
    scope: str
    appearance: str = "object"
    relation: str = ""
    rows: str = ""
    where: str = ""
    scope_by: str | None = None
    states: bool = False
    skip: frozenset[str] = frozenset()
    extra: tuple[tuple[str, str, str, str, str], ...] = field(default=())
    """Columns of our own: (SQL, name, kind, unit, type)."""


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
    Source("pg_stat_replication", ("pid",), "now", states=True, skip=frozenset({"usesysid", "client_hostname"})),
    Source("pg_stat_wal_receiver", ("pid",), "now", states=True, skip=frozenset({"conninfo"})),
    Source("pg_replication_slots", ("slot_name",), "now", states=True),
    Source("pg_stat_progress_vacuum", ("pid",), "now", states=True),
    Source(
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
    ),
)
"""Read once for the whole cluster."""

DATABASE: tuple[Source, ...] = (
    Source("pg_stat_user_tables", ("relid",), "objects"),
    Source("pg_statio_user_tables", ("relid",), "objects"),
    Source("pg_stat_user_indexes", ("relid", "indexrelid"), "objects"),
    Source("pg_statio_user_indexes", ("relid", "indexrelid"), "objects"),
    Source("pg_stat_user_functions", ("funcid",), "objects"),
    Source("pg_statio_user_sequences", ("relid",), "objects"),
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
        ),
    ),
    Source(
        "pg_index",
        ("indexrelid",),
        "now",
        where="indrelid >= 16384",
        states=True,
        skip=frozenset(
            {
                "indrelid",
                "indnatts",
                "indnkeyatts",
                "indimmediate",
                "indisclustered",
                "indcheckxmin",
                "indisready",
                "indislive",
                "indisreplident",
                "indkey",
                "indcollation",
                "indclass",
                "indoption",
                "indexprs",
                "indpred",
                "indnullsnotdistinct",
            }
        ),
    ),
)
"""Read in each database; the database's oid becomes the first key."""

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
        "blks_exists",
        "mean_exec_time",
        "stddev_exec_time",
        "mean_plan_time",
        "stddev_plan_time",
        "mean_time",
        "stddev_time",
        "dealloc",
    }
)
"""Numbers in the views above that do not accumulate."""

SUMS = frozenset({"idx_scan", "idx_tup_fetch", "idx_blks_read", "idx_blks_hit", "tidx_blks_read", "tidx_blks_hit"})
"""Of a table: added up over its indexes, so that they fall when one is dropped."""

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


def known(source: Source, probed: Sequence[tuple[str, str]]) -> list[tuple[str, Column]]:
    """(SQL expression, column) for the columns that the server has. `probed`: (name, type)."""
    names = {name for name, _ in probed}
    found = []
    for name, kind_of_type in probed:
        if name in source.skip:
            continue
        found.append((_expression(name, kind_of_type), _column(source, name, kind_of_type, names)))
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
    """What a column of text or numbers means."""
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
    if name == "stats_reset":  # of a database it moves although the row is kept
        return "since" if source.scope in ("shared", "objects") else "gauge"
    return "time"
