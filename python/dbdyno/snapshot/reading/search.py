"""Search in a server's last snapshot: statements, tables, indexes and settings."""

from __future__ import annotations

import contextlib

from dbdyno.base.errors import Error
from dbdyno.base.sections import Row
from dbdyno.base.sql_text import quoted
from dbdyno.evidence.memory import file_connection
from dbdyno.snapshot.reading.changed_settings import SETTINGS
from dbdyno.snapshot.reading.statement_texts import KEYS
from dbdyno.snapshot.store.folder import Snapshot

OBJECTS = {
    "table": ("pg_stat_user_tables", "schemaname || '.' || relname"),
    "index": ("pg_stat_user_indexes", "schemaname || '.' || indexrelname"),
}


def search(last: Snapshot, words: str, top: int) -> list[Row]:
    """Return the matches that contain all words, by kind, at most `top` of each kind.

    A row has `kind` (statement, table, index, setting), `name` (a statement's identifier) and `text`.
    """
    views = {"statement": ("statement_texts", f"{quoted(KEYS[last.engine])}::varchar", "query")}
    views |= {kind: (view, name, "datname") for kind, (view, name) in OBJECTS.items()}
    settings = next(((view, "name", value) for view, value in SETTINGS.items() if view in last.views), None)
    views |= {"setting": settings} if settings else {}
    found: list[Row] = []
    for kind, (view, name, text) in views.items():
        with contextlib.suppress(Error):
            found += _inside(last, kind, (view, name, text), words.lower().split(), top)
    return found


def _inside(last: Snapshot, kind: str, where: tuple[str, str, str], words: list[str], top: int) -> list[Row]:
    """Return the rows of a view whose name and text together contain all words.

    Raises:
        EvidenceError: A file of the snapshot is not a regular file.
    """
    from dbdyno.evidence.duck import duckdb

    view, name, text = where
    source = last.relation(view)
    if source is None or not words:
        return []
    given = f"select distinct {name} as name, coalesce({text}::varchar, '') as text from {source}"
    kept = " and ".join(f"contains(lower(name || ' ' || text), ${at})" for at in range(1, len(words) + 1))
    sql = f"select name, text from ({given}) where {kept} order by length(name || text), name limit {int(top)}"
    try:
        with file_connection(in_order=True) as connection:
            rows = connection.execute(sql, words).fetchall()
    except duckdb.Error:  # a damaged file, or a column that this engine does not have
        return []
    return [{"kind": kind, "name": one, "text": words_of} for one, words_of in rows]
