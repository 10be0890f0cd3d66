"""Where the sessions were: average active sessions by class and event, and who blocked whom.

Sampled: the mean number of sessions that a look found in a state. PostgreSQL adds up no waiting
time, so that without samples nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.evidence.events import ON_CPU, wait_class
from dbdyno.snapshot.model import Row, columns, lacking, section, table
from dbdyno.snapshot.postgres.sampler import ACTIVITY, BLOCKED

if TYPE_CHECKING:
    from dbdyno.snapshot.interval import Interval

NEXT = "dbdyno snap watch --target DSN --every 60s"
_CLASSES = columns("class:text aas:aas share:ratio seen")
_EVENTS = columns("event:text type:text class:text aas:aas share:ratio seen")
_BY_SQL = columns("statement:text event:text aas:aas share:ratio text:text")
_BACKGROUND = columns("process:text event:text aas:aas seen")
_ACTIVE = "state in ('active', 'fastpath function call')"


def activity(interval: Interval) -> int:
    """Makes the table `active` (one row per session and look, with its class); returns the number
    of looks."""
    source, looks = interval.samples("activity", ACTIVITY)
    connection = interval.connection
    connection.execute(
        f"""create or replace temp table active as select *, kind = 'client backend'
          or kind = 'parallel worker' as client, coalesce(event_type, '{ON_CPU}') as type,
          coalesce(event, '{ON_CPU}') as name from {source}
        where {interval.inside}"""
    )
    seen = connection.execute("select distinct type, name, client from active").fetchall()
    connection.execute(
        "create or replace temp table classes (type varchar, name varchar, client boolean, class varchar)"
    )
    if seen:
        connection.executemany(
            "insert into classes values (?, ?, ?, ?)",
            [(t, n, c, wait_class("postgresql", t, n, background=not c)) for t, n, c in seen],
        )
    return looks


def waits(interval: Interval, top: int) -> dict[str, Any]:
    """Average active sessions by class, by event, by statement."""
    title = "Waits by class and event"
    looks = activity(interval)
    if not looks:
        why = "the sessions were not sampled in this interval"
        return section("waits", title, not_measured=[lacking("waits", why, NEXT)])

    def counted(by: str, where: str = f"client and {_ACTIVE}", more: str = "") -> list[Row]:
        return interval.query(
            f"""select {by}, count(*) / {looks} as aas, count(*) as seen,
              count(*) / sum(count(*)) over () as share {more}
            from active join classes using (type, name, client) where {where}
            group by all order by seen desc"""
        )

    texts = "(select null::bigint as queryid, null::varchar as query where false)"
    if "statement_texts" in interval.after.views:
        texts = interval.ends("statement_texts")[1]
    by_sql = interval.query(
        f"""select coalesce(statement::varchar, 'none') as statement, name as event,
          any_value(query) as text, count(*) / {looks} as aas,
          count(*) / sum(count(*)) over () as share
        from active left join {texts} t on t.queryid = statement
        where client and {_ACTIVE} group by 1, 2 order by aas desc"""
    )
    idle = interval.query(f"select count(*) / {looks} as aas from active where client and not ({_ACTIVE})")[0]["aas"]
    notes = [f"{looks} looks, one every {interval.seconds / looks:.2g} s"]
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
                "Background processes", _BACKGROUND, counted("kind as process, name as event", "not client"), top=top
            ),
        ],
        about="aas: average active sessions, as sampled; CPU: active and not waiting",
        notes=notes,
    )


_WHO = columns(
    "waiter:text waiting_statement:text:statement blocker:text blocker_state:text:state"
    " blocking_statement:text:its_last_statement lock:text object:text waited:ns seen"
)


def locks(interval: Interval, top: int) -> dict[str, Any]:
    """Deadlocks, conflicts, and who blocked whom."""
    source, looks = interval.samples("blocked", BLOCKED)
    lacks = []
    rows: list[Row] = []
    if looks:
        names = "(select null::bigint as datid, null::bigint as relid, '' as schemaname,"
        names += " '' as relname where false)"
        if interval.has("pg_stat_user_tables"):
            names = interval.ends("pg_stat_user_tables")[1]
        period = min(interval.seconds / looks, 60.0)
        period = max(period, 1.0)
        rows = interval.query(
            f"""select usename as waiter, statement::varchar as waiting_statement,
              blocker_usename || ' (' || blocker || ')' as blocker, blocker_state,
              blocker_statement::varchar as blocking_statement, locktype || ' ' || mode as lock,
              coalesce(n.relname, relation::varchar) as object, count(*) * {period} * 1e9 as waited,
              count(*) as seen
            from {source} b left join {names} n on n.datid = b.datid and n.relid = b.relation
            where {interval.inside}
            group by all order by seen desc"""
        )
    else:
        why = "the sessions were not sampled in this interval"
        lacks.append(lacking("who blocked whom", why, NEXT))
    found: list[Row] = []
    if interval.has("pg_stat_database"):
        found = interval.query(
            "select datname as database, deadlocks, conflicts from pg_stat_database"
            " where deadlocks + conflicts > 0 order by deadlocks desc",
            "pg_stat_database",
        )
    calm = (
        []
        if rows or found
        else ["no deadlock, no conflict"] + (["no look found a session that waited for a lock"] if looks else [])
    )
    return section(
        "locks",
        "Locks, and who blocked whom",
        [
            table("", columns("database:text deadlocks conflicts"), found),
            table("Who blocked whom", _WHO, rows, top=top),
        ],
        about="waited: looks that found the wait, times their distance" if rows else "",
        not_measured=lacks,
        notes=calm,
    )
