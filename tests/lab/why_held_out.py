"""Twenty cases that were written before the rules were tuned, and not looked at until the rules were finished."""

from __future__ import annotations

from why_planted import (
    by_checkpoints,
    by_hogs,
    by_restart,
    by_session,
    by_sql,
    cold_plan,
    in_plan,
    in_runs,
    in_snapshots,
)

VISITS = (
    "create table customers (id int primary key, region int, email text)",
    "insert into customers select n, n % 50, 'c' || n from generate_series(1, 40000) n",
    "create unique index customers_email on customers (email)",
    "create table visits (id serial primary key, customer int, day int, cost numeric, note text)",
    "insert into visits (customer, day, cost, note) select 1 + n % 9000, n % 365, n % 97, repeat('v', 60)"
    " from generate_series(1, 90000) n",
    "create index visits_customer on visits (customer)",
    "create index visits_day on visits (day)",
    "vacuum analyze",
    "checkpoint",
)
COSTS = "\\set c random(1, 9000)\nselect avg(cost), max(day) from visits where customer = :c;"
EMAIL = "\\set c random(1, 40000)\nselect id, region from customers where email = 'c' || :c;"
REGIONS = "select region, count(*) from customers group by region"
NOTES = (
    "\\set c random(1, 90000)\nupdate visits set note = note || ''"
    " where id = any (array(select 1 + (:c + n * 3631) % 90000 from generate_series(1, 20) n));"
)
_MODEL = """\
title = "%s"
target = "model:%s"
[workload]
kind = %s
[load]
sessions = 4
[schedule]
blocks = 6
transactions = 200
warmup_transactions = 20
[[arm]]
name = "as it was"
[[arm]]
name = "%s"
settings = {%s}
"""
LOG = _MODEL % (
    "a log without its battery",
    "sas-and-flash",
    '"commit-loop"\nparameters = {redo_bytes = "4 KiB", cpu_us = 100}',
    "battery lost",
    '"devices.log_sas.battery" = false',
)
READS = _MODEL % ("slower disks under the data", "nvme-server", '"key-lookup"', "worn", '"devices.nvme.read_us" = 900')
COLD = cold_plan(
    "the first minutes after a restart",
    (
        "create table history (id int primary key, item int, memo text)",
        "insert into history select n, n % 1000, repeat('m', 700) from generate_series(1, 40000) n",
        "create index history_item on history (item)",
        "vacuum analyze history",
    ),
    "\\set i random(0, 999)\nselect max(memo) from history where item between :i and :i + 8;",
    ("running", "restarted"),
)
DEAR = ("alter database postgres set random_page_cost = 100000", "alter database postgres set enable_bitmapscan = off")
LIED = (
    "create table kept as select * from visits",
    "truncate visits",
    "insert into visits (customer, day, cost, note) select 5, 7, 1, '' from generate_series(1, 90000) n",
    "analyze visits",
    "truncate visits",
    "insert into visits select * from kept",
    "drop table kept",
)
DOUBLED = (
    "insert into customers select id + 40000, region, email || 'b' from customers",
    "vacuum customers",
)

CASES = (
    in_runs("a dropped index", "index", COSTS, VISITS, by_sql("drop index visits_customer"), about="visits_customer"),
    in_runs(
        "a dropped unique index", "index", EMAIL, VISITS, by_sql("drop index customers_email"), about="customers_email"
    ),
    in_plan("a cold cache", "cache", COLD),
    in_runs(
        "a lock on a row",
        "lock",
        "update customers set region = region + 1 where id = 17;",
        VISITS,
        by_session("select * from customers where id = 17 for update", hold_s=0.08),
    ),
    in_runs(
        "a lock on a table",
        "lock",
        "insert into visits (customer, day) values (1, 1);",
        VISITS,
        by_session("lock table visits in share mode", hold_s=0.06),
    ),
    in_plan("a slow log by the model", "device", LOG),
    in_plan("slow reads by the model", "device", READS),
    in_runs("others use the processors", "processor", REGIONS + ";", VISITS, by_hogs(5), sessions=1),
    in_runs("a storm of checkpoints", "checkpoint", NOTES, VISITS, by_checkpoints(0.01)),
    in_runs("a plan flip", "plan", COSTS, VISITS, by_sql(*DEAR), about="visits"),
    in_runs("a doubled table", "growth", REGIONS + ";", VISITS, by_sql(*DOUBLED), about="customers"),
    in_snapshots(
        "a dropped index",
        "index",
        VISITS,
        by_sql("drop index visits_day"),
        "select sum(cost) from visits where day = 200",
        about="visits_day",
    ),
    in_snapshots(
        "a restart and its cold cache",
        "cache",
        VISITS,
        by_restart(),
        "select max(note) from visits where id between 100 and 60000",
        times=4,
    ),
    in_snapshots(
        "a lock on a row",
        "lock",
        VISITS,
        by_session("select * from customers where id = 17 for update", hold_s=0.08),
        "update customers set region = 3 where id = 17",
        sampled=True,
        times=6,
    ),
    in_snapshots(
        "a lock on a table",
        "lock",
        VISITS,
        by_session("lock table customers", hold_s=0.06),
        "select count(*) from customers where id = 5",
        sampled=True,
        times=8,
    ),
    in_snapshots("others use the processors", "processor", VISITS, by_hogs(5), REGIONS, sampled=True, times=8),
    in_snapshots(
        "a storm of checkpoints",
        "checkpoint",
        VISITS,
        by_checkpoints(0.01),
        *(f"update visits set day = day + 1 where customer % 900 = {n}" for n in range(8)),
        times=3,
    ),
    in_snapshots(
        "a plan flip by the planner's costs",
        "setting",
        VISITS,
        by_sql(*DEAR),
        "select avg(cost) from visits where customer = 4711",
        about="random_page_cost",
    ),
    in_snapshots(
        "a plan flip by statistics",
        "plan",
        VISITS,
        by_sql(*LIED),
        "select avg(cost) from visits where customer = 5",
        about="visits",
    ),
    in_snapshots("a doubled table", "growth", VISITS, by_sql(*DOUBLED), REGIONS, about="customers", times=12),
)
