"""Active sessions of MariaDB, sampled: without costly instruments it adds up no waiting time.

Each look is one row: the server itself puts the sessions into CSV. Seen are clients that work on a
statement or hold a transaction open. What a session waits for is what the server says of it: a row
lock of InnoDB, else the running wait event (consumer `events_waits_current`), else the state of the
process list, which does not tell CPU from file access. Where the consumer `events_statements_current` is
on, the last statement of a session idle in a transaction is known; that of a running one is not, for the
server tells a digest when the statement has ended. Texts, which hold literals, are never read.

Limits: a wait shorter than the period is seen by luck only; averages over many looks are right.
Without PROCESS only our own user's sessions are visible.
"""

from __future__ import annotations

from typing import Any

from dbdyno.bench.poll import Poller
from dbdyno.errors import Error
from dbdyno.snapshot.mariadb.connection import Address, connect, driver
from dbdyno.snapshot.sampled import Seen, activity, blocked
from dbdyno.snapshot.view import Column, Options, View

STATEMENT_TIMEOUT_MS = 2000
_IDLE = "('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker')"

ACTIVITY = activity("VARCHAR")

BLOCKED = blocked("VARCHAR", Column("relation", "text", "text", "VARCHAR"))
"""One row per waiter and blocker."""

_NOW = "cast(unix_timestamp(sysdate(6)) * 1000000 as signed)"


def _quoted(name: str) -> str:
    return f"""coalesce(concat('"', replace({name}, '"', '""'), '"'), '')"""


def _age(started: str) -> str:
    return f"coalesce(timestampdiff(microsecond, {started}, sysdate(6)), '')"


def _client(of: str) -> str:
    """The client's address without its port; MariaDB says `localhost` for a socket."""
    return _quoted(f"substring_index({of}.host, ':', 1)")


def _csv(*fields: str) -> str:
    return f"group_concat(concat_ws(',', {', '.join(fields)}) separator '\\n')"


def _looking(*, digests: bool, waits: bool) -> str:
    wait = "w.event_name" if waits else "null"
    fields = _csv(
        _NOW,
        "p.id",
        "'client'",
        _quoted("p.db"),
        _quoted("p.user"),
        "''",
        _quoted("s.digest" if digests else "null"),
        "if(p.command = 'Sleep', 'idle in transaction', 'active')",
        f"case when p.command = 'Sleep' then 'idle' when x.trx_state = 'LOCK WAIT' then 'lock'"
        f" when {wait} is not null then 'wait' else 'state' end",
        _quoted(
            "case when p.command = 'Sleep' then 'idle in transaction'"
            " when x.trx_state = 'LOCK WAIT' then 'innodb row lock'"
            f" else coalesce({wait}, nullif(p.state, ''), p.command) end"
        ),
        _age("x.trx_started"),
        _client("p"),
        "if(p.command = 'Sleep', '', coalesce(round(p.time_ms * 1000), ''))",
        "coalesce(round(p.time_ms * 1000), '')",
    )
    joins = ""
    if digests or waits:
        joins += " left join performance_schema.threads t on t.processlist_id = p.id"
    if digests:
        joins += (
            " left join performance_schema.events_statements_current s"
            " on s.thread_id = t.thread_id and s.end_event_id is null"
            " and s.nesting_event_id is null"
        )
    if waits:
        joins += (
            " left join performance_schema.events_waits_current w"
            " on w.thread_id = t.thread_id and w.end_event_id is null"
            " and w.event_name <> 'wait/io/table/sql/handler'"
        )
    return (
        f"select {fields}, sum(x.trx_state = 'LOCK WAIT') from information_schema.processlist p"
        " left join information_schema.innodb_trx x on x.trx_mysql_thread_id = p.id"
        + joins
        + f" where p.id <> connection_id() and (p.command not in {_IDLE}"
        "  or p.command = 'Sleep' and x.trx_id is not null)"
    )


_LAST = (
    " left join performance_schema.threads {0}t on {0}t.processlist_id = {0}p.id"
    " left join performance_schema.events_statements_current {0}s"
    " on {0}s.thread_id = {0}t.thread_id and {0}s.nesting_event_id is null"
)
"""The statement of a session, the last one where it works on none: it holds the lock."""


def _blocking(*, digests: bool) -> str:
    rows = _csv(
        _NOW,
        "r.trx_mysql_thread_id",
        "b.trx_mysql_thread_id",
        _quoted("l.lock_type"),
        _quoted("l.lock_mode"),
        _quoted("replace(l.lock_table, '`', '')"),
        _quoted("rp.user"),
        "if(bp.command = 'Sleep', 'idle in transaction', 'active')",
        _quoted("bp.user"),
        _age("b.trx_started"),
        _quoted("rs.digest" if digests else "null"),
        _quoted("bs.digest" if digests else "null"),
        "''",
        _client("rp"),
        "''",
        _client("bp"),
        "coalesce(round(bp.time_ms * 1000), '')",
    )
    return (
        f"select {rows} from information_schema.innodb_lock_waits w"
        " join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id"
        " join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id"
        " join information_schema.innodb_locks l on l.lock_id = w.requested_lock_id"
        " left join information_schema.processlist rp on rp.id = r.trx_mysql_thread_id"
        " left join information_schema.processlist bp on bp.id = b.trx_mysql_thread_id"
        + (_LAST.format("r") + _LAST.format("b") if digests else "")
    )


class Sampler(Poller):
    """Looks once per period; `take` gives what was seen since the last `take`."""

    name = "dbdyno snap sampler"

    def __init__(self, address: Address, *, period_ns: int) -> None:
        super().__init__(period_ns=period_ns)
        self.failures = (Error, driver().Error, OSError)
        self._address = address
        self._sql = self._who = ""
        self._seen = Seen(ACTIVITY, BLOCKED)

    def take(self) -> tuple[list[View], int]:
        """The views `activity` and `blocked`, and the number of looks, since the last call."""
        return self._seen.take(self.samples)

    def _connect(self) -> Any:
        connection = connect(self._address, Options(statement_timeout_ms=STATEMENT_TIMEOUT_MS))
        with connection.cursor() as cursor:
            cursor.execute("set session group_concat_max_len = 16777216")
            cursor.execute("select name from performance_schema.setup_consumers where enabled = 'YES'")
            on = {name for (name,) in cursor.fetchall()}
        digests = "events_statements_current" in on
        self._sql = _looking(digests=digests, waits="events_waits_current" in on)
        self._who = _blocking(digests=digests)
        return connection

    def _look(self, conn: Any) -> None:
        with conn.cursor() as cursor:
            cursor.execute(self._sql)
            sessions, waiters = cursor.fetchone() or (None, None)
            blocked = None
            if waiters and self._seen.asks_who_blocks():
                cursor.execute(self._who)
                (blocked,) = cursor.fetchone()
        self._seen.add(sessions, blocked)
