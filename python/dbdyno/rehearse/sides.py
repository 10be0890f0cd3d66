"""The two sides of a rehearsal: two existing servers, or a new side derived from the old one."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import TargetError
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import StopRequested
from dbdyno.move.database.masks import Mask
from dbdyno.rehearse.changes import is_setting, refuse_change
from dbdyno.rehearse.database_settings import database_settings
from dbdyno.rehearse.effects import has_several
from dbdyno.rehearse.safety import refuse_production
from dbdyno.rehearse.side import Side

if TYPE_CHECKING:
    from dbdyno.rehearse.new_server import CarriedSettings

Show = Callable[[str], None]


def refuse_mariadb(old: str, new: str | None) -> None:
    """Raise an error if a side is a MariaDB server, before anything is opened.

    Raises:
        TargetError: One of the targets is a MariaDB.
    """
    for name, target in (("OLD", old), ("NEW", new or "")):
        if target.lower() == "mariadb" or target.lower().startswith(("mariadb://", "mysql://")):
            raise TargetError(
                "MariaDB cannot be a side of a rehearsal, which needs PostgreSQL's plans and rollbacks",
                where=name,
                next_step="compare two MariaDB servers with `dbdyno run`, a script of your statements and a "
                "server for each arm; see docs/how-to/mariadb.md",
            )


@contextlib.contextmanager
def open_two_servers(old: str, new: str) -> Iterator[tuple[Side, Side]]:
    """Open two existing servers.

    Raises:
        TargetError: A server does not answer, or looks like production.
    """
    servers = [Postgres.open(dsn) for dsn in (old, new)]
    for server in servers:
        refuse_production(server)
    with _close_at_end(Side("old", servers[0]), Side("new", servers[1])) as sides:
        yield sides


@contextlib.contextmanager
def open_with_new_server(
    dsn: str, new: str, show: Show, masks: Sequence[Mask] = (), mask_key: str = ""
) -> Iterator[tuple[Side, Side]]:
    """Open a server and, as the new side, start a server of other programs with a copy of the database.

    Args:
        dsn: The old server.
        new: Programs of the new one: `bindir=FOLDER` or `version=17`.
        show: Function that is called with a line about the progress.
        masks: Columns whose values are masked in the copy.
        mask_key: Key from which masked values are derived; empty for a random one.

    Raises:
        TargetError: A server does not answer or start, or looks like production.
        MoveError: The database cannot be moved.
    """
    from dbdyno.rehearse.new_server import copied_server, named_binaries

    binaries = named_binaries(new)
    server = Postgres.open(dsn)
    refuse_production(server)
    with (
        copied_server(server, binaries, show, masks, mask_key) as (copy, carried),
        _close_at_end(Side("old", server, notes=_notes(carried)), Side("new", copy, notes=carried.moved)) as sides,
    ):
        yield sides


@contextlib.contextmanager
def open_with_upgrade(dsn: str, new: str, upgrade: str, show: Show) -> Iterator[tuple[Side, Side]]:
    """Open a server and, as the new side, start a server on an expendable data folder after pg_upgrade.

    Args:
        dsn: The old server.
        new: Programs of the new one: `bindir=FOLDER` or `version=17`.
        upgrade: The data folder: `copy=FOLDER` or `link=FOLDER`.
        show: Function that is called with a line about the progress.

    Raises:
        TargetError: A server does not answer or start, looks like production, or pg_upgrade refuses.
    """
    from dbdyno.rehearse.new_server import named_binaries
    from dbdyno.rehearse.upgraded_server import PG_UPGRADE, named_upgrade, upgraded_server

    binaries, folder = named_binaries(new, [PG_UPGRADE]), named_upgrade(upgrade)
    server = Postgres.open(dsn)
    refuse_production(server)
    with upgraded_server(server, binaries, folder, show) as (made, carried, said):
        notes = (*said, *_notes(carried))
        with _close_at_end(Side("old", server), Side("new", made, notes=notes)) as sides:
            yield sides


def _notes(carried: CarriedSettings) -> tuple[str, ...]:
    notes = []
    if carried.settings:
        notes.append(f"Settings of the old server that the new one has: {', '.join(sorted(carried.settings))}.")
    if carried.fates:
        notes.append(f"Settings of the old server that are others in the new version: {'; '.join(carried.fates)}.")
    if carried.gone:
        notes.append(f"Settings of the old server that its version does not have: {', '.join(sorted(carried.gone))}.")
    return tuple(notes)


@contextlib.contextmanager
def open_with_change(
    dsn: str, changes: Sequence[str], show: Show, stop: Callable[[], bool]
) -> Iterator[tuple[Side, Side]]:
    """Open a server and, as the new side, the same server with a change applied.

    `set NAME = VALUE` applies to the new side's transactions. Any other statement is executed in a copy of the database
    (CREATE DATABASE ... TEMPLATE), which is dropped at the end, however the rehearsal ends.

    Raises:
        TargetError: The server does not answer, looks like production, or refuses the copy or the change; or a change
            reaches beyond the copy.
        StopRequested: The user asked to stop.
    """
    for change in changes:
        refuse_change(change)
    settings = tuple(change for change in changes if is_setting(change))
    server = Postgres.open(dsn)
    refuse_production(server)
    if len(settings) == len(changes):
        _try_settings(server, settings, stop)
        with _close_at_end(Side("old", server), Side("new", server, settings=settings)) as sides:
            yield sides
        return
    name = f"dbdyno_rehearse_{secrets.token_hex(4)}"
    with Guardian() as guardian, guardian.undo(server.sql_undo("copy of a rehearsal", [_drop(server, name)])):
        show("copying the database")
        _command(
            server, sql.SQL("create database {} template {}").format(*map(sql.Identifier, (name, _own(server)))), stop
        )
        copy = server.in_database(name)
        for change in changes:
            if change not in settings:
                show(f"changing the copy: {change}")
                _command(copy, change, stop)
        settings = (*database_settings(server), *settings)
        _try_settings(copy, settings, stop)
        with _close_at_end(Side("old", server), Side("new", copy, settings=settings)) as sides:
            yield sides


@contextlib.contextmanager
def _close_at_end(old: Side, new: Side) -> Iterator[tuple[Side, Side]]:
    try:
        yield old, new
    finally:
        old.close()
        new.close()


def _own(server: Postgres) -> str:
    return server.libpq_parameters()["dbname"]


def _drop(server: Postgres, name: str) -> str:
    with contextlib.closing(server.connect()) as conn:
        forced = " with (force)" if conn.info.server_version >= 130000 else ""
    return f'drop database if exists "{name}"{forced}'


def _command(server: Postgres, command: str | sql.Composed, stop: Callable[[], bool]) -> None:
    """Execute one statement unchanged, outside a transaction.

    Raises:
        TargetError: The server refuses it.
        StopRequested: The user asked to stop.
    """
    with contextlib.closing(server.connect(statement_timeout_ms=0, stop=stop)) as conn:
        _execute(server, conn, command)


def _try_settings(server: Postgres, settings: Sequence[str], stop: Callable[[], bool]) -> None:
    """Try settings in a transaction that is rolled back, before measuring with them.

    Raises:
        TargetError: The server refuses a setting.
    """
    with contextlib.closing(server.connect(stop=stop)) as conn, conn.transaction(force_rollback=True):
        for setting in settings:
            _execute(server, conn, setting)


def _execute(server: Postgres, conn: psycopg.Connection[Any], command: str | sql.Composed) -> None:
    """Execute one statement; binary results are requested, because the server then refuses several statements.

    Raises:
        TargetError: The server refuses it.
        StopRequested: The user asked to stop.
    """
    try:
        conn.execute(command.encode() if isinstance(command, str) else command, binary=True)
    except StopRequested:
        raise
    except psycopg.Error as error:
        step = "correct the change, or create the new side manually and name both servers"
        if isinstance(error, psycopg.errors.ObjectInUse):
            step = "end the sessions that use the database"
        elif isinstance(command, str) and has_several(command):
            step = "give each statement its own --change"
        raise TargetError(
            f"{command if isinstance(command, str) else command.as_string(conn)}: {str(error).splitlines()[0]}",
            where=server.safe_dsn,
            next_step=step,
        ) from None
