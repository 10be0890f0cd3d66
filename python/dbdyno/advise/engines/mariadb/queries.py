"""Queries to a live MariaDB server, one per kind of evidence; the columns are named after the fields of that kind.

Times in performance_schema are picoseconds. Only statistics and catalogs are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo
from dbdyno.advise.kinds import Column, Database, Index, Key, Load, Session, Table
from dbdyno.advise.placement import Segment


@dataclass(frozen=True, slots=True)
class Query:
    """Query for one kind of evidence; `accounted`: needs performance_schema; `instrument`: needs that instrument."""

    kind: type
    sql: str
    accounted: bool = False
    instrument: str = ""


_SYSTEM = "('mysql', 'information_schema', 'performance_schema', 'sys')"
DATA_FILES = "wait/io/file/innodb/innodb_data_file"
TABLES_TIMED = "wait/io/table/sql/handler"

_DIGESTS = """
select coalesce(digest, '') as identifier, coalesce(digest_text, '') as text, sum(count_star) as calls,
  sum(sum_timer_wait) / 1e9 as ms, sum(sum_rows_examined) as examined, sum(sum_rows_sent) as sent,
  sum(sum_created_tmp_tables) as temp_tables, sum(sum_created_tmp_disk_tables) as temp_disk_tables,
  sum(sum_no_index_used) as without_index
from performance_schema.events_statements_summary_by_digest group by digest, digest_text order by ms desc
"""
_FILES = """
select event_name as event, count_read as `reads`, sum_timer_read / 1e9 as read_ms, sum_timer_wait / 1e9 as ms
from performance_schema.file_summary_by_event_name where count_star > 0
"""
_DATABASES = """
select 'all' as name, 0 as `reads`, 0 as hits, null as read_ms, 0 as temp_files, 0 as temp_bytes, 0 as commits,
  null as sessions, null as active_ms, null as frozen_age, null as multixact_age,
  cast(variable_value as unsigned) as span_s, 1 as is_current
from information_schema.global_status where variable_name = 'UPTIME'
"""
_TABLES = f"""
select object_schema as table_schema, object_name as table_name, sum(count_insert) as inserted,
  sum(count_update) as updated,
  sum(count_delete) as deleted, sum(if(index_name is null, count_fetch, 0)) as seq_rows,
  sum(if(index_name is not null, count_fetch, 0)) as idx_scans
from performance_schema.table_io_waits_summary_by_index_usage
where object_type = 'TABLE' and object_schema not in {_SYSTEM} and object_name is not null
group by object_schema, object_name order by 1, 2
"""
PARTS_OF_INDEXES = f"""
select table_schema, table_name, index_name, non_unique = 0 as is_unique, lower(index_type) as method,
  group_concat(column_name, if(sub_part is null, '', concat('(', sub_part, ')')),
    if(collation = 'D', ' desc', '') order by seq_in_index separator '\\n') as columns_used
from information_schema.statistics where table_schema not in {_SYSTEM}
group by table_schema, table_name, index_name, non_unique, index_type order by 1, 2, 3
"""
BEHIND_KEYS = f"""
select table_schema, table_name, column_name from information_schema.key_column_usage
where referenced_table_name is not null and ordinal_position = 1 and table_schema not in {_SYSTEM}
"""
INDEX_SIZES = f"""
select database_name as table_schema, table_name, index_name, stat_value * @@innodb_page_size as bytes
from mysql.innodb_index_stats where stat_name = 'size' and database_name not in {_SYSTEM}
"""
INDEX_USE = f"""
select object_schema as table_schema, object_name as table_name, index_name, count_fetch as scans
from performance_schema.table_io_waits_summary_by_index_usage
where index_name is not null and object_schema not in {_SYSTEM}
"""
TABLE_SIZES = f"""
select database_name as table_schema, table_name, n_rows, clustered_index_size as pages
from mysql.innodb_table_stats where database_name not in {_SYSTEM}
"""
_COLUMNS = f"""
select db_name, c.table_name, column_name, s.n_rows / c.avg_frequency as `values`,
  c.avg_frequency / s.n_rows as commonest
