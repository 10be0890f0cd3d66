"""Queries to a live PostgreSQL server, one per kind of evidence; the columns are named after the fields of that kind.

Only catalogs and statistics are read, and no function opens a table, so locks on tables block nothing. A column that
only some versions have is read from the row as JSON (`to_jsonb(x) ->> 'name'`): the same text works for versions 12 to
18, and older versions return NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from dbdyno.advise import kinds


@dataclass(frozen=True, slots=True)
class Query:
    """Query for one kind of evidence on versions from `least` up to, but not including, `below`.

    If `whole` is True, the query needs the rows of other roles, which only members of pg_read_all_stats can see.
    """

    kind: type
    sql: LiteralString
    least: int = 0
    below: int = 10**9
    whole: bool = False


_USER_TABLE: LiteralString = """
case when {n}.nspname = 'public' then '' else quote_ident({n}.nspname) || '.' end || quote_ident({c}.relname)
"""
_OUTSIDE: LiteralString = "n.nspname not in ('pg_catalog', 'information_schema') and n.nspname !~ '^pg_(toast|temp)'"

SERVER: LiteralString = """
select 'postgres' as engine, current_setting('server_version') as version,
  current_setting('server_version_num')::int as version_num, pg_is_in_recovery() as in_recovery,
  version() as platform, (extract(epoch from clock_timestamp()) * 1000000)::bigint as at_us,
  (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint as started_us,
  pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all, current_user::text as role,
  coalesce((select min(mark) from (
      select case rolname when 'rds_superuser' then 'Amazon RDS' when 'cloudsqlsuperuser' then 'Google Cloud SQL'
        when 'alloydbsuperuser' then 'Google AlloyDB' when 'azure_pg_admin' then 'Azure flexible server'
        when 'neon_superuser' then 'Neon' when 'supabase_admin' then 'Supabase'
        when 'heroku_admin' then 'Heroku' end as mark from pg_roles
      union all
      select 'Amazon Aurora' from pg_settings where name = 'rds.extensions' and setting like '%aurora_stat_utils%'
    ) marks), '') as service
"""

_SETTINGS: LiteralString = """
select name, case when source = 'session' then reset_val else setting end as value, coalesce(unit, '') as unit, source
from pg_settings
"""

_DATABASES: LiteralString = """
select s.datname::text as name, s.blks_read as reads, s.blks_hit as hits,
  case when current_setting('track_io_timing') = 'on' then s.blk_read_time end as read_ms,
  s.temp_files, s.temp_bytes, s.xact_commit as commits, (to_jsonb(s) ->> 'sessions')::bigint as sessions,
  (to_jsonb(s) ->> 'active_time')::float8 as active_ms, age(d.datfrozenxid) as frozen_age,
  mxid_age(d.datminmxid) as multixact_age,
  extract(epoch from clock_timestamp() - s.stats_reset)::float8 as span_s,
  d.datname = current_database() as is_current
from pg_stat_database s join pg_database d on d.oid = s.datid order by s.datname
"""

_TABLES: LiteralString = f"""
select {_USER_TABLE.format(n="n", c="c")} as name, s.n_live_tup as rows, s.n_dead_tup as dead, c.relpages as pages,
  s.n_tup_ins as inserted, s.n_tup_upd as updated, s.n_tup_del as deleted, s.seq_scan as seq_scans,
  s.seq_tup_read as seq_rows, s.idx_scan as idx_scans, s.n_mod_since_analyze as modified,
  (extract(epoch from greatest(s.last_vacuum, s.last_autovacuum)) * 1000000)::bigint as vacuumed_us,
  (extract(epoch from greatest(s.last_analyze, s.last_autoanalyze)) * 1000000)::bigint as analyzed_us,
  s.vacuum_count + s.autovacuum_count as vacuums, age(c.relfrozenxid) as frozen_age,
  coalesce(c.reloptions, '{{}}') as options, i.heap_blks_read as heap_reads, i.idx_blks_read as idx_reads,
  c.reltuples::float8 as estimated_rows
from pg_stat_user_tables s join pg_class c on c.oid = s.relid join pg_namespace n on n.oid = c.relnamespace
  left join pg_statio_user_tables i on i.relid = s.relid
where c.relpersistence <> 't' order by 1
"""

# `pg_get_indexdef` opens the table, but is the only way to get expressions and predicates. If a session holds the table
# exclusively, they are replaced by a unique name, so that the index equals no other.
_EXPRESSIONS: LiteralString = """
case when x.indrelid in (select relation from pg_locks where mode = 'AccessExclusiveLock' and relation is not null)
  then 'of ' || x.indexrelid else pg_get_expr({what}, x.indrelid) end
"""
_INDEXES: LiteralString = f"""
select {_USER_TABLE.format(n="n", c="c")} as name, {_USER_TABLE.format(n="n", c="t")} as "table",
  array(select coalesce(quote_ident(u.attname), '(' || {_EXPRESSIONS.format(what="x.indexprs")} || ')')
      || case when o.opcdefault then '' else ' ' || o.opcname end
      || case x.indoption[k - 1] when 0 then '' else ' option ' || x.indoption[k - 1] end
      || case when x.indcollation[k - 1] in (0, a.attcollation) then '' else ' collation ' || x.indcollation[k - 1] end
    from generate_series(1, x.indnkeyatts) k join pg_opclass o on o.oid = x.indclass[k - 1]
      join pg_attribute a on a.attrelid = x.indexrelid and a.attnum = k
      left join pg_attribute u on u.attrelid = x.indrelid and u.attnum = x.indkey[k - 1] and u.attnum <> 0
    order by k) as columns,
  m.amname || ' where ' || case when x.indpred is null then '' else {_EXPRESSIONS.format(what="x.indpred")} end
    || ' include ' || array_to_string((string_to_array(x.indkey::text, ' '))[x.indnkeyatts + 1:], ', ') as rest,
  c.relpages * current_setting('block_size')::bigint as bytes, coalesce(s.idx_scan, 0) as scans,
  x.indisunique as is_unique,
  exists (select from pg_constraint k where k.conindid = x.indexrelid) as is_constraint,
  x.indisvalid as is_valid,
  exists (select from pg_stat_progress_create_index g where g.index_relid = x.indexrelid) as is_building,
  x.indisreplident as is_replica_identity, m.amname::text as method,
  (extract(epoch from (to_jsonb(s) ->> 'last_idx_scan')::timestamptz) * 1000000)::bigint as read_since_us
from pg_index x join pg_class c on c.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
  join pg_namespace n on n.oid = t.relnamespace join pg_am m on m.oid = c.relam
  left join pg_stat_user_indexes s on s.indexrelid = x.indexrelid
where {_OUTSIDE} and t.relpersistence <> 't' and c.relkind = 'i' order by 2, 1
"""

_WIDTHS: LiteralString = f"""
select {_USER_TABLE.format(n="n", c="c")} as "table", sum(s.avg_width * (1 - s.null_frac))::float8 as bytes,
  count(s.attname) = (select count(*) from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as known
from pg_class c join pg_namespace n on n.oid = c.relnamespace
  join pg_stats s on s.schemaname = n.nspname and s.tablename = c.relname and not s.inherited
where {_OUTSIDE} and c.relkind in ('r', 'm') and c.relpages >= 1000 group by c.oid, n.nspname, c.relname order by 1
"""
_COLUMNS: LiteralString = f"""
select {_USER_TABLE.format(n="n", c="c")} as "table", s.attname::text as name,
  (case when s.n_distinct < 0 then -s.n_distinct * c.reltuples else s.n_distinct end)::float8 as values,
  coalesce((select max(f) from unnest(s.most_common_freqs) f), 0)::float8 as commonest
from pg_stats s join pg_namespace n on n.nspname = s.schemaname
  join pg_class c on c.relnamespace = n.oid and c.relname = s.tablename
where {_OUTSIDE} and s.n_distinct <> 0 and not s.inherited and c.oid in (select oid from pg_class
    where relkind in ('r', 'm') and relpages >= 100 order by relpages desc limit 400)
order by 1, 2
"""

_FOREIGN_KEYS: LiteralString = f"""
select k.conname::text as name, {_USER_TABLE.format(n="n", c="c")} as child,
  {_USER_TABLE.format(n="pn", c="p")} as parent,
  array(select quote_ident(a.attname) from unnest(k.conkey) with ordinality w(number, place)
    join pg_attribute a on a.attrelid = k.conrelid and a.attnum = w.number order by place) as columns,
  exists (select from pg_index x where x.indrelid = k.conrelid and x.indisvalid and x.indpred is null
    and (string_to_array(x.indkey::text, ' ')::int2[])[1:array_length(k.conkey, 1)] @> k.conkey) as is_indexed,
  c.relpages as child_pages, coalesce(s.n_tup_del, 0) as parent_deleted, coalesce(s.n_tup_upd, 0) as parent_updated
from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
  join pg_class p on p.oid = k.confrelid join pg_namespace pn on pn.oid = p.relnamespace
  left join pg_stat_user_tables s on s.relid = k.confrelid
where k.contype = 'f' and k.conparentid = 0 order by 2, 1
"""

_KEYS: LiteralString = f"""
select {_USER_TABLE.format(n="sn", c="c")} as sequence,
  {_USER_TABLE.format(n="n", c="t")} || '.' || quote_ident(a.attname) as "column",
  case when has_sequence_privilege(c.oid, 'select, usage') then pg_sequence_last_value(c.oid) end as last,
  q.seqmax as sequence_most,
  case a.atttypid when 'int2'::regtype then 32767 when 'int4'::regtype then 2147483647
    else 9223372036854775807 end as column_most, q.seqcycle as cycles
from pg_sequence q join pg_class c on c.oid = q.seqrelid join pg_namespace sn on sn.oid = c.relnamespace
  join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
    and d.refobjsubid > 0 and d.deptype in ('a', 'i')
  join pg_class t on t.oid = d.refobjid join pg_namespace n on n.oid = t.relnamespace
  join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid
where q.seqincrement > 0 order by 1
"""

_CHECKPOINTS: LiteralString = """
select checkpoints_timed as timed, checkpoints_req as requested,
  extract(epoch from clock_timestamp() - stats_reset)::float8 as span_s, checkpoint_write_time as write_ms,
  checkpoint_sync_time as sync_ms from pg_stat_bgwriter
"""
_CHECKPOINTER: LiteralString = """
select num_timed as timed, num_requested as requested,
  extract(epoch from clock_timestamp() - stats_reset)::float8 as span_s, write_time as write_ms,
  sync_time as sync_ms from pg_stat_checkpointer
"""
_WAL: LiteralString = """
select wal_bytes::bigint as bytes, wal_records as records, wal_fpi as full_pages, wal_buffers_full as buffers_full,
  extract(epoch from clock_timestamp() - stats_reset)::float8 as span_s from pg_stat_wal
"""
_IO: LiteralString = """
select backend_type as backend, object, context, coalesce(reads, 0) as reads,
  case when current_setting('track_io_timing') = 'on' then read_time end as read_ms,
  coalesce((to_jsonb(i) ->> 'read_bytes')::bigint, reads * (to_jsonb(i) ->> 'op_bytes')::bigint, 0) as read_bytes,
  coalesce(evictions, 0) as evictions
from pg_stat_io i where object in ('relation', 'temp relation') order by 1, 2, 3
"""
_SLOTS: LiteralString = """
select slot_name::text as name, slot_type as kind, active as is_active,
  coalesce(to_jsonb(s) ->> 'wal_status', '') as status,
  (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - restart_lsn)::bigint
    as held_bytes, age(xmin) as xmin_age, age(catalog_xmin) as catalog_xmin_age
from pg_replication_slots s where not temporary order by 1
"""
_SESSIONS: LiteralString = """
with waiting as materialized (
  select pid, pg_blocking_pids(pid) as blockers, coalesce((select extract(epoch from clock_timestamp()
      - min((to_jsonb(l) ->> 'waitstart')::timestamptz)) from pg_locks l where l.pid = a.pid and not granted), 0) as s
  from pg_stat_activity a where wait_event_type = 'Lock')
select a.pid, coalesce(usename::text, '') as "user", application_name as application, coalesce(state, '') as state,
  extract(epoch from clock_timestamp() - xact_start)::float8 as transaction_s,
  extract(epoch from clock_timestamp() - state_change)::float8 as state_s, age(backend_xmin) as xmin_age,
  (select count(*) from waiting w where a.pid = any(w.blockers)) as waiters,
  (select coalesce(sum(s), 0)::float8 from waiting w where a.pid = any(w.blockers)) as waited_s,
  coalesce((select blockers from waiting w where w.pid = a.pid), '{}') as blocked_by
from pg_stat_activity a
where backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid() order by xact_start
"""
_LOAD: LiteralString = """
select count(*) as clients, count(*) filter (where state = 'active') as active,
  count(*) filter (where state = 'idle') as idle,
  count(*) filter (where state like 'idle in transaction%') as idle_in_transaction,
  (select count(*) from pg_locks where locktype = 'relation' and not fastpath and granted
    and mode in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')) as slow_locks
from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
"""
_SLRU: LiteralString = "select name, blks_read as reads from pg_stat_slru order by name"
_PREPARED: LiteralString = """
select gid as name, extract(epoch from clock_timestamp() - prepared)::float8 as age_s, age(transaction) as xmin_age
from pg_prepared_xacts order by prepared
"""

STATEMENTS: LiteralString = """
select queryid::text as identifier, left(query, 2000) as text, calls, total_exec_time as ms, rows,
  shared_blks_hit as hits, shared_blks_read as reads, temp_blks_written as temp_written,
  case when current_setting('track_io_timing') = 'on' then
    (to_jsonb(s) ->> 'temp_blk_read_time')::float8 + (to_jsonb(s) ->> 'temp_blk_write_time')::float8 end as temp_ms,
  (to_jsonb(s) ->> 'jit_generation_time')::float8 + (to_jsonb(s) ->> 'jit_inlining_time')::float8
    + (to_jsonb(s) ->> 'jit_optimization_time')::float8 + (to_jsonb(s) ->> 'jit_emission_time')::float8 as jit_ms,
  (to_jsonb(s) ->> 'jit_functions')::bigint as jit_functions, total_plan_time as plan_ms, wal_bytes::bigint
from pg_stat_statements s where queryid is not null and (to_jsonb(s) ->> 'toplevel') is distinct from 'false'
  and query not like '%/* dbdyno */%'
order by total_exec_time desc limit 2000
"""
"""Query on pg_stat_statements, run with the extension's schema in the search path."""

QUERIES: tuple[Query, ...] = (
    Query(kinds.Setting, _SETTINGS),
    Query(kinds.Database, _DATABASES),
    Query(kinds.Table, _TABLES),
    Query(kinds.Index, _INDEXES),
    Query(kinds.ForeignKey, _FOREIGN_KEYS),
    Query(kinds.Key, _KEYS),
    Query(kinds.Column, _COLUMNS),
    Query(kinds.Width, _WIDTHS),
    Query(kinds.Checkpoints, _CHECKPOINTS, below=170000),
    Query(kinds.Checkpoints, _CHECKPOINTER, least=170000),
    Query(kinds.Wal, _WAL, least=140000),
    Query(kinds.Slru, _SLRU, least=130000),
    Query(kinds.Io, _IO, least=160000),
    Query(kinds.Slot, _SLOTS),
    Query(kinds.Session, _SESSIONS, whole=True),
    Query(kinds.Load, _LOAD, whole=True),
    Query(kinds.PreparedTransaction, _PREPARED),
)
