"""Evidence of a live MariaDB, read-only: one session, with timeouts for every statement and lock.

If a query fails, only its kind of evidence is missing, with the server's message as the reason.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.engines.mariadb.queries import (
    BEHIND_KEYS,
    DATA_FILES,
    INDEX_SIZES,
    INDEX_USE,
    QUERIES,
    TABLE_SIZES,
    TABLES_TIMED,
    Query,
)
from dbdyno.advise.engines.postgres.read import APPLICATION_NAME, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, evidence_row
from dbdyno.advise.facts import Facts, MissingEvidence
from dbdyno.advise.kinds import PLACES, Column, Database, Index, Key, Server, Session, Setting, Table
from dbdyno.advise.placement import Segment
from dbdyno.base.dsn import sql_without_secrets
from dbdyno.base.json_types import TableRow

_ELSEWHERE = MissingEvidence("MariaDB has no such evidence")
_OFF = MissingEvidence(
    "performance_schema is off", "set performance_schema = ON in the server's configuration, and restart the server"
)
_ROW = TableRow


def read(dsn: str) -> Facts:
    """Return the evidence of the server with this connection string.

    Raises:
        TargetError: the server does not answer.
    """
    from dbdyno.bench.mariadb.server import MariaDB, shown_value

    target = MariaDB.open(dsn)
    with contextlib.closing(target.connect(name=APPLICATION_NAME)) as connection:
        _guard(connection)
        server = _server(connection)
        values = {str(one["Variable_name"]).lower(): str(one["Value"]) for one in _query(connection, _STATUS)}
        rows: dict[type, list[Any]] = {Server: [server], Status: [_status(values)]}
        rows[Setting] = [
            Setting(name.lower(), shown_value(name, str(one["Value"])))
            for one in _query(connection, "show global variables")
            for name in [str(one["Variable_name"])]
        ]
        lacking = {kind: _ELSEWHERE for kind in PLACES if kind not in rows}
        timed = _instruments(connection)
        for query in QUERIES:
            found = _rows(connection, query, timed)
            if isinstance(found, MissingEvidence):
                lacking[query.kind] = found
            else:
                rows[query.kind] = found
                del lacking[query.kind]
    _time_reads(rows)
    return Facts(target.safe_dsn, "server", rows, lacking, "since the server started")


def _time_reads(rows: dict[type, list[Any]]) -> None:
    """Copy the reads of data files and their time into the single database row that represents all schemas."""
    files = next((one for one in rows.get(FileIo, ()) if one.event == DATA_FILES), None)
    if files is not None and Database in rows:
        rows[Database] = [replace(one, reads=files.reads, read_ms=files.read_ms) for one in rows[Database]]


_STATUS = "show global status"


def _guard(connection: Any) -> None:
    """Set the session's timeouts, and exclude it from performance_schema if permitted."""
    from dbdyno.bench.mariadb.address import driver

    with contextlib.suppress(driver().Error):
        _query(
            connection,
            "update performance_schema.threads set instrumented = 'NO' where processlist_id = connection_id()",
        )
    lock_s = max(1, LOCK_TIMEOUT_MS // 1000)
    _query(
        connection,
        f"set session max_statement_time = {STATEMENT_TIMEOUT_MS / 1000}, lock_wait_timeout = {lock_s},"
        f" innodb_lock_wait_timeout = {lock_s}, tx_read_only = 1, group_concat_max_len = 100000",
    )


def _server(connection: Any) -> Server:
    (row,) = _query(
        connection,
        "select @@version as version, @@version_compile_machine as platform, @@read_only as standby,"
        " cast(unix_timestamp(now(6)) * 1000000 as unsigned) as at_us, current_user() as role, @@datadir as data",
    )
    text = str(row["version"])
    service = "Amazon RDS" if str(row["data"]).startswith("/rdsdbdata/") else ""
    return Server(
        "mariadb",
        text,
        version_number(text),
        bool(int(row["standby"])),
        str(row["platform"]),
        at_us=int(row["at_us"]),
        role=str(row["role"]),
        service=service,
    )


def version_number(text: str) -> int:
    """Return a version as a number: 10.11.6-MariaDB is 101106; 0 if it is not a version."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return sum(int(part) * 100**place for place, part in enumerate(reversed(found.groups()))) if found else 0


def _status(values: Mapping[str, str]) -> Status:
    numbers = {name: int(value) for name, value in values.items() if re.fullmatch(r"-?\d+", value)}
    return Status(numbers, float(numbers.get("uptime_since_flush_status") or numbers.get("uptime") or 0))


def _instruments(connection: Any) -> frozenset[str] | MissingEvidence:
    """Return the names of the instruments that are enabled and timed, or why they are not known."""
    from dbdyno.bench.mariadb.address import driver, error_text

    try:
        if not int(_query(connection, "select @@performance_schema as it")[0]["it"]):
            return _OFF
        known = _query(
            connection,
            "select name from performance_schema.setup_instruments where enabled = 'YES' and timed = 'YES'",
        )
    except driver().Error as error:
        return MissingEvidence(
            f"performance_schema: {error_text(error)}", "grant select on performance_schema.* to the user"
        )
    return frozenset(str(one["name"]) for one in known)


def _rows(connection: Any, query: Query, timed: frozenset[str] | MissingEvidence) -> list[Any] | MissingEvidence:
    """Return the rows of one kind of evidence, or the reason why there are none."""
    from dbdyno.bench.mariadb.address import driver, error_text

    if query.accounted and isinstance(timed, MissingEvidence):
        return timed
    if query.instrument and query.instrument not in timed:  # type: ignore[operator]
        return MissingEvidence(
            f"the instrument {query.instrument} is off",
            "switch the instrument on in performance_schema.setup_instruments",
        )
    try:
        found = [_plain(row) for row in _query(connection, query.sql)]
        if query.kind is Index:
            _add(found, _INDEX, _optional(connection, INDEX_SIZES), ("bytes",))
            counted = not isinstance(timed, MissingEvidence) and TABLES_TIMED in timed
            _add(found, _INDEX, _optional(connection, INDEX_USE) if counted else [], ("scans",))
            keys = {(*(row[name] for name in _TABLE), row["column_name"]) for row in _query(connection, BEHIND_KEYS)}
            for row in found:
                first = str(row["columns_used"]).partition("\n")[0]
                row["behind_key"] = (*(row[name] for name in _TABLE), first) in keys
        if query.kind is Table:
            _add(found, _TABLE, _optional(connection, TABLE_SIZES), ("n_rows", "pages"))
    except driver().Error as error:
        return MissingEvidence(
            f"{PLACES[query.kind]}: {error_text(error)}", "grant PROCESS, and SELECT on this view, to the user"
        )
    shape = _SHAPES.get(query.kind)
    return [evidence_row(query.kind, shape(row) if shape else row) for row in found]


def _optional(connection: Any, sql: str) -> list[_ROW]:
    """Return the rows of a query that needs a privilege; none if this user lacks the privilege."""
    from dbdyno.bench.mariadb.address import driver

    try:
        return [_plain(row) for row in _query(connection, sql)]
    except driver().Error:
        return []


_TABLE = ("table_schema", "table_name")
_INDEX = (*_TABLE, "index_name")


def _add(rows: list[_ROW], by: tuple[str, ...], more: list[_ROW], names: tuple[str, ...]) -> None:
    """Add columns from other rows about the same object; their values are None if there is no such row."""
    known = {tuple(one[name] for name in by): one for one in more}
    for row in rows:
        found = known.get(tuple(row[name] for name in by), {})
        row.update({name: found.get(name) for name in names})


def _query(connection: Any, sql: str) -> list[_ROW]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [one[0] for one in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _plain(row: _ROW) -> _ROW:
    return {
        name: (int(value) if value == value.to_integral_value() else float(value))
        if isinstance(value, Decimal)
        else value
        for name, value in row.items()
    }


def quote(*names: str) -> str:
    """Return names as written in a statement: `shop.orders`, in backquotes if necessary."""
    return ".".join(one if re.fullmatch(r"[A-Za-z_]\w*", one) else "`" + one.replace("`", "``") + "`" for one in names)


def _table(row: _ROW) -> _ROW:
    name = quote(row["table_schema"], row["table_name"])
    return {**row, "name": name, "rows": row["n_rows"] or 0, "dead": 0, "modified": 0, "seq_scans": 0}


def _index(row: _ROW) -> _ROW:
    return {
        "name": quote(row["index_name"]),
        "table": quote(row["table_schema"], row["table_name"]),
        "columns": tuple(str(row["columns_used"]).split("\n")),
        "rest": str(row["method"]),
        "bytes": row["bytes"] or 0,
        "scans": row["scans"],
        "is_unique": bool(row["is_unique"]),
        # The use of full-text and spatial indexes is not counted.
        "is_constraint": row["index_name"] == "PRIMARY"
        or row["behind_key"]
        or row["method"] in ("fulltext", "spatial"),
        "is_valid": True,
        "method": str(row["method"]),
    }


def _segment(row: _ROW) -> _ROW:
    return {**row, "name": quote(row["table_schema"], row["table_name"])}


def _column(row: _ROW) -> _ROW:
    return {**row, "table": quote(row["db_name"], row["table_name"]), "name": row["column_name"]}


def _key(row: _ROW) -> _ROW:
    table = quote(row["table_schema"], row["table_name"])
    most = int(row["most"])
    column = f"{table}.{quote(row['column_name'])}"
    return {"sequence": table, "column": column, "last": int(row["last"]), "sequence_most": most, "column_most": most}


def _session(row: _ROW) -> _ROW:
    blockers = tuple(int(one) for one in str(row["blocked_by"] or "").split(",") if one)
    row = {**row, "blocked_by": blockers, "xmin_age": None, "application": row["application"] or ""}
    return {**row, **{name: float(row[name]) for name in ("transaction_s", "state_s", "waited_s")}}


def _digest(row: _ROW) -> _ROW:
    return {**row, "text": sql_without_secrets(row["text"])}


_SHAPES: dict[type, Callable[[_ROW], _ROW]] = {
    Table: _table,
    Index: _index,
    Segment: _segment,
    Column: _column,
    Key: _key,
    Session: _session,
    Digest: _digest,
}
