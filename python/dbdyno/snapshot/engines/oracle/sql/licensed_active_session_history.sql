-- LICENSED: needs the Oracle Diagnostics Pack. Never run unless the connection string names it:
--     oracle://user@host/service?licensed=active_session_history
-- Querying it may leave evidence of use in DBA_FEATURE_USAGE_STATISTICS.
-- Grants: select on v_$active_session_history. :since_us is the time of the snapshot before.
-- view: licensed_active_session_history   scope: now   appearance: fixed
-- column at_us      key  us    BIGINT
-- column session    key  count BIGINT
-- column kind       text text  VARCHAR
-- column statement  text text  VARCHAR
-- column event_type text text  VARCHAR
-- column event      text text  VARCHAR
select round((cast(at as date) - date '1970-01-01') * 86400) * 1000000 as at_us,
       session_id as "SESSION",
       case session_type when 'FOREGROUND' then 'client' else 'background' end as kind,
       sql_id as statement,
       case session_state when 'WAITING' then wait_class end as event_type,
       case session_state when 'WAITING' then event end as event
  from (select h.*,
               sys_extract_utc(from_tz(cast(sample_time as timestamp),
                                       to_char(systimestamp, 'tzr'))) as at
          from v$active_session_history h)
 where at > timestamp '1970-01-01 00:00:00' + numtodsinterval(:since_us / 1000000, 'second')
