"""Statements that a MariaDB server still remembers, from the performance schema.

    history = read_history("mariadb://app@db1/shop")
    history.executed[0].text
    history.counted[0].calls

`events_statements_history_long` has the last statements of all sessions with their values, `events_statements_history`
has the last statements of each session that still exists, and the digests count all statements. Statements within
stored routines are left out, and so are statements whose text the server cut. The server does not remember the texts of
statements prepared by the binary protocol.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dbdyno.base.errors import SnapshotError
from dbdyno.bench.mariadb import session
from dbdyno.evidence.log_sources import LogSource, LogSources
from dbdyno.snapshot.engines.mariadb.connection import Address, address, driver, error_text
from dbdyno.snapshot.plans.syslog import PIECE

_COLUMNS = """thread_id, event_id, event_name, timer_start, timer_wait, current_schema, sql_text, returned_sqlstate,
errors, digest, nesting_event_type, end_event_id"""
_HISTORY = f"""
select h.thread_id, h.timer_start, h.timer_wait, coalesce(h.current_schema, ''), h.sql_text,
  if(h.errors > 0, coalesce(h.returned_sqlstate, 'HY000'), ''), coalesce(t.processlist_user, ''),
  coalesce(h.digest, '')
from (select {_COLUMNS} from performance_schema.events_statements_history_long
  union select {_COLUMNS} from performance_schema.events_statements_history) h
left join performance_schema.threads t on t.thread_id = h.thread_id
where h.event_name not in ('statement/com/Prepare', 'statement/com/Init DB')
  and (h.sql_text is not null or h.event_name = 'statement/com/Execute') and h.end_event_id is not null
  and coalesce(h.nesting_event_type, '') <> 'STATEMENT' and h.thread_id <> %s
order by h.timer_start, h.event_id
"""
_OWN = """
select c.thread_id, c.timer_start, utc_timestamp(6) from performance_schema.events_statements_current c
join performance_schema.threads t on t.thread_id = c.thread_id
where t.processlist_id = connection_id() and c.end_event_id is null
"""
_COUNTED = """
select coalesce(schema_name, ''), digest, digest_text, count_star, sum_timer_wait, sum_errors
from performance_schema.events_statements_summary_by_digest where digest is not null and count_star > 0
order by sum_timer_wait desc
"""
_CONSUMERS = "update performance_schema.setup_consumers set enabled = 'YES' where name like 'events_statements_%'"
_SHORT = 4
"""Number of bytes by which a cut text may be shorter than the limit: the server never cuts within a character."""


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution: its session, its end, its time [ns], and its SQLSTATE if it failed."""

    thread: int
    ended: datetime
    elapsed_ns: int
    database: str
    user: str
    text: str
    state: str
    digest: str


@dataclass(frozen=True, slots=True)
class CountedStatement:
    """A statement that the server has counted, without its values."""

    database: str
    digest: str
    text: str
    calls: int
    total_ns: int
    failed: int


@dataclass(frozen=True)
class History:
    """What a server remembers.

    Attributes:
        server: The connection string of the server, without its password.
        version: Its version.
        executed: Executions, sorted by start time.
        counted: Statements, the one with the most time first.
        cut: Number of executions whose text the server cut.
        textless: Number of executions of prepared statements, whose text the server does not remember.
    """

    server: str
    version: str
    executed: Sequence[Execution]
    counted: Sequence[CountedStatement]
    cut: int
    textless: int


def read_history(dsn: str) -> History:
    """Return the statements that a server remembers.

    Raises:
        SnapshotError: The server does not answer, is not MariaDB, or its performance schema has no statements.
    """
    where = address(dsn)
    pymysql = driver()
    try:
        with contextlib.closing(session.open_session(where.parameters, name="dbdyno trace")) as connection:
            if "mariadb" not in str(connection.get_server_info()).lower():
                raise SnapshotError(
                    "is not a MariaDB server: MySQL is not supported",
                    where=where.safe,
                    next_step="name a MariaDB server",
                )
            return _history(connection, where)
    except (pymysql.Error, OSError, ValueError) as error:
        raise SnapshotError(
            f"the server's statements cannot be read: {error_text(error)}",
            where=where.safe,
            next_step="check address, user and password (MYSQL_PWD), and the right to read performance_schema",
        ) from error


