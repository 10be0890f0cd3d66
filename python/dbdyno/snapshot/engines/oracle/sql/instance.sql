-- Which instance this is and since when it lives: what two snapshots must agree in.
-- Grants: select on v_$instance, v_$database (or SELECT_CATALOG_ROLE).
-- view: instance   scope: now   appearance: fixed
-- column dbid              key   count BIGINT
-- column resetlogs         text  text  VARCHAR
-- column instance_number   gauge count BIGINT
-- column instance_name     text  text  VARCHAR
-- column host_name         text  text  VARCHAR
-- column version           text  text  VARCHAR
-- column started           text  text  VARCHAR
-- column at_us             gauge us    BIGINT
-- column database_role     text  text  VARCHAR
-- column con_id            gauge count BIGINT
select d.dbid,
       to_char(d.resetlogs_time, 'yyyy-mm-dd hh24:mi:ss') as resetlogs,
       i.instance_number,
       i.instance_name,
       i.host_name,
       i.version,
       to_char(i.startup_time, 'yyyy-mm-dd hh24:mi:ss') as started,
       round((cast(sys_extract_utc(systimestamp) as date) - date '1970-01-01') * 86400) * 1000000
         + to_number(to_char(systimestamp, 'ff6')) as at_us,
       d.database_role,
       to_number(sys_context('userenv', 'con_id')) as con_id
  from v$instance i cross join v$database d
