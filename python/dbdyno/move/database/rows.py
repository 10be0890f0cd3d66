"""Rows of all tables, copied by the core's workers from the snapshot directly into the target's tables.

A chunk's rows and the record that they are complete commit together, so no kill can duplicate or lose a chunk. A table
that consists of one chunk is first truncated in the same transaction, and its rows are loaded frozen, so that vacuum
need not visit them again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql

from dbdyno import _core
from dbdyno.base.core_types import MoveChunk, MoveTransaction
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.mask_key import key_sql
from dbdyno.move.database.target import settings_sql
from dbdyno.move.engines.postgres.source import Snapshot, Table, copy_sql
from dbdyno.move.engines.postgres.staging import server_spec
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.reading.run import JobBuilder, JobOptions, Plan, Reading
from dbdyno.move.reading.splits import PIECE_BYTES_MOST, PIECES_PER_WORKER, Chunk

LEAST_BYTES = 32 << 20
UNLOGGED_SQL = """
select n.nspname::text, c.relname::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relpersistence = 'u'
"""
FROZEN_BYTES = 1 << 20
"""Minimum table size for replacing the table's empty file by a new one [bytes]."""
COUNTED_CHUNKS = 500
"""Maximum number of chunks for which sessions report their cost, because each report scans all locks of the server."""
NOTE = "insert into dbdyno_move.chunk values ({number}, {{rows}}, {{bytes}}, '{{hash}}')"
"""Statement that records a completed chunk; the core fills in the parts in braces."""


