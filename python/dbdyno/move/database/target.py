"""The receiving database: reasons to refuse it, and what it already contains of a job.

Nothing is written to a database that is on a standby, that other sessions use, or that is not empty. While a job is
unfinished, the schema `dbdyno_move` marks the database as the job's target and records which chunks and statements are
done, each in the same transaction as the work itself. After a kill, these records are authoritative.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.base.errors import MoveError
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.engines.postgres.source import application_name, failure, session_settings
from dbdyno.move.nouns import with_noun

MARK = "dbdyno_move"
FIRST_OID = 16384
"""Smallest OID of user objects."""
OLDEST = 120000
SHOWN = 5
END_S = 30.0
SCHEMA_DONE, LARGE_OBJECTS_DONE = -1, -2
"""Numbers that record these steps in the table of statements; the archive's statements have positive numbers."""
MARK_SQL = """
create schema dbdyno_move;
create table dbdyno_move.job (id text, folder text);
create table dbdyno_move.chunk (number int primary key, rows bigint, bytes bigint, hash text);
create table dbdyno_move.entry (id int primary key);
create table dbdyno_move.note (kind text, name text, line text);
alter table dbdyno_move.note replica identity full;
"""
"""SQL that creates a job's mark; a table whose rows are deleted needs a replica identity if all are published."""
FOUND_SQL = f"""
with member as (select classid, objid from pg_catalog.pg_depend where deptype = 'e'),
found(what, name, class, oid) as (
    select case relkind when 'v' then 'view' when 'S' then 'sequence' when 'm' then 'materialized view'
               when 'f' then 'foreign table' else 'table' end,
           n.nspname || '.' || c.relname, 'pg_class'::regclass, c.oid
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relpersistence <> 't'
    union all select 'function', n.nspname || '.' || proname, 'pg_proc'::regclass, p.oid
    from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    union all select 'type', n.nspname || '.' || typname, 'pg_type'::regclass, t.oid
    from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
    where typrelid = 0 and typelem = 0 and typtype in ('b', 'd', 'e', 'r')
    union all select 'operator', n.nspname || '.' || oprname, 'pg_operator'::regclass, o.oid
    from pg_catalog.pg_operator o join pg_catalog.pg_namespace n on n.oid = o.oprnamespace
    union all select 'schema', nspname, 'pg_namespace'::regclass, oid from pg_catalog.pg_namespace
    where nspname !~ '^pg_'
    union all select 'publication', pubname, 'pg_publication'::regclass, oid from pg_catalog.pg_publication
    union all select 'subscription', subname, 'pg_subscription'::regclass, oid from pg_catalog.pg_subscription
    where subdbid = (select oid from pg_catalog.pg_database where datname = current_database())
    union all select 'event trigger', evtname, 'pg_event_trigger'::regclass, oid from pg_catalog.pg_event_trigger
    union all select 'foreign data wrapper', fdwname, 'pg_foreign_data_wrapper'::regclass, oid
    from pg_catalog.pg_foreign_data_wrapper
    union all select 'default privileges of', pg_get_userbyid(defaclrole), 'pg_default_acl'::regclass, oid
    from pg_catalog.pg_default_acl
    union all select 'large object', oid::text, 'pg_largeobject'::regclass, oid
    from pg_catalog.pg_largeobject_metadata
)
select what || ' ' || name from found
where (oid >= {FIRST_OID} or what = 'large object') and name <> 'public' and name <> '{MARK}'
  and name not like '{MARK}.%' and not exists (select from member m where m.classid = class and m.objid = found.oid)
"""  # noqa: S608
SESSIONS_SQL = """
select coalesce(nullif(application_name, ''), 'a session'), usename::text, coalesce(client_addr::text, 'this host'), pid
from pg_catalog.pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
  and application_name <> all(%s) order by pid
"""
PLACE_SQL = """
select (select oid::bigint from pg_catalog.pg_database where datname = current_database()),
       pg_postmaster_start_time()::text, pg_is_in_recovery(), current_setting('default_transaction_read_only'),
       has_database_privilege(current_database(), 'create'), current_user::text
"""
ROLES_SQL = "select rolname::text from pg_catalog.pg_roles union all select 'pg_database_owner'"


@dataclass(frozen=True)
class Place:
    """The database and server of a session."""

    server: str
    oid: int
    started: str

    @property
    def stable_id(self) -> str:
        """Return the part of the identity that a restart of the server does not change."""
        return f"{self.server}/{self.oid}"


def place_of(server: Postgres, conn: psycopg.Connection[Any]) -> Place:
    """Return a session's place; its start time distinguishes a copy of the server that has the same identifier."""
    row = conn.execute(PLACE_SQL).fetchone()
    assert row is not None, "a session is in a database"
    return Place(server.identity(conn), row[0], row[1])


@contextlib.contextmanager
def session(target: Postgres, job: str, *, applying: bool = True) -> Iterator[psycopg.Connection[Any]]:
    """Open a session at the target; errors of the server become a `MoveError`.

    Args:
        target: The target.
        job: The job's id.
        applying: Prepare the session for statements of the archive.
    """
    try:
        with contextlib.closing(
            target.connect(application_name=application_name(job), statement_timeout_ms=0, lock_timeout_ms=0)
        ) as conn:
            conn.execute(session_settings(conn, lasting=True))
            if applying:
                prepare(conn)
            yield conn
    except psycopg.Error as error:
        raise failure(error, target.safe_dsn) from None


