"""Evidence of a live PostgreSQL, read-only: one session, one transaction, timeouts for every statement and lock.

If a query fails, only its kind of evidence is missing, with the server's message as the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, LiteralString

from dbdyno.advise.engines.postgres.hypothetical import lookup_costs
from dbdyno.advise.engines.postgres.queries import QUERIES, SERVER, STATEMENTS, Query
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import PLACES, Estimate, HypotheticalIndex, Server, Setting, Statement, Table
from dbdyno.advise.rules.missing_index import candidates
from dbdyno.base.dsn import sql_without_secrets
from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.shown_settings import shown_value

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

APPLICATION_NAME = "dbdyno advise"
_MARK: LiteralString = "/* dbdyno */ "
STATEMENT_TIMEOUT_MS, LOCK_TIMEOUT_MS = 10_000, 500
_STEPS = {
    "42501": "grant pg_monitor to the role",
    "57014": "run the command again when the server is less busy",
    "55P03": "run the command again: another session held a lock on a catalog",
    "55000": "put pg_stat_statements into shared_preload_libraries and restart the server",
}
_SEES_ALL = MissingEvidence("the role sees only its own sessions and statements", "grant pg_read_all_stats to the role")


def read(dsn: str) -> Facts:
    """Return the evidence of the server with this connection string.

    Raises:
        TargetError: the server does not answer.
    """
    from dbdyno.bench.postgres.server import Postgres

    return read_target(Postgres.open(dsn))


def read_target(target: Postgres) -> Facts:
    """Return the evidence of a connected server."""
    with contextlib.closing(
        target.connect(
            statement_timeout_ms=STATEMENT_TIMEOUT_MS,
            lock_timeout_ms=LOCK_TIMEOUT_MS,
            read_only=True,
            application_name=APPLICATION_NAME,
        )
    ) as connection:
        identity = target.identity(connection)
        # Without the right to read it, the identity is host and port, which cannot identify a stored result.
        return _facts(connection, target.safe_dsn, identity if identity.isdigit() else "")


def _facts(connection: Connection, title: str, identity: str) -> Facts:
    rows: dict[type, Sequence[Any]] = {}
    lacking: dict[type, MissingEvidence] = {}
    with connection.transaction():
        connection.execute("set transaction read only")
        connection.execute(
            "select /* dbdyno */ set_config('jit', 'off', true), set_config('search_path', 'pg_catalog', true),"
            " set_config('timezone', 'UTC', true)"
        )
        found, lack = _rows(connection, Server, SERVER)
        if not found:
            raise TargetError(
                f"the server does not report its version: {lack.why if lack else ''}",
                where=title,
                next_step="connect to PostgreSQL 12 or newer",
            )
        server: Server = replace(found[0], identity=identity)
        rows[Server] = [server]
        for query in QUERIES:
            if query.kind in rows or not query.least <= server.version_num < query.below:
                lacking.setdefault(query.kind, _of_version(query))
            elif query.whole and not server.sees_all:
                lacking[query.kind] = _SEES_ALL
            else:
                _put(query.kind, _rows(connection, query.kind, query.sql), rows, lacking)
        _statements(connection, server, rows, lacking)
        connection.execute("select /* dbdyno */ set_config('search_path', 'pg_catalog', true)")
        # Only the columns that the rule would name are planned, no other column of any table.
        wanted = candidates(Facts(title, "server", rows)) if {Table, Statement} <= rows.keys() else ()
        rows[HypotheticalIndex] = lookup_costs(connection, wanted)
    lacking[Estimate] = MissingEvidence(
        "plans of the server's log can be read only with snapshots",
        "set auto_explain.log_analyze = on, run `dbdyno snap plans --log FILE`, then `dbdyno advise snap:A..B`",
    )
    return Facts(title, "server", rows, {k: v for k, v in lacking.items() if k not in rows}, "since statistics began")


def _of_version(query: Query) -> MissingEvidence:
    words = f"available from PostgreSQL {query.least // 10000} on" if query.least else "not available in this version"
    return MissingEvidence(f"{PLACES[query.kind]}: {words}")


def _statements(
    connection: Connection, server: Server, rows: dict[type, Sequence[Any]], lacking: dict[type, MissingEvidence]
) -> None:
    """Read the statements if the extension is in this database and the role may see all of them."""
    if server.version_num < 130000:
        lacking[Statement] = MissingEvidence("statements can be read only from PostgreSQL 13 or newer")
        return
    if not server.sees_all:
        lacking[Statement] = _SEES_ALL
        return
    known = connection.execute(
        "select /* dbdyno */ n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
        " where e.extname = 'pg_stat_statements'"
    ).fetchone()
    if known is None:
        lacking[Statement] = MissingEvidence(
            "pg_stat_statements is not in this database",
            "add it to shared_preload_libraries, restart the server, and run `create extension "
            "pg_stat_statements` in this database",
        )
        return
    connection.execute(
        "select /* dbdyno */ set_config('search_path', 'pg_catalog, ' || quote_ident(%s), true)", [str(known[0])]
    )
    _put(Statement, _rows(connection, Statement, STATEMENTS), rows, lacking)


def _put(
    kind: type,
    read: tuple[list[Any], MissingEvidence | None],
    rows: dict[type, Sequence[Any]],
    lacking: dict[type, MissingEvidence],
) -> None:
    found, lack = read
    if lack is None:
        rows[kind] = found
    else:
        lacking[kind] = lack


def _rows(connection: Connection, kind: type, sql: LiteralString) -> tuple[list[Any], MissingEvidence | None]:
    """Return the rows of a query, or why there are none."""
    import psycopg

    try:
        with connection.transaction():
            cursor = connection.execute(_MARK + sql)
            names = [one.name for one in cursor.description or ()]
            return [evidence_row(kind, dict(zip(names, row, strict=True))) for row in cursor.fetchall()], None
    except psycopg.Error as error:
        if connection.broken:
            raise
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return [], MissingEvidence(f"{PLACES[kind]}: {said}", _STEPS.get(error.sqlstate or "", ""))


def evidence_row(kind: type, row: Mapping[str, Any]) -> Any:
    """Return a query row as a row of evidence: lists become tuples, decimals become numbers, secrets are removed."""
    names = {one.name for one in fields(kind)}
    if kind is Setting:
        row = {**row, "value": shown_value(row["name"], row["value"])}
    if kind is Statement:
        row = {**row, "text": sql_without_secrets(row["text"] or "")}
    return kind(**{name: _plain(value) for name, value in row.items() if name in names})


def _plain(value: Any) -> Any:
    from decimal import Decimal

    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
