"""Study drivers: time that a driver adds to a query of many rows.

The same query is run by each installed client: row by row (psycopg, asyncpg, JDBC, node-postgres), and into a data
frame (pandas, ConnectorX, ADBC, polars, R). The base is dbdyno's own client, which only counts rows: the minimum that
the server and the network need.

Limits: one session; everything is on one host, so a client may use CPU that the server needs.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.library.client_studies import client_plan, mariadb_plan
from dbdyno.study.library.data import BOTH_ENGINES
from dbdyno.study.plan.clients import INSTALLED, clients, left_out_sentence, variables_of
from dbdyno.study.plan.factors import numbers
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script
from dbdyno.study.plan.study import Factor, Study, Variant

_TABLE = """create table dbdyno.driven as
select i as id, i % 97 as part, i * 0.25::float8 as amount, left(md5(i::text), 16) as word
from generate_series(1, {rows}) i"""


_ON_MARIADB = """create table dbdyno.driven as
select cast(seq as int) as id, cast(seq % 97 as int) as part, cast(seq * 0.25 as double) as amount,
left(md5(seq), 16) as word from seq_1_to_{rows}"""
_INDEX = "create index driven_id on dbdyno.driven (id)"


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(options, quick, "postgres")


def _make_plan(options: Mapping[str, str], quick: bool, engine: str) -> Plan:
    compared = clients(options["client"], engine)
    factors = {"rows": variables_of("rows", options["rows"]), "client": compared}
    gone = left_out_sentence(engine) if options["client"] == INSTALLED else ""
    return client_plan(
        {**STUDY.heading, "question": STUDY.question + gone},
        factors,
        Script("read rows", "select id, part, amount, word from dbdyno.driven where id <= :rows;\n"),
        ("driven", [_TABLE.format(rows=_most_rows(options)), _INDEX]),
        Schedule(blocks=6, warmup_blocks=1, turn_ns=500_000_000 if quick else 1_000_000_000),
        # More rows are more work, so the clients are compared at each number of rows.
        Judge(headline="mean", accept=["work"], factor="client" if len(compared) > 1 else None),
    )


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    made = [_ON_MARIADB.format(rows=_most_rows(options)), _INDEX]
    return mariadb_plan(_make_plan(options, quick, "mariadb"), ("driven", made), target)


def _most_rows(options: Mapping[str, str]) -> int:
    return max(numbers(options["rows"], "rows"))


STUDY = Study(
    name="drivers",
    question="What does a driver add to the time of a query?",
    workload="One session reads rows of four columns (two integers, a double, 16 letters) with each client.",
    targets=f"{BOTH_ENGINES} (dbdyno, jdbc)",
    source="Guy Harrison: RJDBC against ROracle, rows into a data frame (E4)",
    found_there="RJDBC was far behind ROracle and fell back further as the rows grew; building the data frame took "
    "the time, not the fetch size.",
    factors=(
        Factor("client", "clients, separated by commas; dbdyno is the built-in client", INSTALLED),
        Factor("rows", "rows of the query; with several values, clients are compared at each", "10000"),
    ),
    make=_plan,
    variants={"mariadb": Variant({"client": INSTALLED, "rows": "10000"}, _on_mariadb)},
)
