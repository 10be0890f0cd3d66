"""Study bind-variables: cost of literals instead of bind variables, and whether they prevent a server from scaling.

Rows are looked up by random keys with three kinds of statements: with the key in the text, with the key as a bind
variable in a text that is parsed each time, and with a prepared statement.

Limits: PostgreSQL has no shared pool that statement texts could flood, because each session parses for itself. The cost
of literals there is the parsing and planning of each execution.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbdyno.study.library.client_studies import client_plan, mariadb_plan
from dbdyno.study.library.data import BOTH_ENGINES
from dbdyno.study.plan.clients import OWN, clients, sessions_of, statement_modes
from dbdyno.study.plan.factors import Level, choose_levels
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script
from dbdyno.study.plan.study import Factor, Study, Variant

ROWS = 100_000
_LOOKUP = f"\\set id random(1, {ROWS})\nselect amount from dbdyno.bound where id = :id;\n"
MARIADB = {"statement_mode": "literals,binds,prepared", "sessions": "1,4", "client": OWN}
_ON_MARIADB = [
    "create table dbdyno.bound (id int primary key, amount int)",
    f"insert into dbdyno.bound select seq, seq % 1000 from seq_1_to_{ROWS}",  # noqa: S608
]
_FILL = "insert into dbdyno.bound select i, i % 1000 from generate_series(1, {rows}) i"


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    ways = statement_modes(options["statement_mode"])
    factors = {
        "client": clients(options["client"]),
        "sessions": sessions_of(options["sessions"]),
        "statement_mode": ways,
    }
    (asked,) = choose_levels({name: Level(name) for name in ("off", "on")}, options["plan_time"], "plan_time")[:1]
    timed = asked.name == "on"
    return client_plan(
        STUDY.heading,
        factors,
        Script("look up by key", _LOOKUP),
        ("bound", ["create table dbdyno.bound (id int primary key, amount int)", _FILL.format(rows=ROWS)]),
        Schedule(
            blocks=6 if quick else 16,
            warmup_blocks=1,
            turn_ns=1_000_000_000,
            slice_ns=50_000_000,
            # The server's counters are read between the turns of the arms.
            switch="turns" if timed else "auto",
        ),
        # The cost of each way is the question, so different work is accepted. The median describes lookups that kept
        # the processor, so other work on the machine changes it half as much as the mean or the throughput.
        Judge(headline="p50", accept=["work"], factor="statement_mode" if len(ways) > 1 else None),
        plans_counted=timed,
        caches_recorded=True,
    )


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    return mariadb_plan(_plan({**options, "plan_time": "off"}, quick), ("bound", _ON_MARIADB), target)


STUDY = Study(
    name="bind-variables",
    question="What do literals cost compared with bind variables, with one session and with several?",
    workload="Lookups in 100,000 rows by random keys: sent with literals, with bind variables, and prepared.",
    targets=BOTH_ENGINES,
    source="Guy Harrison: bind variables by JDBC on Oracle (E1)",
    found_there="Bind variables cut the run time; literals flood the shared pool and do not scale with sessions. On "
    "PostgreSQL 15 inserts with literals cost the server 75 % more CPU per row (33 instead of 19 us) and ran at 75 "
    "% of "
    "the rate.",
    factors=(
        Factor("statement_mode", "methods of sending statements", "literals,binds,prepared"),
        Factor("sessions", "concurrent sessions", "1,4"),
        Factor("client", "dbdyno for its built-in client, or external clients", "dbdyno"),
        Factor(
            "plan_time",
            "on: the server counts plans, their time and their reuse (embedded, with pg_stat_statements)",
            "off",
        ),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
