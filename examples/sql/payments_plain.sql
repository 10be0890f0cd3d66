\set account random(0, 9999)
select id, amount from payments where account = :account;
