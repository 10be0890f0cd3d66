"""Settings of a database or role (`ALTER DATABASE ... SET`), which a copy of the database does not have."""

from __future__ import annotations

import contextlib

from psycopg import sql

from dbdyno.bench.postgres.server import Postgres

_OF_DATABASE = """select name, current_setting(name) from pg_settings
where source in ('database', 'database user') and context in ('user', 'superuser') order by name"""
_PATH = """select coalesce(string_agg(case when n = '"$user"' then quote_ident(current_user) else n end, ', '
  order by at), '') from regexp_split_to_table(current_setting('search_path'), ',\\s*') with ordinality as p(n, at)"""


def database_settings(server: Postgres) -> tuple[str, ...]:
    """Return statements that apply the database's settings from ALTER DATABASE to a transaction."""
    with contextlib.closing(server.connect()) as conn:
        rows = conn.execute(_OF_DATABASE).fetchall()
        made = sql.SQL("select set_config({}, {}, true)")
        return tuple(made.format(*map(sql.Literal, row)).as_string(conn) for row in rows)


def search_path(server: Postgres) -> str:
    """Return a session's search path with the name of its role in place of `"$user"`."""
    with contextlib.closing(server.connect()) as conn:
        (found,) = conn.execute(_PATH).fetchone() or ("",)
    return str(found)
