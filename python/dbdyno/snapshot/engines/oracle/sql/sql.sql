-- What each statement has cost, all its child cursors together, by plan.
-- Grants: select on v_$sqlstats (or SELECT_CATALOG_ROLE).
-- V$SQLSTATS is cheaper to read than V$SQL and keeps a statement for a while after its cursor is gone; one that is
-- pushed out takes its numbers with it. Texts are not read here.
-- view: sql   scope: statements   appearance: entry
-- column sql_id           key     text  VARCHAR
-- column plan_hash_value  key     count BIGINT
-- column signature        text    text  VARCHAR
-- column executions       counter count BIGINT
-- column elapsed_time     counter us    BIGINT
-- column cpu_time         counter us    BIGINT
-- column user_io_wait     counter us    BIGINT
-- column application_wait counter us    BIGINT
-- column concurrency_wait counter us    BIGINT
-- column buffer_gets      counter blocks BIGINT
-- column disk_reads       counter blocks BIGINT
-- column direct_writes    counter blocks BIGINT
-- column rows_processed   counter count BIGINT
-- column fetches          counter count BIGINT
-- column parse_calls      counter count BIGINT
select sql_id, plan_hash_value,
       to_char(max(force_matching_signature)) as signature,
       sum(executions) as executions, sum(elapsed_time) as elapsed_time, sum(cpu_time) as cpu_time,
       sum(user_io_wait_time) as user_io_wait, sum(application_wait_time) as application_wait,
       sum(concurrency_wait_time) as concurrency_wait, sum(buffer_gets) as buffer_gets,
       sum(disk_reads) as disk_reads, sum(direct_writes) as direct_writes,
       sum(rows_processed) as rows_processed, sum(fetches) as fetches,
       sum(parse_calls) as parse_calls
  from v$sqlstats
 where elapsed_time > 0
 group by sql_id, plan_hash_value
