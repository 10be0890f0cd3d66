-- One visit to the shop of schema.sql, in pgbench's language. `system_user` is reserved since PostgreSQL 16.
\set customer random(1, 5000)
\set product random(1, 2000)
\set category random(1, 60)
select name, email from customers where id = :customer;
select p.id, p.name, c.amount from products p join prices c on c.product = p.id
  where p.category = :category and c.currency = 'EUR' order by c.amount, p.id limit 20;
select avg(stars), count(*) from reviews where product = :product;
select id, placed, status, total from orders where customer = :customer order by placed desc limit 10;
select sum(i.pieces * i.amount) from order_items i join orders o on o.id = i.order_id where o.customer = :customer;
select system_user.name, r.name from customers system_user join regions r on r.id = system_user.region
  where system_user.id = :customer;
begin;
insert into orders (customer, placed, status, total) values (:customer, now(), 'new', 20);
update accounts set balance = balance - 20 where customer = :customer;
end;
select count(*), max(total) from open_orders where placed > timestamptz '2026-03-01';
