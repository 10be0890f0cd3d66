"""Report sections on what sessions did: average active sessions by class and event, and deadlocks.

The values are sampled: the mean number of sessions that a look found in a state. PostgreSQL does not add up wait times,
so nothing is known without samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.sections import Part, Row, columns, missing_measurement, section, table
from dbdyno.evidence.events import ON_CPU, wait_class
from dbdyno.snapshot.engines.postgres.sampler import ACTIVITY
from dbdyno.snapshot.sessions.history import WITHOUT
from dbdyno.snapshot.sessions.samples import WHOLE
from dbdyno.snapshot.sessions.summed_samples import SummedSamples

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval

NEXT_STEP = "dbdyno snap watch --target DSN --every 60s"
_CLASSES = columns("class:text aas:aas share:ratio seen:number")
_EVENTS = columns("event:text type:text class:text aas:aas share:ratio seen:number")
_BY_SQL = columns("text:text:statement event:text aas:aas share:ratio statement:code:identifier")
_BACKGROUND = columns("process:text event:text aas:aas seen:number")
_ACTIVE = "state in ('active', 'fastpath function call')"


def activity(interval: Interval) -> int:
    """Create the tables `active` (counts of sessions by what they did, in millionths) and `classes`; return the looks.

    A day has millions of rows, so they are added up while they are read.
    """
    source, looks = SummedSamples(interval, ACTIVITY).states(), interval.looks
    connection = interval.connection
    connection.execute(
        f"""create or replace temp table active as select kind, statement,
          kind = 'client backend' or kind = 'parallel worker' as is_client, {_ACTIVE} as is_active,
          coalesce(event_type, '{ON_CPU}') as type, coalesce(event, '{ON_CPU}') as name, sum(seen) as n
        from {source} group by all"""
    )
    seen = connection.execute("select distinct type, name, is_client from active").fetchall()
    connection.execute(
        "create or replace temp table classes (type varchar, name varchar, is_client boolean, class varchar)"
    )
    if seen:
        connection.executemany(
            "insert into classes values (?, ?, ?, ?)",
            [(t, n, c, wait_class("postgresql", t, n, background=not c)) for t, n, c in seen],
        )
    return looks


def waits(interval: Interval, top: int) -> Part:
    """Return the section on average active sessions by class, by event and by statement."""
    title = "Waits by class and event"
    looks = activity(interval)
    if not looks:
        why = "the sessions were not sampled in this interval"
        return section("waits", title, not_measured=[missing_measurement("waits", why, NEXT_STEP)])

    whole = looks * WHOLE

    def counted(by: str, where: str = "is_client and is_active") -> list[Row]:
        return interval.query(
            f"""select {by}, sum(n) / {whole} as aas, sum(n) / {WHOLE} as seen, sum(n) / sum(sum(n)) over () as share
            from active join classes using (type, name, is_client) where {where}
            group by all order by seen desc, 1, 2"""
        )

    texts = "(select null::bigint as queryid, null::varchar as query where false)"
    if "statement_texts" in interval.after.views:
        texts = interval.ends("statement_texts")[1]
    by_sql = interval.query(
        f"""select coalesce(statement::varchar, 'none') as statement, name as event,
          case when statement is null then '{WITHOUT}' else any_value(query) end as text,
          sum(n) / {whole} as aas, sum(n) / sum(sum(n)) over () as share
        from active left join {texts} t on t.queryid = statement
        where is_client and is_active group by statement, 2 order by aas desc, 1, 2"""
    )
    sql = f"select coalesce(sum(n), 0) / {whole} as aas from active where is_client and is_active is not true"
    idle = interval.query(sql)[0]["aas"]
    notes = [f"{looks} samples, one every {interval.seconds / looks:.2g} s"]
    if idle:
        notes.append(f"{idle:.2f} sessions were idle in a transaction, on average")
    return section(
        "waits",
        title,
        [
            table("By class", _CLASSES, counted("class")),
            table("By event", _EVENTS, counted("name as event, type, class"), top=top),
            table("By statement", _BY_SQL, by_sql, top=top),
            table(
                "Background processes", _BACKGROUND, counted("kind as process, name as event", "not is_client"), top=top
            ),
        ],
        about="aas: average active sessions, as sampled; CPU: active and not waiting",
        notes=notes,
    )


def locks(interval: Interval, top: int) -> Part:
    """Return the section on deadlocks and conflicts."""
    found: list[Row] = []
    if interval.has("pg_stat_database"):
        found = interval.query(
            "select datname as database, deadlocks, conflicts from pg_stat_database"
            " where deadlocks + conflicts > 0 order by deadlocks desc",
            "pg_stat_database",
        )
    return section(
        "locks",
        "Deadlocks and conflicts",
        [table("", columns("database:text deadlocks conflicts"), found)],
        notes=[] if found else ["no deadlock, no conflict"],
    )
