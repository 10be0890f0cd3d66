"""Sampler of MariaDB's active sessions; without expensive instruments the server does not add up wait times.

Each look returns one row: the server itself formats the sessions as CSV. The sampler sees clients that run a statement
or have an open transaction. What a session waits for is what the server reports: a row lock of InnoDB, otherwise the
running wait event (consumer `events_waits_current`), otherwise the state in the process list, which does not
distinguish CPU from file access. The statement that a session runs is identified by its text (`running_statements`),
whose values are dropped before anything is stored. If the consumer `events_statements_current` is on, the last
statement of a session idle in a transaction is known.

Limits: a wait shorter than the period is only seen by chance; averages over many looks are right. Without PROCESS only
sessions of the same user are visible.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence
from typing import Any

from dbdyno.base.errors import Error
from dbdyno.bench.poll import Poller
from dbdyno.snapshot.engines.mariadb.connection import Address, connect, driver
from dbdyno.snapshot.engines.mariadb.running_statements import LONGEST, OWN_PREFIX, Statements
from dbdyno.snapshot.engines.mariadb.views import STATEMENTS
from dbdyno.snapshot.engines.view import Column, Options, View
from dbdyno.snapshot.sessions.samples import QUERIES, SampleBuffer, Source, activity_columns, blocked_columns

STATEMENT_TIMEOUT_MS = 2000
PERIOD_LEAST_NS = 250_000_000
"""Smallest period in nanoseconds.

InnoDB refreshes its transaction tables only if nobody has queried them for 0.1 s: a client that queries more often sees
no waits.
"""
_IDLE = "('Sleep', 'Daemon', 'Binlog Dump', 'Slave_IO', 'Slave_SQL', 'Slave_worker')"

ACTIVITY = activity_columns("VARCHAR")

BLOCKED = blocked_columns("VARCHAR", Column("relation", "text", "text", "VARCHAR"))
"""Columns of blocked sessions, with one row per waiter and blocker."""

_NOW = "cast(unix_timestamp(sysdate(6)) * 1000000 as signed)"


def _quoted(name: str) -> str:
    return f"""coalesce(concat('"', replace({name}, '"', '""'), '"'), '')"""


def _age(started: str) -> str:
    return f"coalesce(timestampdiff(microsecond, {started}, sysdate(6)), '')"


def _client(of: str) -> str:
    """Return SQL for the client's address without its port; MariaDB writes `localhost` for a socket."""
    return _quoted(f"substring_index({of}.host, ':', 1)")


def _csv(*fields: str) -> str:
    return f"group_concat(concat_ws(',', {', '.join(fields)}) separator '\\n')"


def _running(of: str) -> str:
    """Return SQL for the hexadecimal form of the text that a session runs, so that no character can end a CSV field."""
    return f"""if({of}.command = 'Sleep', '', coalesce(concat('"~', hex(left({of}.info, {LONGEST})), '"'), ''))"""


_TEXT = re.compile('(?<=,)"~([0-9A-F]*)"(?=,)')
_OURS = re.compile(rf'"({OWN_PREFIX}[0-9a-f]{{16}})"')


def _looking(*, waits: bool) -> str:
    wait = "w.event_name" if waits else "null"
    fields = _csv(
        _NOW,
        "p.id",
        "'client'",
        _quoted("p.db"),
        _quoted("p.user"),
        "''",
        _running("p"),
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
    if waits:
        joins = (
            " left join performance_schema.threads t on t.processlist_id = p.id"
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
    " left join performance_schema.threads bt on bt.processlist_id = bp.id"
    " left join performance_schema.events_statements_current bs"
    " on bs.thread_id = bt.thread_id and bs.nesting_event_id is null"
)
"""Joins for the last statement of a session that runs no statement but holds a lock for which others wait."""


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
        _running("rp"),
        f"if(bp.command = 'Sleep', {_quoted('bs.digest' if digests else 'null')}, {_running('bp')})",
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
        " left join information_schema.processlist bp on bp.id = b.trx_mysql_thread_id" + (_LAST if digests else "")
    )


