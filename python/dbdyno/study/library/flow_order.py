"""Study flow-order: whether the user or the optimizer orders the steps of a data flow better.

The same question over customers, orders and lines is written in two orders: filters first and small tables first
(good), or the largest join first and the filters last (bad). Each engine runs both, with its optimizer and without. The
four arms of an engine give four comparisons:

    what a bad order costs         written badly against written well, nothing moved by the engine
    what the optimizer gives back  written badly, with the optimizer against without
    what is left                   written badly against written well, with the optimizer
    what the optimizer does        written well, with the optimizer against without: it may do harm, too

Engines are not compared with each other, because they store their tables in different forms. All arms must return the
same rows before any time is measured. PostgreSQL has no switch for its optimizer: with join_collapse_limit = 1 it keeps
the order of joins but still moves conditions down, so its bad order is only half as bad as that of the others.

Limits: one thread per engine; generated whole numbers without skew; Pig in local mode, where most of its time is the
start of its jobs, which is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbdyno.base.errors import PlanError
from dbdyno.bench.flows.engines import ENGINES
from dbdyno.bench.flows.tables import LEAST, LINES_AN_ORDER, MOST, ORDERS_A_CUSTOMER
from dbdyno.study.plan.factors import numbers, option_values
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Script, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant

TARGET = "flows:"
INSTALLED = "installed"
GOOD, BAD = "good", "bad"

SQL = {
    GOOD: """select c.segment, count(*) as n, sum(l.cents) as total
from (select id, segment from customers where region = 3) c
join (select id, customer from orders where priority = 1) o on o.customer = c.id
join lines l on l.order_id = o.id
group by c.segment order by total desc, c.segment""",
    BAD: """select c.segment, count(*) as n, sum(l.cents) as total
from lines l
join orders o on l.order_id = o.id
join customers c on o.customer = c.id
where c.region = 3 and o.priority = 1
group by c.segment order by total desc, c.segment""",
}
_LOADED = """customers = load '$data/customers.csv' using PigStorage(',') as (id:long, region:long, segment:long);
orders = load '$data/orders.csv' using PigStorage(',') as (id:long, customer:long, priority:long);
lines = load '$data/lines.csv' using PigStorage(',') as (id:long, order_id:long, cents:long);
"""
_STORED = """grouped = group {joined} by {segment};
summed = foreach grouped generate group as segment, COUNT({joined}) as n, SUM({joined}.{cents}) as total;
sorted = order summed by total desc, segment;
store sorted into '$out';
"""
PIG = {
    GOOD: _LOADED
    + """theirs = filter customers by region == 3;
urgent = filter orders by priority == 1;
few = join urgent by customer, theirs by id;
joined = join lines by order_id, few by urgent::id;
"""
    + _STORED.format(joined="joined", segment="few::theirs::segment", cents="lines::cents"),
    BAD: _LOADED
    + """many = join lines by order_id, orders by id;
all_joined = join many by orders::customer, customers by id;
joined = filter all_joined by customers::region == 3 and many::orders::priority == 1;
"""
    + _STORED.format(joined="joined", segment="customers::segment", cents="many::lines::cents"),
}
TEXTS = {"pig": PIG, "sql": SQL}
FACTORS = {"engines": INSTALLED, "lines": "200000"}


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _on_flows(options, quick, TARGET)


def _on_flows(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    engines, left_out = _engines(options["engines"])
    sizes = [int(size) for size in numbers(options["lines"], "lines")]
    if any(not LEAST <= size <= MOST for size in sizes):
        raise PlanError(
            f"lines must be between {LEAST} and {MOST:,}", where="--set lines", next_step="write a number such as 40000"
        )
    return Plan(
        title="flow-order",
        question=STUDY.question + left_out,
        study="flow-order",
        dsn=target,
        arms=[arm for size in sizes for name in engines for arm in _arms(name, size, len(sizes) > 1)],
        workload=Workload(kind="flow"),
        schedule=Schedule(blocks=4 if quick else 8, warmup_blocks=1, turn_ns=500_000_000, settle_ns=0),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean", threshold=0.05),
    )


def _arms(engine: str, lines: int, sized: bool) -> list[Arm]:
    """Return one arm for each order and optimizer setting.

    Their base is the good order on the same engine, without the optimizer. For the bad order with the optimizer, the
    base is the bad order without it.
    """
    text = TEXTS[ENGINES[engine].language]
    more = f", {lines:,} lines" if sized else ""

    def name(order: str, optimizer: str) -> str:
        return f"{engine}: {order} order, {'as written' if optimizer == 'off' else 'optimized'}{more}"

    arms = []
    for order, optimizer, base in (
        (GOOD, "off", (GOOD, "off")),
        (BAD, "off", (GOOD, "off")),
        (GOOD, "on", (GOOD, "off")),
        (BAD, "on", (BAD, "off")),
    ):
        arms.append(
            Arm(
                name(order, optimizer),
                scripts=[Script(f"{engine} {order}", text[order])],
                parameters={"engine": engine, "optimizer": optimizer, "lines": lines},
                against=name(*base),
                levels={"engine": engine, "order": order, "optimizer": optimizer, "lines": str(lines)},
            )
        )
    return arms


def _engines(text: str) -> tuple[Sequence[str], str]:
    """Return the requested engines, or all available ones, and a note on those that are not available."""
    if text != INSTALLED:
        asked = option_values(text, "engines")
        for name in asked:
            if name not in ENGINES:
                raise PlanError(
                    f"{name!r} is not an engine of this study",
                    where="--set engines",
                    next_step=f"name one or several of {', '.join(ENGINES)}",
                )
        return asked, ""
    gone = {one.title: said for one in ENGINES.values() if (said := one.missing()) is not None}
    told = "; ".join(f"{title} is left out: {said}" for title, said in gone.items())
    return [name for name, one in ENGINES.items() if one.title not in gone], f" ({told})" if told else ""


STUDY = Study(
    name="flow-order",
    question="Who orders the steps of a data flow: what does the written order cost, and how much of that does the "
    "optimizer save?",
    workload="Customers of one region, their orders of one priority, the lines of these: grouped, summed and sorted. "
    f"{LINES_AN_ORDER} lines per order, {ORDERS_A_CUSTOMER} orders per customer; written with filters and small tables "
    "first, and with the largest join first and filters last; run by each engine with its optimizer and without.",
    targets="this host; PostgreSQL and DuckDB are there, Spark and Pig where they are set up (make setup-wide)",
    source="the claim that in Pig the user fixes the order of the steps, and in HQL an optimizer does (T11)",
    found_there="The source claims it and shows no figures.",
    factors=(
        Factor("engines", f"{INSTALLED}: all that are; or some of {','.join(ENGINES)}", INSTALLED),
        Factor("lines", "rows of the largest table; each of several values is an arm", "200000", full="200000,2000000"),
    ),
    make=_plan,
    target=TARGET,
    variants={"flows": Variant(FACTORS, _on_flows)},
)
