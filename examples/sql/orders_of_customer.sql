\set customer random(0, 19999)
select id, amount from orders where customer = :customer;