LEARN_S, LEARN_AGAIN_S = 5.0, 30.0
"""Seconds between queries for new digests: while a new statement has no digest, and while only older ones lack one."""
_NEW = (
    f"select digest, min(digest_text), max(unix_timestamp(first_seen)) from performance_schema.{STATEMENTS.name}"
    " where digest is not null and unix_timestamp(first_seen) >= %s group by 1 order by sum(sum_timer_wait)"
)


class Sampler(Poller):
    """Sampler that looks once per period; `take` returns what was seen since the last `take`."""

    name = "dbdyno snap sampler"
    source = Source(QUERIES)

    def __init__(self, address: Address, *, period_ns: int) -> None:
        super().__init__(period_ns=max(period_ns, PERIOD_LEAST_NS))
        self.failures = (Error, driver().Error, OSError)
        self.statements = Statements()
        self._address = address
        self._sql = self._who = ""
        self._seen = SampleBuffer(activity_columns("VARCHAR", summed=False), BLOCKED)
        self._has_digests = False
        self._newest_s = 0.0
        self._learnt: tuple[float, int] | None = None

    def take(self) -> tuple[list[View], int]:
        """Return the views `activity` and `blocked`, and the number of looks, since the last call."""
        views, looks = self._seen.take(self.samples)
        return [dataclasses.replace(one, rows=self._renamed(one)) for one in views], looks

    def _renamed(self, view: View) -> bytes:
        """Return the rows with dbdyno's identifiers replaced by the digests that are now known."""
        assert isinstance(view.rows, bytes)
        return _OURS.sub(lambda found: f'"{self.statements.digest_of(found[1])}"', view.rows.decode()).encode()

    def _connect(self) -> Any:
        connection = connect(self._address, Options(statement_timeout_ms=STATEMENT_TIMEOUT_MS))
        with connection.cursor() as cursor:
            cursor.execute("set session group_concat_max_len = 16777216")
            cursor.execute("select name from performance_schema.setup_consumers where enabled = 'YES'")
            on = {name for (name,) in cursor.fetchall()}
        self._has_digests = "statements_digest" in on
        self._sql = _looking(waits="events_waits_current" in on)
        self._who = _blocking(digests="events_statements_current" in on)
        return connection

    def _look(self, conn: Any) -> None:
        with conn.cursor() as cursor:
            cursor.execute(self._sql)
            sessions, waiters = cursor.fetchone() or (None, None)
            blocked = None
            if waiters and self._seen.is_blocking_query_due():
                cursor.execute(self._who)
                (blocked,) = cursor.fetchone()
            self._seen.add(self._without_texts(sessions), self._without_texts(blocked))
            if self._has_digests and self._is_time_to_learn():
                cursor.execute(_NEW, [self._newest_s - 1])
                self._learn(cursor.fetchall())

    def _without_texts(self, rows: str | None) -> str | None:
        return None if rows is None else _TEXT.sub(self._identified, rows)

    def _identified(self, match: re.Match[str]) -> str:
        known = self.statements.identifier(bytes.fromhex(match[1]).decode(errors="replace"))
        return f'"{known}"' if known else ""

    def _is_time_to_learn(self) -> bool:
        unknown = self.statements.unknown_count()
        if self._learnt is None:
            return unknown > 0
        since, before = time.monotonic() - self._learnt[0], self._learnt[1]
        return unknown > 0 and since >= (LEARN_S if unknown > before else LEARN_AGAIN_S)

    def _learn(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.statements.learn((str(digest), str(text)) for digest, text, _ in rows)
        self._newest_s = max([self._newest_s, *(float(at) for _, _, at in rows)])
        self._learnt = time.monotonic(), self.statements.unknown_count()
