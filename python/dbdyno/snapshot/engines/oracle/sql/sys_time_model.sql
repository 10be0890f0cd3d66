-- Where the database's time went since the instance's start, in microseconds: DB time, DB CPU, parsing ...
-- Grants: select on v_$sys_time_model (or SELECT_CATALOG_ROLE).
-- view: sys_time_model   scope: instance   appearance: fixed
-- column stat_id   key     count BIGINT
-- column stat_name text    text  VARCHAR
-- column value     counter us    BIGINT
select stat_id, stat_name, value
  from v$sys_time_model