def _history(connection: Any, address: Address) -> History:
    settings = "select @@performance_schema, @@performance_schema_max_sql_text_length, @@version"
    is_on, most, version = session.row(connection, settings)
    if not is_on:
        raise SnapshotError(
            "the server's performance schema is off, so it keeps no statements",
            where=address.safe,
            next_step="start the server with performance_schema = ON, or import its slow log",
        )
    own = session.rows(connection, _OWN)
    if not own:
        raise SnapshotError(
            "the server's performance schema does not keep statements",
            where=address.safe,
            next_step=f"enable its consumers with: {_CONSUMERS}",
        )
    thread, now_ps, now = own[0]
    rows = session.rows(connection, _HISTORY, (thread,))
    counted = [
        CountedStatement(str(schema), str(digest), str(text), int(calls), int(total_ps) // 1000, int(errors))
        for schema, digest, text, calls, total_ps, errors in session.rows(connection, _COUNTED)
    ]
    texts = [row for row in rows if row[4] is not None]
    whole = [row for row in texts if len(str(row[4]).encode()) < int(most) - _SHORT]
    executed = [
        Execution(
            int(thread),
            now - timedelta(microseconds=(int(now_ps) - int(start_ps) - int(wait_ps or 0)) / 1e6),
            int(wait_ps or 0) // 1000,
            str(schema),
            str(user),
            text,
            str(state),
            str(digest),
        )
        for text, (thread, start_ps, wait_ps, schema, _, state, user, digest) in zip(
            _own_texts(whole), whole, strict=True
        )
    ]
    return History(address.safe, str(version), executed, counted, len(texts) - len(whole), len(rows) - len(texts))


def _own_texts(rows: Sequence[Any]) -> list[str]:
    """Return the text of each execution: MariaDB logs a whole message as the text of its first statement."""
    texts = [str(row[4]) for row in rows]
    last: dict[int, int] = {}
    for at, row in enumerate(rows):
        before = last.get(row[0])
        if before is not None and texts[before].endswith(texts[at]):
            head = texts[before].removesuffix(texts[at]).rstrip()
            texts[before] = head.removesuffix(";") if head.endswith(";") else texts[before]
        last[row[0]] = at
    return texts


def write_history(history: History, path: Path) -> LogSources:
    """Write the executions of a server as a log in JSON, and return it as the source of a capture."""
    with path.open("w", encoding="utf-8") as file:
        for line in _lines(history):
            file.write(json.dumps(line) + "\n")
    files = [LogSource(path, "jsonlog", "", datetime.now(UTC).year)]
    return LogSources(files, (), (), PIECE.pattern.decode(), (), _notes(history), is_mariadb=True)


def _lines(history: History) -> Iterator[dict[str, object]]:
    yield {
        "timestamp": _stamp(min((one.ended for one in history.executed), default=datetime.now(UTC))),
        "pid": 0,
        "error_severity": "LOG",
        "message": f"starting PostgreSQL {history.version}",
    }
    for one in sorted(history.executed, key=lambda one: one.ended):
        line: dict[str, object] = {
            "timestamp": _stamp(one.ended),
            "user": one.user,
            "dbname": one.database,
            "pid": one.thread,
            "session_id": f"1.{one.thread:x}",
        }
        if one.state:
            yield {**line, "error_severity": "ERROR", "state_code": one.state, "statement": one.text}
        else:
            message = f"duration: {one.elapsed_ns / 1e6:.6f} ms  statement: {one.text}"
            yield {**line, "error_severity": "LOG", "message": message}


def _stamp(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(' ', 'microseconds')} UTC"


def _notes(history: History) -> list[str]:
    calls = sum(one.calls for one in history.counted)
    notes = [
        f"the server kept the last {len(history.executed):,} of {calls:,} executions that it counted"
        " (performance_schema_events_statements_history_long_size)"
    ]
    if history.cut:
        notes.append(
            f"not used: {history.cut:,} texts that the server cut (performance_schema_max_sql_text_length is the limit)"
        )
    if history.textless:
        notes.append(
            f"not used: {history.textless:,} executions of prepared statements, whose text the server did not keep"
        )
    return notes
