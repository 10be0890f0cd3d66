"""Facts about the server by which epochs are judged: its identity and its start.

A fact that cannot be read is omitted, because a managed service may hide some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from dbdyno.base.json_types import JsonObject

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

OWN_MARK: LiteralString = "/* dbdyno */ "
"""Mark in the texts of dbdyno's own statements, so that a report can leave them out."""


def is_ours(text: str) -> bool:
    """Return True if a text is from one of dbdyno's sessions: marked, or a savepoint with a name from its driver."""
    return OWN_MARK.strip() in text or '"_pg3_' in text


def is_ours_sql(column: str) -> str:
    """Return the SQL condition under which `is_ours` is true for the text in a column."""
    return f"(contains(coalesce({column}, ''), '{OWN_MARK.strip()}') or contains({column}, '\"_pg3_'))"


_QUERIES: tuple[tuple[tuple[str, ...], LiteralString], ...] = (
    (
        (
            "at_us",
            "started_us",
            "in_recovery",
            "version",
            "version_num",
            "block_bytes",
            "role",
            "database",
            "loaded_us",
        ),
        "select (extract(epoch from clock_timestamp()) * 1000000)::bigint,"
        " (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint,"
        " pg_is_in_recovery(), current_setting('server_version'),"
        " current_setting('server_version_num')::int, current_setting('block_size')::int,"
        " current_user::text, current_database()::text,"
        " (extract(epoch from pg_conf_load_time()) * 1000000)::bigint",
    ),
    (("identity",), "select system_identifier::text from pg_control_system()"),
    (
        ("timeline", "segment_bytes"),
        "select timeline_id, current_setting('wal_segment_size') from pg_control_checkpoint()",
    ),
    (("address",), "select inet_server_addr()::text || ':' || inet_server_port()"),
    (
        ("wal_bytes",),
        "select case when pg_is_in_recovery() then pg_last_wal_replay_lsn()"
        " else pg_current_wal_insert_lsn() end - '0/0'::pg_lsn",
    ),
    (
        ("replayed_us", "received_bytes", "replay_paused"),
        "select (extract(epoch from pg_last_xact_replay_timestamp()) * 1000000)::bigint,"
        " (pg_last_wal_receive_lsn() - '0/0'::pg_lsn)::bigint,"
        " case when pg_is_in_recovery() then pg_is_wal_replay_paused() end",
    ),
    (
        ("roles",),
        "select coalesce(json_object_agg(oid::text, rolname), '{}') from (select oid, rolname from pg_roles"
        " where rolname !~ '^pg_' order by oid limit 1000) r",
    ),
    (
        ("monitor",),
        "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')",
    ),
    (
        ("long_transactions", "oldest_transaction_us", "clients"),
        "select count(*) filter (where xact_start < clock_timestamp() - interval '5 s'),"
        " (extract(epoch from clock_timestamp() - min(xact_start)) * 1000000)::bigint, count(*)"
        " from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    ),
)


_ALL: LiteralString = "select * from " + " cross join ".join([f"({sql}) f{at}" for at, (_, sql) in enumerate(_QUERIES)])
"""One query for all facts, since each of the queries returns one row."""


class FactsReader:
    """Reader of all facts by one statement, inside the caller's transaction.

    After the first refusal it uses one statement for each group of facts, so that only the refused one is missing.
    """

    def __init__(self) -> None:
        self._together = True

    def read(self, connection: Connection) -> JsonObject:
        """Return the current facts."""
        if self._together:
            names = tuple(name for names, _ in _QUERIES for name in names)
            found = _asked(connection, names, _ALL)
            if found is not None:
                return found
            self._together = False
        return {
            name: value for names, sql in _QUERIES for name, value in (_asked(connection, names, sql) or {}).items()
        }


def _asked(connection: Connection, names: tuple[str, ...], sql: LiteralString) -> JsonObject | None:
    """Return the facts that one statement reads, or None if the server refuses it."""
    import psycopg

    try:
        with connection.transaction():
            row = connection.execute(sql).fetchone()
    except psycopg.Error:
        if connection.broken:
            raise
        return None
    found = dict(zip(names, row or (), strict=row is not None))
    if found.get("wal_bytes") is not None:
        found["wal_bytes"] = int(found["wal_bytes"])
    return found


def name_of(target: Postgres) -> str:
    """Return a short name of a target: host and port (`local` for a socket's folder)."""
    known = target.libpq_parameters()
    host = known.get("host", "local")
    return f"{'local' if host.startswith(('/', '@')) else host}:{known.get('port', '5432')}"
