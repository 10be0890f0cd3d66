"""Rules on connections: their number compared with the limit, and connections used for only a few transactions."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.dialect import BOTH, is_mariadb, place, source
from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import count, setting_number, share
from dbdyno.advise.kinds import Database, Load, Setting
from dbdyno.advise.rule import Advice, Evidence, Rule

NEAR = 0.8
LEAST_SESSIONS, LEAST_PER_S, LEAST_RATIO = 1000, 1.0, 0.2
_POOL = "-- a pooler between application and server, in transaction mode, with as many server sessions as are active"


def _find_near_limit(facts: Facts) -> Iterator[Advice]:
    load, limit = facts.row_of(Load), facts.setting("max_connections")
    if limit is None:
        return
    free = limit.number - (0 if is_mariadb(facts) else setting_number(facts, "superuser_reserved_connections", 3))
    if load.clients < NEAR * free:
        return
    where = f"{place(facts, 'sessions')}, one look"
    yield Advice(
        f"{load.clients} of {count(free)} connections are in use, {load.active} of them active",
        (
            Evidence("client sessions", load.clients, "count", where),
            Evidence("active", load.active, "count", where),
            Evidence("idle", load.idle, "count", where),
            Evidence("idle in transaction", load.idle_in_transaction, "count", where),
            Evidence("max_connections", limit.number, "count", place(facts, "settings")),
        ),
        "no time: at the limit logins fail; idle sessions cost little, but each may become active",
        (_POOL, "-- raising max_connections lets more sessions compete for the same processors"),
        subject="max_connections",
        source=source(facts, "Handling Too Many Connections"),
    )


def _rate(facts: Facts) -> Iterator[Advice]:
    for one in facts.rows_of(Database):
        if one.sessions is None or not one.span_s or one.sessions < LEAST_SESSIONS or not one.commits:
            continue
        per_s, ratio = one.sessions / one.span_s, one.sessions / one.commits
        if per_s >= LEAST_PER_S and ratio >= LEAST_RATIO:
            yield Advice(
                f"database {one.name} gets {count(per_s)} new connections a second, one for every"
                f" {count(1 / ratio)} transactions",
                (
                    Evidence("sessions", one.sessions, "count", f"pg_stat_database, {one.name}, sessions"),
                    Evidence("commits", one.commits, "count", f"pg_stat_database, {one.name}, xact_commit"),
                    Evidence("sessions a second", per_s, "per_s", "sessions / time since stats_reset"),
                    Evidence("share", ratio, "ratio", "sessions / commits"),
                ),
                f"no process start and login for {share(min(ratio, 1))} of the transactions: a "
                f"millisecond or more each, most of it on the server's processors",
                (_POOL,),
                subject=one.name,
            )


RULES = (
    Rule(
        name="connections_near_limit",
        family="sessions",
        title="Connections near their limit",
        reads=(Setting, Load),
        condition="80 % of the unreserved max_connections were in use at the moment of reading",
        expects="availability, and less competition between processes",
        risk="a pooler in transaction mode keeps no session state between transactions",
        source="PostgreSQL documentation, Connections and Authentication (2025)",
        refuted="the reading was at a peak that has passed",
        judge=_find_near_limit,
        engines=BOTH,
    ),
    Rule(
        name="connection_rate",
        family="sessions",
        title="Connections that serve only one or two transactions",
        reads=(Database,),
        condition="there were 1,000 new sessions or more, at least one a second and at least one for every five "
        "commits",
        expects="the time of process starts and logins",
        risk="a pooler in transaction mode keeps no session state between transactions",
        source="PostgreSQL documentation, pg_stat_database (2025)",
        refuted="the same load at the same rate is not faster through a pooler",
        judge=_rate,
        least=140000,
    ),
)
