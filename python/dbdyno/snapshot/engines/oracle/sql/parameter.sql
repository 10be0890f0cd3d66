-- The parameters of the instance; control_management_pack_access is among them and is only read.
-- Grants: select on v_$parameter (or SELECT_CATALOG_ROLE).
-- view: parameter   scope: now   appearance: object
-- column name       key  text VARCHAR
-- column value      text text VARCHAR
-- column isdefault  text text VARCHAR
-- column ismodified text text VARCHAR
select name, display_value as value, isdefault, ismodified
  from v$parameter
