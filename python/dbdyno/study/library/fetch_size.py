"""Study fetch-size: benefit of fetching many rows from the server at a time.

All rows of a query (some thousands) are fetched, with different fetch sizes. Each fetch is a round trip, so the time
grows with their number; the time of a round trip depends on the network and on the driver.

Limits: server and client are on one host unless --target names another, so without a delay a round trip is as short as
it can be.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.library.client_studies import client_plan
from dbdyno.study.plan.clients import NO_LINE, clients, delays, fetch_sizes, refuse_own_client
from dbdyno.study.plan.factors import numbers
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script
from dbdyno.study.plan.study import Factor, Study

_TABLE = """create table dbdyno.fetched as
select i as id, i * 0.25::float8 as amount, md5(i::text) as word from generate_series(1, {rows}) i"""


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    rows = numbers(options["rows"], "rows")
    if len(rows) > 1:
        raise PlanError(
            "expected only one number of rows for the table",
            where="--set rows",
            next_step="run the study once for each number of rows",
        )
    factors = {
        "client": refuse_own_client(clients(options["client"])),
        "delay": delays(options["delay"]),
        "fetch_size": fetch_sizes(options["fetch_size"]),
    }
    return client_plan(
        STUDY.heading,
        factors,
        Script("read all rows", "select id, amount, word from dbdyno.fetched;\n"),
        ("fetched", [_TABLE.format(rows=rows[0])]),
        Schedule(blocks=6 if quick else 8, warmup_blocks=1, turn_ns=1_000_000_000, slice_ns=50_000_000),
        # A cursor is a separate transaction: begin, declare, fetches, close, commit.
        Judge(headline="mean", accept=["work"]),
    )


STUDY = Study(
    name="fetch-size",
    question="How does the time of a query depend on the number of rows fetched at a time?",
    workload="One session reads a table of 1,000 rows of 45 bytes to its end, through a cursor that fetches the given "
    "number of rows at a time.",
    targets="postgres: embedded by default, or --target postgresql://...",
    source="Guy Harrison: array fetch from Java and Scala by JDBC on Oracle (E2)",
    found_there="The default of 10 rows was over six times slower than 100 to 200 on a slow line. Returns diminish "
    "and never turn negative. PostgreSQL's drivers take all rows at once by default, so there a fetch size saves "
    "memory and costs time.",
    factors=(
        Factor("fetch_size", "rows at a time", "1,10,100,1000", quick="1,10,100"),
        Factor("client", "external clients (`dbdyno client list`)", "psycopg"),
        Factor("delay", "delay between client and server, each way, such as 0ms,1ms; none omits the line", NO_LINE),
        Factor("rows", "rows of the table", "1000", quick="100"),
    ),
    make=_plan,
)
