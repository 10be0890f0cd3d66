"""Rows of the catalog that snapshots read in addition to the statistics.

They are columns, the planner's statistics, stored settings of roles, databases and functions, and the objects through
which a statement reaches a table that it does not name.
"""

from __future__ import annotations

import functools

from dbdyno.bench.postgres.shown_settings import CREDENTIALS, SECRET_NAMES
from dbdyno.snapshot.engines.postgres.source import Source, text_column

_catalog = functools.partial(Source, scope="now", states=True)
"""Constructor of a `Source` for rows without counters: only their current values are read."""

_OPTION = "(select split_part(c, '=', 1) as name, substr(c, strpos(c, '=') + 1) as setting) o"
_SHOWN_OPTION = (
    f"case when o.setting <> '' and (o.name ~* '{SECRET_NAMES.pattern}' or o.setting ~* '{CREDENTIALS}')"
    " then '(hidden)' else o.setting end"
)
"""SQL for a value that ALTER ROLE, ALTER DATABASE or ALTER FUNCTION stores, with secrets hidden."""

STORED_SETTINGS = _catalog(
    "pg_db_role_setting",
    ("setdatabase", "setrole", "name"),
    rows="(select d.setdatabase, d.setrole, o.name, r.rolname::text as role, b.datname::text as of_database,"
    f" {_SHOWN_OPTION} as setting from pg_db_role_setting d cross join unnest(d.setconfig) c"
    f" cross join lateral {_OPTION} left join pg_roles r on r.oid = d.setrole"
    " left join pg_database b on b.oid = d.setdatabase) s",
    only=frozenset({"setdatabase", "setrole"}),
    extra=(text_column("name", kind="key"), text_column("setting"), text_column("role"), text_column("of_database")),
)
"""Settings that the server stores for a role, a database, or a role in a database."""

FUNCTIONS = _catalog(
    "pg_proc",
    ("oid",),
    rows="(select p.oid, n.nspname || '.' || p.proname as name, (select string_agg(o.name || '=' ||"
    f" {_SHOWN_OPTION}, ', ' order by 1) from unnest(p.proconfig) c cross join lateral {_OPTION}) as settings"
    " from pg_proc p join pg_namespace n on n.oid = p.pronamespace where p.oid >= 16384 and not exists (select from"
    " pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')) s",
    only=frozenset({"oid"}),
    extra=(text_column("name"), text_column("settings")),
)
"""User-defined functions, except those of extensions, with the settings under which each function runs."""

FOREIGN_KEYS = _catalog(
    "pg_constraint",
    ("oid",),
    where="contype = 'f' and conrelid >= 16384",
    only=frozenset({"oid", "conname", "conrelid", "confrelid"}),
    extra=(
        text_column(
            "columns",
            "(select string_agg(a.attname::text, ', ' order by u.at) from unnest(conkey) with ordinality u (number, at)"
            " join pg_attribute a on a.attrelid = conrelid and a.attnum = u.number)",
        ),
        ("conkey[1]", "first_column", "gauge", "count", "BIGINT"),
    ),
)
TRIGGERS = _catalog("pg_trigger", ("oid",), where="not tgisinternal", only=frozenset({"oid", "tgname", "tgrelid"}))
VIEWS = _catalog(
    "pg_rewrite",
    ("ev_class", "relid"),
    rows="(select distinct r.ev_class, d.refobjid as relid, c.relname::text as name from pg_rewrite r"
    " join pg_class c on c.oid = r.ev_class and c.oid >= 16384 and c.relkind = 'v'"
    " join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid"
    " and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.ev_class) s",
    only=frozenset({"ev_class"}),
    extra=(
        ("relid", "relid", "key", "count", "BIGINT"),
        text_column("name"),
    ),
)
"""Views with the relations that they read.

Foreign keys, triggers and views are the means by which a statement reaches a table that it does not name.
"""

STATISTICS = _catalog("pg_statistic_ext", ("oid",), only=frozenset({"oid", "stxname", "stxrelid"}))
"""Statistics objects, which the planner uses for several columns together."""

SEQUENCES = _catalog(
    "pg_sequence",
    ("seqrelid",),
    rows="(select s.seqrelid, s.seqcache, c.relname::text as name, (select d.refobjid from pg_depend d where"
    " d.classid = 'pg_class'::regclass and d.objid = s.seqrelid and d.refclassid = 'pg_class'::regclass"
    " and d.deptype in ('a', 'i') limit 1) as owner from pg_sequence s join pg_class c on c.oid = s.seqrelid) s",
    only=frozenset({"seqrelid", "seqcache"}),
    extra=(
        text_column("name"),
        ("owner::bigint", "owner", "gauge", "count", "BIGINT"),
    ),
)
"""Sequences, with the number of values that a session caches and the table to whose column each one belongs."""

COLUMNS = _catalog(
    "pg_attribute",
    ("attrelid", "attnum"),
    where="attnum > 0 and not attisdropped and attrelid in (select oid from pg_class where oid >= 16384"
    " and relkind in ('r', 'm') and relpersistence <> 't' and relnamespace <> 11)",
    only=frozenset({"attrelid", "attnum", "attname", "attnotnull"}),
    extra=(text_column("type", "format_type(atttypid, atttypmod)"),),
)
"""Columns of tables, read when the catalog has changed."""

PLANNER = _catalog(
    "pg_stats",
    ("relid", "attname"),
    rows="(select c.oid as relid, s.attname, s.most_common_freqs as freqs,"
    " case when s.n_distinct < 0 then -s.n_distinct * c.reltuples else s.n_distinct end as distinct_values"
    " from (select oid, relname, relnamespace, reltuples from pg_class where oid >= 16384 and relkind in ('r', 'm')"
    " and relpersistence <> 't' and relpages >= 100 order by relpages desc limit 200) c"
    " join pg_namespace n on n.oid = c.relnamespace cross join lateral (select * from pg_stats s"
    " where s.schemaname = n.nspname and s.tablename = c.relname and s.n_distinct <> 0 and not s.inherited"
    " offset 0) s) s",
    only=frozenset({"attname"}),
    extra=(
        ("relid", "relid", "key", "count", "BIGINT"),
        ("distinct_values::float8", "distinct_values", "gauge", "count", "DOUBLE"),
        (
            "coalesce((select max(f) from unnest(freqs) f), 0)::float8",
            "commonest",
            "gauge",
            "ratio",
            "DOUBLE",
        ),
    ),
)
"""The planner's statistics on columns of the 200 largest tables with 100 pages or more.

They are the number of distinct values and the share of the most common one; no value of a column is read. They are read
table by table, because pg_stats checks for each column of a database whether the role may read it (15 ms for 880
tables, 1 ms this way). Columns that the role may not read are missing.
"""

CATALOGS = (
    (COLUMNS, 1249),
    (PLANNER, 2619),
    (FUNCTIONS, 1255),
    (FOREIGN_KEYS, 2606),
    (TRIGGERS, 2620),
    (VIEWS, 2618),
    (STATISTICS, 3381),
    (SEQUENCES, 2224),
)
"""Sources read only if their catalog was written to, each with its catalog's oid, the same in every version.

The catalogs are pg_attribute, pg_statistic and so on.
"""
