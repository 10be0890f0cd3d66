-- What every statistic of the instance has added up to since its start.
-- Grants: select on v_$sysstat (or SELECT_CATALOG_ROLE).
-- Statistics that tell a state ("... current", "... memory") are in the view too; a number that
-- falls is judged on its own.
-- view: sysstat   scope: instance   appearance: fixed
-- column stat_id key     count BIGINT
-- column name    text    text  VARCHAR
-- column class   gauge   count BIGINT
-- column value   counter count BIGINT
select stat_id, name, class, value
  from v$sysstat
