-- One look at the sessions that work or wait: run again and again, it is an activity history of
-- our own, without a licence. A session that is active and does not wait is on the CPU (or waits
-- for it).
-- Grants: select on v_$session (or SELECT_CATALOG_ROLE).
-- view: activity   scope: now   appearance: fixed
-- column at_us            key   us    BIGINT
-- column session          key   count BIGINT
-- column kind             text  text  VARCHAR
-- column datname          text  text  VARCHAR
-- column usename          text  text  VARCHAR
-- column application      text  text  VARCHAR
-- column statement        text  text  VARCHAR
-- column state            text  text  VARCHAR
-- column event_type       text  text  VARCHAR
-- column event            text  text  VARCHAR
-- column transaction_us   gauge us    BIGINT
-- column blocking_session gauge count BIGINT
-- column object           gauge count BIGINT
select round((cast(sys_extract_utc(systimestamp) as date) - date '1970-01-01') * 86400) * 1000000
         + to_number(to_char(systimestamp, 'ff6')) as at_us,
       s.sid as "SESSION",
       case s.type when 'USER' then 'client' else 'background' end as kind,
       sys_context('userenv', 'con_name') as datname,
       s.username as usename,
       s.module as application,
       s.sql_id as statement,
       'active' as state,
       case s.state when 'WAITING' then s.wait_class end as event_type,
       case s.state when 'WAITING' then s.event end as event,
       cast(null as number) as transaction_us,
       s.blocking_session,
       s.row_wait_obj# as "OBJECT"
  from v$session s
 where s.sid <> to_number(sys_context('userenv', 'sid'))
   and (s.type = 'USER' and s.status = 'ACTIVE'
        or s.type = 'BACKGROUND' and s.state = 'WAITING')
   and (s.state <> 'WAITING' or s.wait_class <> 'Idle')
