-- Every wait event since the instance's start: how often, how long; of foreground sessions apart.
-- Grants: select on v_$system_event (or SELECT_CATALOG_ROLE). Needs timed_statistics = true.
-- view: system_event   scope: instance   appearance: object
-- column event_id             key     count BIGINT
-- column event                text    text  VARCHAR
-- column wait_class           text    text  VARCHAR
-- column total_waits          counter count BIGINT
-- column total_timeouts       counter count BIGINT
-- column time_waited_micro    counter us    BIGINT
-- column total_waits_fg       counter count BIGINT
-- column time_waited_micro_fg counter us    BIGINT
select event_id, event, wait_class, total_waits, total_timeouts, time_waited_micro,
       total_waits_fg, time_waited_micro_fg
  from v$system_event
