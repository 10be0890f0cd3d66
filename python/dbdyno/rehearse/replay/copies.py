"""Databases for replays: a fresh copy for each turn if the capture writes, else the side's own database, read-only.

A copy has no settings of its own (ALTER DATABASE ... SET); they are given to the sessions of the replay instead.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from typing import LiteralString

import psycopg
from psycopg import errors, sql

from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.replay import drop_sql
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.rehearse.side import Side

_MAY: LiteralString = "select rolcreatedb or rolsuper from pg_roles where rolname = current_user"
_OWN: LiteralString = (
    "select name, setting from pg_settings where source in ('database', 'user', 'database user') order by name"
)


def refuse_without_copies(sides: tuple[Side, Side]) -> None:
    """Raise an error if a side's role may not copy its database, before anything is measured.

    Raises:
        TargetError: The role may not create databases.
    """
    for side in sides:
        with contextlib.closing(side.server.connect()) as conn:
            (may,) = conn.execute(_MAY).fetchone() or (False,)
            user = conn.info.user
        if not may:
            raise TargetError(
                "the capture contains writes, but this role may not create the database that they would be replayed on",
                where=side.server.safe_dsn,
                next_step=f"run `ALTER ROLE {user} CREATEDB`, or rehearse without --replay",
            )


@contextlib.contextmanager
def replay_database(side: Side, guardian: Guardian, *, writes: bool) -> Iterator[Postgres]:
    """Return the database for one turn; a copy is dropped when the context ends, even after an error.

    Raises:
        TargetError: The server refuses the copy.
    """
    side.close()
    if not writes:
        yield side.server
        return
    own = side.server.libpq_parameters()["dbname"]
    name = f"dbdyno_replay_{secrets.token_hex(4)}"
    made = sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(own))
    with guardian.undo(side.server.sql_undo("copy of a replay", [drop_sql(side.server, name)])):
        _command(side.server, made, side.stop)
        yield side.server.in_database(name)


def session_options(server: Postgres) -> str:
    """Return a side's database and role settings as connection options for sessions in its copies."""
    with contextlib.closing(server.connect()) as conn:
        rows = conn.execute(_OWN).fetchall()
    return " ".join(f"-c {name}={_escape(str(value))}" for name, value in rows)


def _escape(value: str) -> str:
    """Return a value for connection options, with blanks and backslashes escaped.

    >>> _escape('"$user", public')
    '"$user",\\\\ public'
    """
    return "".join(f"\\{sign}" if sign.isspace() or sign == "\\" else sign for sign in value)


def _command(server: Postgres, command: sql.Composed, stop: Callable[[], bool] | None) -> None:
    """Copy a database, and write its dirty pages to disk before the turn if the role is allowed to.

    Raises:
        TargetError: The server refuses the copy.
    """
    with contextlib.closing(server.connect(statement_timeout_ms=0, stop=stop)) as conn:
        try:
            conn.execute(command)
        except StopRequested:
            raise
        except psycopg.Error as error:
            busy = isinstance(error, errors.ObjectInUse)
            raise TargetError(
                f"the server refuses to copy the database: {str(error).splitlines()[0]}",
                where=server.safe_dsn,
                next_step="end the sessions that use the database" if busy else "rehearse without --replay",
            ) from None
        with contextlib.suppress(errors.InsufficientPrivilege):
            conn.execute("checkpoint")
