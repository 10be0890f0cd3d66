"""Cases that were used to write the rules."""

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

from mock_plans import model_plan

ORDERS = (
    "create table orders (id int primary key, cust int, amount int, note text)",
    "insert into orders select n, n / 10, n, repeat('x', 40) from generate_series(1, 60000) n",
    "create index orders_cust on orders (cust)",
    "vacuum analyze orders",
    "checkpoint",
)
BY_CUST = "\\set c random(1, 6000)\nselect sum(amount) from orders where cust = :c;"
SUM = "select sum(amount) from orders where cust = 77"
SCAN = "select count(*) from orders where amount % 7 = 3"
WRITE = (
    "\\set i random(1, 60000)\nupdate orders set amount = amount + 1"
    " where id = any (array(select 1 + (:i + n * 2953) % 60000 from generate_series(1, 20) n));"
)
"""Script that updates rows on twenty pages, so that full-page images are most of the WAL; one page is too cheap."""
NO_INDEX = tuple(
    f"alter database postgres set enable_{one} = off" for one in ("indexscan", "bitmapscan", "indexonlyscan")
)
FLASH_AND_DISK = """\
[[arm]]
name = "flash"
settings = {"storage.redo" = "log_flash"}
[[arm]]
name = "disk"
settings = {"storage.redo" = "log_disk"}
"""
COLD = cold_plan(
    "cold",
    (
        "create table facts (id int primary key, v int, note text)",
        "insert into facts select n, n, repeat('x', 400) from generate_series(1, 60000) n",
        "vacuum analyze facts",
    ),
    "\\set i random(1, 59000)\nselect count(note) from facts where id between :i and :i + 900;",
    ("warm", "cold"),
)

CASES = (
    in_runs("a dropped index", "index", BY_CUST, ORDERS, by_sql("drop index orders_cust"), about="orders_cust"),
    in_runs("a plan flip", "plan", BY_CUST, ORDERS, by_sql(*NO_INDEX), about="orders"),
    in_runs(
        "a doubled table",
        "growth",
        SCAN + ";",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders", "vacuum analyze orders"),
        about="orders",
    ),
    in_runs(
        "a lock on rows",
        "lock",
        "\\set i random(1, 4)\nupdate orders set amount = amount + 1 where id = :i;",
        ORDERS,
        by_session("update orders set amount = 0 where id < 5", hold_s=0.05),
    ),
    in_runs("others use the processors", "processor", SCAN + ";", ORDERS, by_hogs(5)),
    in_runs("a storm of checkpoints", "checkpoint", WRITE, ORDERS, by_checkpoints(0.01)),
    in_plan("a slow log by the model", "device", model_plan(FLASH_AND_DISK, title="a slower log", blocks=6)),
    in_plan("a cold cache", "cache", COLD),
    in_snapshots("a dropped index", "index", ORDERS, by_sql("drop index orders_cust"), SUM, about="orders_cust"),
    in_snapshots(
        "a lock on rows",
        "lock",
        ORDERS,
        by_session("update orders set amount = 0 where id < 5", hold_s=0.05),
        "update orders set amount = amount + 1 where id = 3",
        sampled=True,
        times=8,
    ),
    in_snapshots("others use the processors", "processor", ORDERS, by_hogs(5), SCAN, sampled=True, times=8),
    in_snapshots(
        "a restart and its cold cache",
        "cache",
        ORDERS,
        by_restart(),
        "select count(note) from orders where id between 1 and 30000",
        times=4,
    ),
    in_snapshots(
        "a doubled table",
        "growth",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders"),
        SCAN,
        about="orders",
        times=8,
    ),
    in_snapshots(
        "a storm of checkpoints",
        "checkpoint",
        ORDERS,
        by_checkpoints(0.01),
        *(f"update orders set amount = amount + 1 where id % 6000 = {n}" for n in range(10)),
        times=4,
    ),
    in_snapshots(
        "a table that grew by two thirds",
        "growth",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders where id <= 40000"),
        "select count(distinct cust) from orders where amount % 7 = 3",
        about="orders",
        times=8,
    ),
    # What is planted is a setting of the database: it is named before the plans that it changes.
    in_snapshots("a plan flip", "setting", ORDERS, by_sql(*NO_INDEX), SUM, about="enable_"),
)
