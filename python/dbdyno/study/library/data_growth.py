"""Study data-growth: whether the cost of the same load stays the same as the data grow.

One user runs each of six transactions of an order system on 1, 10 and 40 times the rows. If the load stays the same, a
benchmark should not slow down because its tables grew; a transaction that does slow down touches more blocks at each
execution. Each transaction therefore has a separate curve, with the number of blocks that it touched, counted by
pg_stat_statements.

Customers and products do not grow with the orders, as in the source: a customer of the large database has forty times
the orders of a customer of the small one.

Limits: the data fit into shared_buffers unless they are larger than it; there is only one session, so there is no
waiting for other sessions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbdyno.base.errors import TargetError
from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, curve_levels, numbers, one_number
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study

CUSTOMERS, PRODUCTS = 1_000, 500
TRANSACTIONS = {
    "order by number": "select state, amount from {t} where id = :id;",
    "new order": "insert into {t} (customer, product, state, amount) values (:customer, :product, 1, 5);",
    "last orders": "select id, amount from {t} order by id desc limit 10;",
    "orders of a customer": "select count(*), sum(amount) from {t} where customer = :customer;",
    "sales of a product": "select sum(amount) from {t} where product = :product;",
    "open orders": "select count(*) from {t} where state = 0;",
}
"""Script of each transaction; the work of the first three is the same at any size, that of the others grows."""
_DRAW = f"\\set customer random(1, {CUSTOMERS})\n\\set product random(1, {PRODUCTS})\n\\set id random(1, :orders)\n"


def _table(orders: int) -> str:
    return f"dbdyno_orders_{orders}"


def _make_tables(orders: int) -> list[str]:
    table = _table(orders)
    return [
        f"create table {table} (id bigint generated always as identity primary key, customer int, product int,"
        " state int, amount int, note text default repeat('n', 60))",
        f"insert into {table} (customer, product, state, amount) select 1 + (i * 7919) % {CUSTOMERS},"  # noqa: S608
        f" 1 + (i * 104729) % {PRODUCTS}, (i % 100 > 0)::int, i % 90 from generate_series(1, {orders}::bigint) i",
        f"create index on {table} (customer)",
        f"create index on {table} (product)",
        f"vacuum freeze analyze {table}",
    ]


def _with_script(arm: Arm, base: int) -> Arm:
    """Return the arm with the script of its transaction, which runs on the table of the arm's size."""
    name, orders = arm.levels["transaction"], base * int(arm.levels["times"])
    text = TRANSACTIONS[name].format(t=_table(orders))
    return replace(arm, scripts=[Script(name, f"{_DRAW}{text}\n")], variables={"orders": str(orders)})


def _can_count() -> bool:
    """Return True if an embedded engine comes with pg_stat_statements."""
    from dbdyno.bench.postgres.statements import preload_setting

    try:
        preload_setting()
    except TargetError:
        return False
    return True


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    base = one_number(options["orders"], "orders")
    times = numbers(options["times"], "times")
    names = choose_levels({name: Level(name) for name in TRANSACTIONS}, options["transaction"], "transaction")
    arms = combine_levels(
        curve_levels("transaction", names), curve_levels("times", [Level(str(n)) for n in times]), within=True
    )
    counted = options["count"] == "on" or (options["count"] == "auto" and _can_count())
    return Plan(
        **STUDY.heading,
        kind="sweep",
        factors=["transaction", "times"],
        arms=[_with_script(arm, base) for arm in arms],
        workload=Workload(
            setup=[sql for n in times for sql in _make_tables(base * n)],
            teardown=[f"drop table {_table(base * n)}" for n in times],
        ),
        schedule=Schedule(
            blocks=4 if quick else 8,
            warmup_blocks=1,
            # The slowest transaction has its twenty operations for a median even if others use the machine.
            turn_ns=150_000_000 if quick else 600_000_000,
            settle_ns=20_000_000,
            switch="turns",
        ),
        watch=Watch(overhead_blocks=0, statements=counted),
        judge=Judge(headline="p50", threshold=0.1),
        embedded_settings={
            "shared_buffers": options["shared_buffers"],
            "max_parallel_workers_per_gather": "0",
            "jit": "off",
            "autovacuum": "off",
        },
    )


STUDY = Study(
    name="data-growth",
    question="Does the same load take the same time as the data grow?",
    workload="One user runs each of six transactions of an order system on 1, 10 and 40 times the orders. Each has a "
    "curve; the blocks that it touched are counted where pg_stat_statements is there.",
    targets="PostgreSQL: embedded, or one named by --target",
    source="Glenn Fawcett: response times of one Swingbench user on 25,000 and 1,000,000 orders (E23)",
    found_there="Three of the transactions bloat: they do more work each time as the data grow, so the benchmark does "
    "not compare sizes at equal load.",
    factors=(
        Factor("times", "multiples of the smallest number of orders", "1,10,40", quick="1,10"),
        Factor("orders", "number of orders in the smallest data set", "5000", full="25000", quick="2000"),
        Factor("transaction", ", ".join(TRANSACTIONS), ",".join(TRANSACTIONS)),
        Factor("count", "count blocks with pg_stat_statements: on, off; auto: if an embedded engine has it", "auto"),
        Factor("shared_buffers", "the cache of an embedded engine", "256MB"),
    ),
    make=_plan,
)
