"""A server as the source of plans: its current log by `pg_read_binary_file`, or a generic plan without a log.

Sessions are read-only and have timeouts; no setting is changed. A log is read in pieces up to a limit: of a larger log,
only its end. The generic plan is requested by PREPARE and EXPLAIN EXECUTE with plan_cache_mode = force_generic_plan, in
a read-only transaction that is rolled back. The text is sent by the extended protocol, which accepts a single
statement, and it is not executed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import SnapshotError, TargetError
from dbdyno.base.sections import columns, section, table
from dbdyno.snapshot.plans.explain import TextPlans, UnreadPlanError
from dbdyno.snapshot.plans.generic import EXPLAINED
from dbdyno.snapshot.plans.page import SETUP
from dbdyno.snapshot.plans.source import HEAD_BYTES, Source, log_of_stream
from dbdyno.snapshot.plans.tree import identity, sketch
from dbdyno.snapshot.plans.values import mask_condition, mask_statement

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

PIECE = 1 << 20
MOST = 64 << 20
STATEMENT_TIMEOUT_MS = 5000
LOCK_TIMEOUT_MS = 500
JSONLOG_FROM = 150000


@dataclass(frozen=True)
class ServerLog:
    """The current log of a server, open for reading.

    Attributes:
        source: The log.
        prefix: The server's log_line_prefix.
        zone: The server's log_timezone.
        name: Name of the target.
        cut: True if the log is not read from its beginning.
        notes: Sentences for the page.
    """

    source: Source
    prefix: str
    zone: str
    name: str
    cut: bool
    notes: tuple[str, ...]


@contextlib.contextmanager
def _session(target: Postgres) -> Any:
    import psycopg

    try:
        with contextlib.closing(
            target.connect(
                statement_timeout_ms=STATEMENT_TIMEOUT_MS,
                lock_timeout_ms=LOCK_TIMEOUT_MS,
                read_only=True,
                application_name="dbdyno snap plans",
            )
        ) as connection:
            yield connection
    except TargetError as error:
        raise SnapshotError(error.message, where=error.where, next_step=error.next_step) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise SnapshotError(
            f"this role may not read the server's log: {_first(error)}",
            where=target.safe_dsn,
            next_step="grant execute on function pg_current_logfile(text), pg_stat_file(text), "
            "pg_read_binary_file(text, bigint, bigint) to the role, or read the file on the server's "
            "machine with --log FILE",
        ) from error
    except psycopg.Error as error:
        raise SnapshotError(f"the server refused to send its log: {_first(error)}", where=target.safe_dsn) from error


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["refused"])[0]


def _target(dsn: str) -> Postgres:
    from dbdyno.bench.postgres.server import Postgres

    try:
        return Postgres.open(dsn)
    except TargetError as error:
        raise SnapshotError(error.message, where=error.where, next_step=error.next_step) from error


@contextlib.contextmanager
def server_log(dsn: str, limit: int = MOST) -> Any:
    """Yield the server's current log as a `ServerLog`, of which at most the last `limit` bytes are read.

    Raises:
        SnapshotError: The server has no log that can be read, or this role may not read it.
    """
    from dbdyno.snapshot.engines.postgres.facts import name_of

    target = _target(dsn)
    with _session(target) as connection:
        forms = ["csvlog", *(["jsonlog"] if connection.info.server_version >= JSONLOG_FROM else []), "stderr"]
        asked = (_scalar(connection, "select pg_current_logfile(%s)", form) for form in forms)
        path = next((one for one in asked if one), None)
        if path is None:
            raise SnapshotError(
                "the server writes no log that it can send to a client",
                where=target.safe_dsn,
                next_step="read the log on the server's machine with --log FILE, or turn on logging_collector",
            )
        size = int(_scalar(connection, "select size from pg_stat_file(%s)", path))
        start = max(0, size - limit)
        source = log_of_stream(str(path).rpartition("/")[2], _Remote(connection, str(path), start, size))
        head = _scalar(connection, "select pg_read_binary_file(%s, 0, %s)", path, HEAD_BYTES)
        first = bytes(head).partition(b"\n")[0][:HEAD_BYTES].rstrip()
        source.head = hashlib.blake2b(first, digest_size=12).hexdigest()
        prefix, zone = (
            _scalar(connection, f"select current_setting('{one}')") for one in ("log_line_prefix", "log_timezone")
        )
        loaded = _scalar(connection, "select current_setting('auto_explain.log_min_duration', true)")
        notes = [] if loaded is not None else [f"auto_explain is not loaded in a new session of this role; {SETUP}"]
        if start:
            notes.append(f"only the last {limit} of {size} bytes were read; they are not kept; --most reads more")
        yield ServerLog(source, str(prefix), str(zone), name_of(target), bool(start), tuple(notes))


def _scalar(connection: Connection, sql: str, *values: object) -> Any:
    row = connection.execute(sql.encode(), values or None).fetchone()
    return row[0] if row else None


class _Remote(io.RawIOBase):
    """The part of a server's file from offset `start` to `end`, read in pieces."""

    def __init__(self, connection: Connection, path: str, start: int, end: int) -> None:
        self._connection = connection
        self._path = path
        self._at = start
        self._end = end

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` requires of a stream that can be read."""
        return True

    def readinto(self, into: Any) -> int:
        """Read the next piece and return its size in bytes, 0 at the end."""
        wanted = min(len(into), PIECE, self._end - self._at)
        if wanted <= 0:
            return 0
        some = bytes(
            _scalar(self._connection, "select pg_read_binary_file(%s, %s, %s)", self._path, self._at, wanted) or b""
        )
        into[: len(some)] = some
        self._at += len(some)
        return len(some)


def generic_plan_page(dsn: str, queryid: int) -> dict[str, object]:
    """Return the page of a statement's generic plan.

    Raises:
        SnapshotError: The statement is not known, cannot be explained, or its plan cannot be read.
    """
    from dbdyno.snapshot.engines.postgres.facts import name_of
    from dbdyno.snapshot.engines.postgres.live_sessions import generic_plan_lines

    target = _target(dsn)
    with _session(target) as connection:
        text, database = _text(connection, target, queryid)
    if not EXPLAINED.match(text):
        raise SnapshotError(
            f"statement {queryid} has no plan: only SELECT, INSERT, UPDATE, DELETE and WITH have one",
            where=target.safe_dsn,
            next_step="choose another statement",
        )
    with _session(target.in_database(database)) as connection:
        connection.autocommit = False
        lines = generic_plan_lines(connection, text)
    try:
        plan = TextPlans().read("Query Text: \n" + "\n".join(lines))[1].plan
    except UnreadPlanError as error:
        raise SnapshotError(f"the plan of {queryid} cannot be read: {error}", where=target.safe_dsn) from error
    known = {"statement": str(queryid), "text": mask_statement(text), "sketch": sketch(plan), "plan": identity(plan)}
    shown = columns("text:text:statement sketch:text:plan plan:code:plan_identifier statement:code:identifier")
    rows = [{"line": _without_values(line)} for line in lines]
    return {
        "schema": 1,
        "kind": "snapshot",
        "page": "plans",
        "facts": {"title": name_of(target), "engine": "postgres", "databases": [database]},
        "verdict": {"word": "ok", "why": "a generic plan, which was not executed", "at_us": None},
        "verdicts": [],
        "sections": [
            section(
                "generic",
                "Generic plan",
                [table("", shown, [known]), table("Plan from the server", columns("line:code:plan"), rows)],
                about="The plan that the planner would choose without values, now and with this role's settings and "
                "search path. A statement that is planned for its values may run with another plan.",
            )
        ],
        "warnings": [],
    }


def _without_values(line: str) -> str:
    words = line.lstrip(" ")
    return " " * (len(line) - len(words)) + (mask_condition(words) if ": " in words else words)


def _text(connection: Connection, target: Postgres, queryid: int) -> tuple[str, str]:
    schema = _scalar(
        connection,
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
        " where e.extname = 'pg_stat_statements'",
    )
    step = "name a database with pg_stat_statements, and a statement identifier from `dbdyno snap report`"
    if schema is None:
        raise SnapshotError("this database has no pg_stat_statements", where=target.safe_dsn, next_step=step)
    row = connection.execute(
        f"select s.query, d.datname::text from {schema}.pg_stat_statements s join pg_database d on d.oid = s.dbid"
        " where s.queryid = %s order by s.calls desc limit 1".encode(),
        [queryid],
    ).fetchone()
    if row is None or not row[0] or row[0] == "<insufficient privilege>":
        raise SnapshotError(
            f"there is no statement {queryid}, or this role may not see it", where=target.safe_dsn, next_step=step
        )
    return str(row[0]), str(row[1])
