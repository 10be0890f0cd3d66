-- The first thousand characters of some statements (:1, :2 ... are sql_id); only for those that
-- enter a report. Literals are taken out before anything is stored.
-- Grants: select on v_$sqlstats (or SELECT_CATALOG_ROLE).
-- view: sql_text   scope: now   appearance: object
-- column sql_id key  text VARCHAR
-- column text   text text VARCHAR
select sql_id, max(sql_text) as text
  from v$sqlstats
 where sql_id in (:ids)
 group by sql_id
