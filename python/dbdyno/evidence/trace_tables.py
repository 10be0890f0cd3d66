"""The tables of an imported trace as DuckDB views.

    RUN/calls/*.parquet  RUN/waits/*.parquet  RUN/links/*.parquet  RUN/statements.parquet ...

Every table of `TABLES` exists as a view, empty if the trace had no rows for it, so a query needs no special case for a
trace without waits, plans or errors. A row whose parent was found only after the row had been written gets its parent
from `links`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.errors import EvidenceError
from dbdyno.base.sql_text import literal

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from dbdyno.evidence.run import Run

KIND = "trace"

TABLES = {
    "calls": "arm varchar, block uinteger, session uinteger, call bigint, kind varchar,"
    " statement varchar, started_ns bigint, elapsed_ns bigint, cpu_ns bigint, rows bigint,"
    " physical_reads bigint, consistent_reads bigint, current_reads bigint, misses utinyint,"
    " depth utinyint, parent bigint, self_elapsed_ns bigint, self_cpu_ns bigint,"
    " self_wait_ns bigint, self_physical_reads bigint, self_consistent_reads bigint,"
    " self_current_reads bigint, orphan boolean, plan_hash bigint, goal utinyint,"
    " close_type utinyint, lob_bytes bigint, lob_type varchar, cursor ubigint, user_id bigint,"
    " context uinteger, file uinteger, line bigint, byte_offset bigint, tim bigint",
    "waits": "arm varchar, block uinteger, session uinteger, wait bigint, event varchar,"
    " class varchar, started_ns bigint, elapsed_ns bigint, p1 bigint, p2 bigint, p3 bigint,"
    " parameters varchar, object_id bigint, statement varchar, call bigint, depth utinyint,"
    " think boolean, cursor ubigint, context uinteger, file uinteger, line bigint,"
    " byte_offset bigint, tim bigint, fidelity varchar",
    "links": "row_kind varchar, id bigint, parent bigint",
    "statements": "statement varchar, sqlid varchar, hash_value bigint, text varchar,"
    " length bigint, command bigint, user_id bigint, login_id bigint, depth utinyint,"
    " first_file uinteger, first_line bigint, force_match varchar, force_key varchar",
    "cursors": "file uinteger, line bigint, byte_offset bigint, session uinteger, cursor ubigint,"
    " statement varchar, length bigint, depth utinyint, user_id bigint, login_id bigint,"
    " command bigint, hash_value bigint, address varchar, sqlid varchar, tim bigint, error bigint",
    "plans": "file uinteger, line bigint, session uinteger, cursor ubigint, statement varchar,"
    " plan_hash bigint, id bigint, rows bigint, parent bigint, position bigint, object_id bigint,"
    " operation varchar, cr bigint, pr bigint, pw bigint, starts bigint, time_us bigint,"
    " cost bigint, size bigint, card bigint, dr bigint, dw bigint, partition varchar, text"
    " varchar, byte_offset bigint",
    "errors": "file uinteger, line bigint, session uinteger, cursor ubigint, statement varchar,"
    " error bigint, tim bigint, started_ns bigint, call bigint, byte_offset bigint",
    "transactions": "file uinteger, line bigint, session uinteger, rollback boolean,"
    " read_only boolean, tim bigint, started_ns bigint, byte_offset bigint",
    "contexts": "context uinteger, session_id varchar, client_id varchar, service varchar,"
    " module varchar, action varchar, driver varchar, container varchar, client_ip varchar,"
    " connection varchar, file uinteger",
    "sessions": "session uinteger, file uinteger, name varchar, process varchar, host varchar,"
    " instance varchar, first_tim bigint, last_tim bigint, started_ns bigint, elapsed_ns bigint,"
    " calls bigint, waits bigint, call_ns bigint, between_ns bigint, unexplained_ns bigint,"
    " cpu_ns bigint, wait_inside_ns bigint, unaccounted_ns bigint, orphans bigint, segments bigint",
    "stamps": "file uinteger, line bigint, kind varchar, value varchar, wall_ns bigint,"
    " zone_min bigint, digits utinyint, container varchar, tim_next bigint, residual_ns"
    " bigint, byte_offset bigint, session uinteger",
    "binds": "file uinteger, line bigint, cursor ubigint, number bigint, data_type bigint,"
    " length bigint, value varchar, head varchar, byte_offset bigint",
    "files": "file uinteger, path varchar, bytes bigint, lines bigint, records bigint,"
    " version varchar, level utinyint, unit_ns bigint, header varchar",
    "client_calls": "session uinteger, call bigint, sent_bytes bigint, received_bytes bigint, first_answer_ns bigint",
    "wire": "session uinteger, tim bigint, side varchar, tag varchar, length bigint, body varchar",
    "looks": "started_ns bigint, elapsed_ns bigint, period_ns bigint, looks bigint, longest_ns bigint,"
    " gaps bigint, gap_ns bigint, cpu_ns bigint",
    "unread": "file uinteger, line bigint, byte_offset bigint, length bigint, reason varchar, sample varchar",
}
"""Columns of each table and their DuckDB types."""
LINKED = {
    "calls": (
        "select c.* replace (coalesce(c.parent, l.parent) as parent,"
        " c.depth > 0 and coalesce(c.parent, l.parent) is null as orphan)"
        " from {rows} c left join (select id, parent from {links} where row_kind = 'call') l"
        " on l.id = c.call"
    ),
    "waits": (
        "select w.* replace (coalesce(w.call, l.parent) as call)"
        " from {rows} w left join (select id, parent from {links} where row_kind = 'wait') l"
        " on l.id = w.wait"
    ),
}
"""SQL for each table, which fills in the parents that were found after a row had been written."""


def require_complete(run: Run) -> None:
    """Raise an error for an incomplete import, because every answer from it would cover only a part of the traces.

    Raises:
        EvidenceError: the import is not complete.
    """
    if run.manifest.status == "complete":
        return
    raise EvidenceError(
        "is an import that did not finish: part of the traces is missing",
        where=str(run.path),
        next_step=f"import the files again with `dbdyno trace import FILES --out {run.path} --force`",
    )


def create_views(connection: duckdb.DuckDBPyConnection, run: Run, schema: str = "main") -> list[str]:
    """Create a view for each table of the run, and return a sentence for each part left out.

    Raises:
        EvidenceError: the import is not complete.
    """
    require_complete(run)
    parts = {table: _parts(run.path, table) for table in TABLES}
    torn = torn_parts(connection, [path.resolve() for paths in parts.values() for path in paths])
    rows = {
        table: _source(table, [one for one in paths if one.resolve() not in torn]) for table, paths in parts.items()
    }
    links = rows["links"]
    has_links = bool(connection.execute(f"select 1 from {links} limit 1").fetchone())  # noqa: S608
    for table, source in rows.items():
        text = f"select * from {source}"  # noqa: S608
        if has_links and table in LINKED:
            text = LINKED[table].format(rows=source, links=links)
        connection.execute(f"create view {schema}.{table} as {text}")
    broken = [path for paths in parts.values() for path in paths if path.resolve() in torn]
    return [f"{path}: not a whole Parquet part: {torn[path.resolve()]}" for path in broken]


def torn_parts(probe: duckdb.DuckDBPyConnection, parts: list[Path]) -> dict[Path, str]:
    """Return the parts that cannot be read, with the reason for each.

    All parts are tried in one query, also those of different tables; each is tried on its own only if that fails.
    """
    import duckdb

    count = "select count(*) from read_parquet(?)"
    try:
        if parts:
            probe.execute(count, [list(map(str, parts))])
    except duckdb.Error as error:
        if len(parts) == 1:
            return {parts[0]: str(error).splitlines()[0]}
        return {path: words for part in parts for path, words in torn_parts(probe, [part]).items()}
    return {}


def _parts(folder: Path, table: str) -> list[Path]:
    found = (*sorted((folder / table).glob("*.parquet")), folder / f"{table}.parquet")
    return [path for path in found if path.is_file()]


def _source(table: str, parts: list[Path]) -> str:
    """Return the SQL source of a table: its readable parts, or an empty relation with the right columns."""
    if parts:
        return f"read_parquet([{', '.join(literal(str(path.resolve())) for path in parts)}])"
    columns = (column.split() for column in TABLES[table].split(", "))
    empty = ", ".join(f"null::{type_} as {name}" for name, type_ in columns)
    return f"(select {empty} where false)"
