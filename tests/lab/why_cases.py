"""The cases that the rules were written with."""

from __future__ import annotations

from why_planted import Case, by_checkpoints, by_hogs, by_restart, by_session, by_sql

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
"""Twenty rows on as many pages, so that whole pages are most of the log: one row's cost nothing on a fast disk."""
NO_INDEX = tuple(
    f"alter database postgres set enable_{one} = off" for one in ("indexscan", "bitmapscan", "indexonlyscan")
)
MODEL = """\
title = "a slower log"
target = "model:sas-and-flash"
[workload]
kind = "commit-loop"
parameters = {redo_bytes = "512", cpu_us = 50}
[schedule]
blocks = 6
transactions = 300
warmup_transactions = 20
[[arm]]
name = "flash"
settings = {"storage.redo" = "log_flash"}
[[arm]]
name = "disk"
settings = {"storage.redo" = "log_disk"}
"""
COLD = """\
title = "cold"
target = "postgres"
[workload]
setup = [
  "create table facts (id int primary key, v int, note text)",
  "insert into facts select n, n, repeat('x', 400) from generate_series(1, 60000) n",
  "vacuum analyze facts",
]
scripts = [{name = "s", text = '''
\\set i random(1, 59000)
select count(note) from facts where id between :i and :i + 900;
'''}]
[load]
sessions = 2
[schedule]
blocks = 12
warmup_blocks = 1
turn = "250ms"
[watch]
overhead_blocks = 0
activity_hz = 100
[verdict]
metric = "mean"
accept = ["level", "difference"]
[[arm]]
name = "warm"
[[arm]]
name = "cold"
cold = true
"""

CASES = (
    Case("a dropped index", "runs", ("index",), BY_CUST, ORDERS, by_sql("drop index orders_cust"), about="orders_cust"),
    Case("a plan flip", "runs", ("plan",), BY_CUST, ORDERS, by_sql(*NO_INDEX), about="orders"),
    Case(
        "a doubled table",
        "runs",
        ("growth",),
        SCAN + ";",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders", "vacuum analyze orders"),
        about="orders",
    ),
    Case(
        "a lock on rows",
        "runs",
        ("lock",),
        "\\set i random(1, 4)\nupdate orders set amount = amount + 1 where id = :i;",
        ORDERS,
        by_session("update orders set amount = 0 where id < 5", hold_s=0.05),
    ),
    Case("others use the processors", "runs", ("processor",), SCAN + ";", ORDERS, by_hogs(5)),
    Case("a storm of checkpoints", "runs", ("checkpoint",), WRITE, ORDERS, by_checkpoints(0.01)),
    Case("a slow log by the model", "runs", ("device",), "", plan=MODEL),
    Case("a cold cache", "runs", ("cache",), "", plan=COLD),
    Case(
        "a dropped index",
        "snapshots",
        ("index",),
        "",
        ORDERS,
        by_sql("drop index orders_cust"),
        about="orders_cust",
        statements=(SUM,),
    ),
    Case(
        "a lock on rows",
        "snapshots",
        ("lock",),
        "",
        ORDERS,
        by_session("update orders set amount = 0 where id < 5", hold_s=0.05),
        sampled=True,
        statements=("update orders set amount = amount + 1 where id = 3",),
        times=8,
    ),
    Case(
        "others use the processors",
        "snapshots",
        ("processor",),
        "",
        ORDERS,
        by_hogs(5),
        sampled=True,
        statements=(SCAN,),
        times=8,
    ),
    Case(
        "a restart and its cold cache",
        "snapshots",
        ("cache",),
        "",
        ORDERS,
        by_restart(),
        statements=("select count(note) from orders where id between 1 and 30000",),
        times=4,
    ),
    Case(
        "a doubled table",
        "snapshots",
        ("growth",),
        "",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders"),
        about="orders",
        statements=(SCAN,),
        times=8,
    ),
    Case(
        "a storm of checkpoints",
        "snapshots",
        ("checkpoint",),
        "",
        ORDERS,
        by_checkpoints(0.01),
        statements=tuple(f"update orders set amount = amount + 1 where id % 6000 = {n}" for n in range(10)),
        times=4,
    ),
    Case(
        "a table that grew by two thirds",
        "snapshots",
        ("growth",),
        "",
        ORDERS,
        by_sql("insert into orders select id + 60000, cust, amount, note from orders where id <= 40000"),
        about="orders",
        statements=("select count(distinct cust) from orders where amount % 7 = 3",),
        times=8,
    ),
    # What is planted is a setting of the database: it is named before the plans that it changes.
    Case("a plan flip", "snapshots", ("setting",), "", ORDERS, by_sql(*NO_INDEX), about="enable_", statements=(SUM,)),
)