SESSION = {
    "lock_timeout": "0",
    "search_path": "",
    "lc_monetary": "C",
    "synchronous_commit": "off",
    "check_function_bodies": "off",
    "client_min_messages": "warning",
    "standard_conforming_strings": "on",
}
"""Settings under which pg_dump's statements and values of any type mean the same as in the source.

Commits need not wait for the disk, because the database can be used only after the last one, which does wait.
"""


def prepare(conn: psycopg.Connection[Any]) -> None:
    """Prepare a session for the archive's statements."""
    conn.execute(settings_sql(conn))


def settings_sql(conn: psycopg.Connection[Any], encoding: str = "UTF8", *, source: bool = False) -> str:
    """Return one statement that prepares a session.

    Args:
        conn: Used to quote values.
        encoding: The encoding of transferred rows.
        source: Set only how values are written, as needed by a session that reads.
    """
    chosen = {name: SESSION[name] for name in (("search_path", "lc_monetary") if source else SESSION)}
    chosen["client_encoding"] = encoding
    each = sql.SQL(", ").join(sql.SQL("set_config({}, {}, false)").format(*pair) for pair in chosen.items())
    return sql.SQL("select {}").format(each).as_string(conn)


def refuse_target(target: Postgres, conn: psycopg.Connection[Any], job: str = "") -> None:
    """Raise an error unless the database can be written and nobody else uses it.

    Raises:
        MoveError: The database is on a standby, other sessions are connected to it, or the role is not allowed to write
            there.
        TargetError: The user's configuration names the server as live.
    """
    target.refuse_live()
    if target.pooled:
        raise MoveError(
            "a pooler is in between: settings of this session would affect other sessions",
            where=target.safe_dsn,
            next_step="connect to the server directly",
        )
    row = conn.execute(PLACE_SQL).fetchone()
    assert row is not None, "a session is in a database"
    reasons = {
        "the server is older than PostgreSQL 12": (
            conn.info.server_version < OLDEST,
            "name a server of PostgreSQL 12 or newer",
        ),
        "the server is a standby, which takes no writes": (row[2], "name its primary server"),
        "sessions are read-only here (default_transaction_read_only = on)": (
            row[3] == "on",
            "set it to off for this role or database",
        ),
        f"the role {row[5]} may not create schemas in this database": (
            not row[4],
            "connect as the owner of the database, or as a superuser",
        ),
    }
    for reason, (holds, step) in reasons.items():
        if holds:
            raise MoveError(reason, where=target.safe_dsn, next_step=step)
    own = [application_name(job)] if job else []
    others = conn.execute(SESSIONS_SQL, [[*own, *_own_names(job)]]).fetchall()
    if others:
        names = ", ".join(f"{name} ({role}, {host}, pid {pid})" for name, role, host, pid in others[:SHOWN])
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        raise MoveError(
            f"seems to be in use: {with_noun(len(others), 'session')} of other clients: {names}{more}",
            where=target.safe_dsn,
            next_step="name another database, or end these sessions if this database is the right one",
        )


def _own_names(job: str) -> list[str]:
    return [f"{application_name(job)} {word}" for word in ("pg_dump", "holds")] if job else []


def user_objects(conn: psycopg.Connection[Any]) -> list[str]:
    """Return the user objects in the database, except extensions, the schema public and a job's mark."""
    return [row[0] for row in conn.execute(FOUND_SQL)]


def refuse_filled(target: Postgres, conn: psycopg.Connection[Any]) -> None:
    """Raise an error unless the database is empty.

    Raises:
        MoveError: The database contains objects.
    """
    marked = unfinished_job(conn)
    if marked is not None:
        raise MoveError(
            f"the unfinished job {marked[0]} is in this database",
            where=target.safe_dsn,
            next_step=f"run `dbdyno move resume {marked[1]} --source DSN --target DSN`, or drop and create the "
            f"database",
        )
    found = user_objects(conn)
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise MoveError(
            f"is not empty: {', '.join(found[:SHOWN])}{more}",
            where=target.safe_dsn,
            next_step="name an empty database, or create one with `createdb --template=template0 NAME`",
        )


def unfinished_job(conn: psycopg.Connection[Any]) -> tuple[str, str] | None:
    """Return id and folder of the unfinished job in the database, or None."""
    row = conn.execute("select to_regclass(%s) is not null", [f"{MARK}.job"]).fetchone()
    if not row or not row[0]:
        return None
    found = conn.execute("select id, folder from dbdyno_move.job").fetchone()
    return (str(found[0]), str(found[1])) if found else None


def end_sessions(conn: psycopg.Connection[Any], job: str) -> None:
    """End the sessions that a killed attempt left at the target, and wait until they are gone.

    Raises:
        MoveError: The sessions do not end in time.
    """
    asked = (
        "select pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where datname = current_database()"
        " and application_name = %s and pid <> pg_backend_pid()"
    )
    until = time.monotonic() + END_S
    while conn.execute(asked, [application_name(job)]).fetchall():
        if time.monotonic() > until:
            raise MoveError(
                f"sessions of an earlier attempt of job {job} are still running after a request to end them",
                next_step="end these sessions manually, then run the command again",
            )
        time.sleep(0.1)


def recorded_entries(conn: psycopg.Connection[Any]) -> set[int]:
    """Return the numbers of the statements and steps that the target has recorded."""
    return {row[0] for row in conn.execute("select id from dbdyno_move.entry")}


def note_entry(conn: psycopg.Connection[Any], number: int) -> None:
    """Record a statement or step as done, in the transaction that does it."""
    conn.execute("insert into dbdyno_move.entry values (%s)", [number])


def roles_of(conn: psycopg.Connection[Any]) -> frozenset[str]:
    """Return the names of the target's roles."""
    return frozenset(row[0] for row in conn.execute(ROLES_SQL))