def piece_bytes(tables: Sequence[int], options: JobOptions) -> int:
    """Return the size of a chunk; small tables are one chunk each, because only then can rows be loaded frozen.

    Args:
        tables: Sizes of the tables [bytes].
        options: Number of workers.
    """
    return min(max(sum(tables) // (options.workers * PIECES_PER_WORKER), LEAST_BYTES), PIECE_BYTES_MOST)


def table_for_transfer(table: Table) -> Table:
    """Return a table with its columns in the form in which they are sent to a table of the same definition.

    For most types, COPY's binary form means the same on all servers; for an enum it is the label. If a column has a
    type whose binary form may hold object ids (a composite, an array of enums, a type of an extension), all columns of
    the table are marked to be sent as lines of COPY's text form, as pg_dump writes them.
    """
    as_lines = any(not one.wire and one.cast for one in table.columns)
    return replace(table, columns=tuple(replace(one, kind="text", cast=as_lines) for one in table.columns))


def is_sent_as_text(table: Table) -> bool:
    """Return True if the rows of a table are transferred as lines of text."""
    return any(one.cast for one in table.columns)


def read_sql(conn: psycopg.Connection[Any], tables: Sequence[Table], chunk: Chunk) -> str:
    """Return the COPY statement that reads a chunk in the format in which its table is transferred."""
    table = tables[chunk.table]
    # A cast may be defined by the user; COPY without a cast uses the type's own form.
    plain = replace(table, columns=tuple(replace(one, cast=False) for one in table.columns))
    return copy_sql(conn, [plain], replace(chunk, table=0), "text" if is_sent_as_text(table) else "binary")


def encoding_of(here: str, there: str) -> str:
    """Return the encoding of transferred rows: that of both databases if equal (no conversion), else UTF-8."""
    return here if here == there else "UTF8"


def job_builder(target: Postgres, conn: psycopg.Connection[Any], encoding: str) -> JobBuilder:
    """Return a function that builds the core's job for some chunks, with rows in this encoding."""

    def make(reading: Reading) -> _core.MoveJob:
        plan, chunks, source = reading.plan, reading.chunks, reading.snapshot.conn
        spec = reading.spec(chunks_of(conn, reading.snapshot, plan, chunks))
        masks = key_sql(conn, plan, reading.options.mask_key)
        return _core.MoveJob(
            {
                **spec,
                "session_sql": [*spec["session_sql"], settings_sql(source, encoding, source=True), *masks],
                "target": server_spec(target, conn, plan.id, settings_sql(conn, encoding)),
                "cost_sql": spec["cost_sql"] if len(chunks) <= COUNTED_CHUNKS else None,
            }
        )

    return make


def without_masks(tables: Sequence[Table]) -> list[Table]:
    """Return the tables for reading at the target, where their values are already masked."""
    return [replace(one, columns=tuple(replace(column, mask="") for column in one.columns)) for one in tables]


def chunks_of(
    conn: psycopg.Connection[Any], snapshot: Snapshot, plan: Plan, chunks: Sequence[Chunk]
) -> list[MoveChunk]:
    """Return the core's chunks, the largest first, so that no worker starts a large chunk at the end."""
    counts: dict[int, int] = {}
    for one in plan.chunks:
        counts[one.table] = counts.get(one.table, 0) + 1
    return [
        {
            "number": chunk.number,
            "table": chunk.table,
            "sql": read_sql(snapshot.conn, plan.tables, chunk),
            "path": None,
            "raw": True,
            "lines": is_sent_as_text(plan.tables[chunk.table]),
            "into": _copy(conn, plan.tables[chunk.table], frozen=_is_frozen(plan.tables[chunk.table], counts, chunk)),
            "around": _statements_around(
                conn, chunk, plan.tables[chunk.table], emptied=_is_frozen(plan.tables[chunk.table], counts, chunk)
            ),
        }
        for chunk in sorted(chunks, key=lambda one: -one.bytes)
    ]


def _is_frozen(table: Table, counts: dict[int, int], chunk: Chunk) -> bool:
    return counts[chunk.table] == 1 and chunk.bytes >= FROZEN_BYTES and table.kind == "table"


def _copy(conn: psycopg.Connection[Any], table: Table, *, frozen: bool) -> str:
    place = sql.Identifier(table.schema, table.name)
    names = sql.SQL(", ").join(sql.Identifier(one.name) for one in table.columns)
    # A table may have no columns, or only generated ones.
    columns = sql.SQL(" ({})").format(names) if table.columns else sql.SQL("")
    form = "text" if is_sent_as_text(table) else "binary"
    how = sql.SQL(f"format {form}, freeze" if frozen else f"format {form}")
    return sql.SQL("copy {}{} from stdin ({})").format(place, columns, how).as_string(conn)


def _statements_around(conn: psycopg.Connection[Any], chunk: Chunk, table: Table, *, emptied: bool) -> MoveTransaction:
    place = sql.Identifier(table.schema, table.name)
    empty = [sql.SQL("truncate only {}").format(place).as_string(conn)] if emptied else []
    note = NOTE.format(number=chunk.number)
    return {"before": ["begin", *empty], "after": [note, "commit"]}


def reconcile(conn: psycopg.Connection[Any], ledger: Ledger) -> int:
    """Update the ledger from the target's record of chunks, and return how many chunks the target lacks.

    A kill may occur between the target's commit and the ledger's record, and a crash of the target may undo commits
    that were recorded, so the target's record is authoritative.
    """
    for number in _emptied_chunks(conn, ledger):
        conn.execute("delete from dbdyno_move.chunk where number = %s", [number])
    rows = {row[0]: row[1:] for row in conn.execute("select number, rows, bytes, hash from dbdyno_move.chunk")}
    known = ledger.records()
    for number in known.keys() - rows.keys():
        ledger.forget_chunk(number)
    for number in rows.keys() - known.keys():
        count, size, summed = rows[number]
        record = {"number": number, "rows": count, "copy_bytes": size, "file_bytes": 0, "hash": summed, "file": ""}
        record |= {"snapshot": len(ledger.manifest["snapshots"]) - 1, "ended_ns": time.time_ns(), "elapsed_ns": 0}
        ledger.record({**record, "worker": 0, "process": 0, "cost": None, "refused": [], "parts": []})
    return len(ledger.plan["chunks"]) - len(rows)


def _emptied_chunks(conn: psycopg.Connection[Any], ledger: Ledger) -> list[int]:
    """Return the chunks of unlogged tables that were emptied by a crash of the target."""
    noted = {row[0] for row in conn.execute("select number from dbdyno_move.chunk where rows > 0")}
    unlogged = {(row[0], row[1]) for row in conn.execute(UNLOGGED_SQL)}
    found = []
    for place, table in enumerate(ledger.plan["tables"]):
        name = table["schema"], table["name"]
        if name in unlogged:
            any_row = sql.SQL("select exists (select from only {})").format(sql.Identifier(*name))
            if conn.execute(any_row).fetchone() == (False,):
                found += [one["number"] for one in ledger.plan["chunks"] if one["table"] == place]
    return [number for number in found if number in noted]
