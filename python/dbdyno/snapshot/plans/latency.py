"""Queries over `log_seen`: a row per statement and plan, and latency quantiles per statement."""

from __future__ import annotations

FORM = "trace record"
RECORDED = "recorded"
SOURCES = {"plan": "auto_explain", "statement": "log_min_duration_statement", RECORDED: FORM}
"""Sources of executions, in words."""
_QUANTILES = """quantile_disc(duration_us, 0.5) * 1000 as p50, quantile_disc(duration_us, 0.95) * 1000 as p95,
  quantile_disc(duration_us, 0.99) * 1000 as p99, max(duration_us) * 1000 as worst"""
_TEXTS = "(select fingerprint, any_value(query) as text from log_statements group by 1)"
PLANS_SQL = f"""
with each as (
  select statement, plan, any_value(fingerprint) as fingerprint, count(*) as executions, {_QUANTILES},
    round(avg(rows_planned))::bigint as rows_planned,
    round(avg(rows))::bigint as rows, max(misestimate) as misestimate, round(avg(hits))::bigint as hits,
    round(avg(reads))::bigint as reads, min(at_us) as first, max(at_us) as last, sum(duration_us) as spent
  from log_seen where plan is not null group by 1, 2),
sketches as (select plan, any_value(sketch) as sketch from log_plans group by 1)
select each.* exclude (fingerprint, spent), text, sketch from each left join {_TEXTS} using (fingerprint)
  left join sketches using (plan)
order by sum(spent) over (partition by statement) desc, statement, first
"""
LATENCY_SQL = f"""
with each as (
  select statement, source, any_value(fingerprint) as fingerprint, count(*) as executions, {_QUANTILES},
    sum(duration_us) as spent from log_seen group by 1, 2)
select each.* exclude (fingerprint, spent), text from each left join {_TEXTS} using (fingerprint)
qualify row_number() over (partition by statement order by executions desc, source desc) = 1
order by spent desc, statement
"""
"""Query of quantiles per statement, from the source with more executions; if equal, from log_min_duration_statement."""
