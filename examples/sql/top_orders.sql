-- The three largest orders of each region: 100,000 rows are sorted for 60 that come back.
select id, region, amount, note
from (select *, row_number() over (partition by region order by amount desc) as place
      from orders) ranked
where place <= 3;
