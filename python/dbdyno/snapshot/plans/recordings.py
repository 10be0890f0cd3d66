"""Executions in a run of `dbdyno trace record`, stored in the same tables as logged ones: complete, but without plans.

    with GatheredExecutions() as gathered:
        file = read_run(Path("runs/now"), gathered, 0)

A duration is that of the call: from the client's message to the next, including the commit if the call made one. A
statement is identified by its queryid if the server computes one, otherwise by its text.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from dbdyno.base.errors import EvidenceError, SnapshotError
from dbdyno.evidence.run import Run
from dbdyno.evidence.trace_tables import KIND, create_views
from dbdyno.snapshot.engines.postgres.texts import fingerprint
from dbdyno.snapshot.plans.latency import FORM, RECORDED
from dbdyno.snapshot.plans.reader import LogFile, is_ignored
from dbdyno.snapshot.plans.values import mask_statement

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from dbdyno.snapshot.plans.executions import GatheredExecutions

_FORMAT = "postgresql"
_CALLS = "recorded.calls where kind = 'exec' and depth = 0 and statement is not null"
_IDENTIFIER = r"-?\d+"


def read_run(
    path: Path, gathered: GatheredExecutions, number: int, *, since_us: int | None = None, until_us: int | None = None
) -> LogFile:
    """Read a recording into rows, with `number` as its number among the sources gathered.

    Raises:
        SnapshotError: The path is not a recording of a PostgreSQL server, or is damaged.
    """
    try:
        run = Run.open(path)
        manifest = (run.path / "manifest.json").read_bytes()
        is_recording = run.manifest.kind == KIND and str(run.manifest.to_json().get("format")).startswith(_FORMAT)
    except EvidenceError as error:
        raise SnapshotError(error.message, where=error.where, next_step=error.next_step) from error
    if not is_recording:
        raise SnapshotError(
            "is not a recording of a PostgreSQL server",
            where=str(path),
            next_step="make one with `dbdyno trace record --target DSN --exact --out RUN`",
        )
    if run.manifest.to_json().get("options", {}).get("mode") == "read":
        raise SnapshotError(
            "was recorded by reading the server's memory, which cannot distinguish short executions",
            where=str(path),
            next_step="make one with `dbdyno trace record --target DSN --exact --out RUN`",
        )
    file = LogFile(path.name, FORM, hashlib.blake2b(manifest, digest_size=12).hexdigest(), bytes=_size(run.path))
    file.lost += [f"{path.name}: {one}" for one in run.manifest.to_json().get("warnings") or () if " lost " in str(one)]
    connection = gathered.connection
    connection.execute("create schema recorded")
    try:
        for words in create_views(connection, run, "recorded"):
            file.unread.add("a part is incomplete", words)
        _texts(connection, gathered)
        low, high = since_us or 0, (1 << 62) if until_us is None else until_us
        found = connection.execute(
            f"""insert into log_executions by name
              select {number} as file, c.call as line, (c.started_ns + c.elapsed_ns) // 1000 as at_us, n.queryid,
                n.fingerprint, round(c.elapsed_ns / 1000)::bigint as duration_us, '{RECORDED}' as source,
                false as nested
              from (select * from {_CALLS}) c join recorded.names n using (statement)
              where at_us between {low} and {high}""",
        ).fetchone()
        file.executions = int(found[0]) if found else 0
        if file.executions:
            span = connection.execute(f"select min(at_us), max(at_us) from log_executions where file = {number}")
            file.from_us, file.to_us = span.fetchone() or (None, None)
    finally:
        connection.execute("drop schema recorded cascade")
    gathered.flush()
    return file


def _texts(connection: duckdb.DuckDBPyConnection, gathered: GatheredExecutions) -> None:
    """Create `recorded.names`: the statements that are not ignored, with their identifiers and fingerprints."""
    rows = connection.execute(
        f"""select statement, any_value(text) from recorded.statements
          where statement in (select statement from {_CALLS}) group by 1"""
    )
    names: list[tuple[str, str]] = []
    while some := rows.fetchmany(10_000):
        for statement, text in some:
            words = str(text or "")
            if is_ignored(words):
                continue
            known = fingerprint(words) if words else ""
            names.append((statement, known))
            if words:
                gathered.add_text(known, mask_statement(words))
    connection.execute(
        f"""create table recorded.names as select statement, fingerprint,
          case when regexp_full_match(statement, '{_IDENTIFIER}') then try_cast(statement as bigint) end as queryid
        from (select unnest($1::varchar[]) as statement, unnest($2::varchar[]) as fingerprint)""",
        [[one for one, _ in names], [one for _, one in names]],
    )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))