from mysql.column_stats c join mysql.innodb_table_stats s on s.database_name = c.db_name
  and s.table_name = c.table_name
where db_name not in {_SYSTEM} and c.avg_frequency > 0 and s.n_rows > 0 order by 1, 2, 3
"""
_SEGMENTS = """
select substring_index(s.name, '/', 1) as table_schema, substring_index(s.name, '/', -1) as table_name,
  'table' as kind, s.file_size as bytes, f.count_read as `reads`, '' as `database`
from performance_schema.file_summary_by_instance f
  join information_schema.innodb_sys_tablespaces s
    on substring_index(f.file_name, '/', -2) = substring_index(s.filename, '/', -2)
where f.event_name = 'wait/io/file/innodb/innodb_data_file' and s.name like '%/%' and s.name not like 'mysql/%'
order by 1, 2
"""
_MOST = "case data_type when 'tinyint' then 7 when 'smallint' then 15 when 'mediumint' then 23 when 'int' then 31"
_KEYS = f"""
select c.table_schema, c.table_name, c.column_name, t.auto_increment - 1 as last,
  cast(power(2, {_MOST} else 63 end + (column_type like '%unsigned%')) as decimal(30)) - 1 as most
from information_schema.columns c join information_schema.tables t
  on t.table_schema = c.table_schema and t.table_name = c.table_name
where c.extra like '%auto_increment%' and c.table_schema not in {_SYSTEM} and t.auto_increment > 1
"""
_LOAD = """
select count(*) as clients, coalesce(sum(command <> 'Sleep'), 0) as active,
  coalesce(sum(command = 'Sleep'), 0) as idle,
  (select count(*) from information_schema.innodb_trx t join information_schema.processlist p
    on p.id = t.trx_mysql_thread_id where p.command = 'Sleep') as idle_in_transaction
from information_schema.processlist
where id <> connection_id() and command not in ('Daemon', 'Binlog Dump', 'Slave_IO', 'Slave_SQL')
"""
_SESSIONS = """
select p.id as pid, p.user, p.db as application,
  if(p.command = 'Sleep', 'idle in transaction', 'active') as state,
  timestampdiff(microsecond, t.trx_started, now()) / 1e6 as transaction_s, p.time_ms / 1e3 as state_s,
  (select count(*) from information_schema.innodb_lock_waits w where w.blocking_trx_id = t.trx_id) as waiters,
  coalesce((select sum(timestampdiff(microsecond, b.trx_wait_started, now())) / 1e6
    from information_schema.innodb_lock_waits w join information_schema.innodb_trx b
      on b.trx_id = w.requesting_trx_id where w.blocking_trx_id = t.trx_id), 0) as waited_s,
  (select group_concat(b.trx_mysql_thread_id) from information_schema.innodb_lock_waits w
    join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id
    where w.requesting_trx_id = t.trx_id) as blocked_by
from information_schema.innodb_trx t join information_schema.processlist p on p.id = t.trx_mysql_thread_id
where p.id <> connection_id() order by t.trx_started
"""

QUERIES: tuple[Query, ...] = (
    Query(Database, _DATABASES),
    Query(Digest, _DIGESTS, accounted=True),
    Query(FileIo, _FILES, accounted=True, instrument=DATA_FILES),
    Query(Table, _TABLES, accounted=True, instrument=TABLES_TIMED),
    Query(Index, PARTS_OF_INDEXES),
    Query(Segment, _SEGMENTS, accounted=True, instrument=DATA_FILES),
    Query(Column, _COLUMNS),
    Query(Key, _KEYS),
    Query(Load, _LOAD),
    Query(Session, _SESSIONS),
)
