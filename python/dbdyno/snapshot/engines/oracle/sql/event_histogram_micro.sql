-- Waits of each event by their length: powers of two of microseconds. From Oracle 12.1 on.
-- Grants: select on v_$event_histogram_micro (or SELECT_CATALOG_ROLE). Idle events are left out.
-- view: event_histogram_micro   scope: instance   appearance: object
-- column event           key     text  VARCHAR
-- column wait_time_micro key     us    BIGINT
-- column wait_count      counter count BIGINT
select h.event, h.wait_time_micro, h.wait_count
  from v$event_histogram_micro h
 where h.wait_count > 0
   and exists (select null from v$event_name n where n.name = h.event and n.wait_class <> 'Idle')
