-- What was done to every segment since the instance's start; one row per segment.
-- Grants: select on v_$segment_statistics (or SELECT_CATALOG_ROLE). Needs statistics_level = typical.
-- An object that was truncated or moved has another data_object_id: that is another row.
-- Containers number their tablespaces and objects apart, so that con_id is part of the key.
-- view: segment_statistics   scope: segments   appearance: object
-- column con_id          key     count BIGINT
-- column ts_id           key     count BIGINT
-- column obj_id          key     count BIGINT
-- column dataobj_id      key     count BIGINT
-- column owner           text    text  VARCHAR
-- column object_name     text    text  VARCHAR
-- column subobject_name  text    text  VARCHAR
-- column object_type     text    text  VARCHAR
-- column logical_reads   counter blocks BIGINT
-- column physical_reads  counter blocks BIGINT
-- column physical_writes counter blocks BIGINT
-- column block_changes   counter blocks BIGINT
-- column buffer_busy     counter count BIGINT
-- column itl_waits       counter count BIGINT
-- column row_lock_waits  counter count BIGINT
select con_id, ts# as ts_id, obj# as obj_id, nvl(dataobj#, 0) as dataobj_id,
       max(owner) as owner, max(object_name) as object_name,
       max(subobject_name) as subobject_name, max(object_type) as object_type,
       sum(case statistic_name when 'logical reads' then value else 0 end) as logical_reads,
       sum(case statistic_name when 'physical reads' then value else 0 end) as physical_reads,
       sum(case statistic_name when 'physical writes' then value else 0 end) as physical_writes,
       sum(case statistic_name when 'db block changes' then value else 0 end) as block_changes,
       sum(case statistic_name when 'buffer busy waits' then value else 0 end) as buffer_busy,
       sum(case statistic_name when 'ITL waits' then value else 0 end) as itl_waits,
       sum(case statistic_name when 'row lock waits' then value else 0 end) as row_lock_waits
  from v$segment_statistics
 where value > 0
 group by con_id, ts#, obj#, nvl(dataobj#, 0)
