"""Texts of statements that watchpoints could not read in time, read from pg_stat_statements at the end.

A statement that has ended, and was followed by another before the recorder looked at its session, is known only by its
query id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

_WHERE = """
select n.nspname from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_stat_statements'
"""
_TEXTS = """
select queryid::text, max(query) from {}.pg_stat_statements
where queryid = any(%s::bigint[]) and query is not null and query <> '<insufficient privilege>' group by 1
"""
_MOST = 4096
"""Maximum length of a text, the same as for texts that the recorder reads."""


def texts_of(dsn: str, ids: Sequence[str]) -> dict[str, str]:
    """Return texts by query id, without literals; empty if the extension is missing or may not be read."""
    import psycopg
    from psycopg import sql

    from dbdyno import _core
    from dbdyno.trace.record.process import QUERY_OPTIONS

    with (
        contextlib.suppress(psycopg.Error),
        contextlib.closing(
            psycopg.connect(dsn, connect_timeout=10, options=QUERY_OPTIONS, application_name="dbdyno", autocommit=True)
        ) as connection,
    ):
        schema = connection.execute(_WHERE).fetchone()
        if schema is not None:
            asked = sql.SQL(_TEXTS).format(sql.Identifier(schema[0]))
            rows = connection.execute(asked, [list(ids)]).fetchall()
            # The extension does not remove literals from utility statements.
            return {key: _core.without_literals(text[:_MOST]) for key, text in rows}
    return {}


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the texts into the statements of a recorded run."""
    from dbdyno.evidence.memory import file_connection

    path = folder / "statements.parquet"
    aside = folder / "statements.parquet.part"
    with contextlib.closing(file_connection()) as connection:
        connection.execute(
            "create temp table told as select unnest(?::varchar[]) as key, unnest(?::varchar[]) as text",
            [list(texts), list(texts.values())],
        )
        connection.execute(
            "create temp table statements as select s.* replace (coalesce(t.text, s.text) as text,"
            " coalesce(length(t.text), s.length) as length)"
            " from read_parquet(?) s left join told t on t.key = s.statement",
            [str(path)],
        )
        connection.execute(f"copy statements to {_quote(aside)} (format parquet, compression zstd)")
    aside.replace(path)


def _quote(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
