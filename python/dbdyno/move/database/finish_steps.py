"""Last steps: values of sequences, privileges, optimizer statistics, and the transaction that ends the job.

Statistics are transferred if the target supports it (PostgreSQL 18 and its pg_dump). Otherwise tables are analysed
three times with growing statistics targets, so that all tables soon have rough statistics before any has exact ones.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from dbdyno.bench.postgres.binaries import Binaries
from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.archive import Entry
from dbdyno.move.database.inventory import Sequence as Counter
from dbdyno.move.database.programs import dump
from dbdyno.move.database.schema import Restorer
from dbdyno.move.database.target import MARK, session
from dbdyno.move.engines.postgres.source import application_name
from dbdyno.move.ledger.folder import Ledger
from dbdyno.move.loading.staged_rows import note_transaction

STATISTICS_SINCE = 18
STAGES = ("1", "10", "default")
"""Statistics targets of consecutive rounds of ANALYZE."""
ROOTS_SQL = f"""
select n.nspname::text, c.relname::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where (c.relkind in ('r', 'm') or c.relkind = 'p') and not c.relispartition and c.relpersistence <> 't'
  and n.nspname !~ '^pg_' and n.nspname not in ('information_schema', '{MARK}')
order by pg_table_size(c.oid) desc
"""  # noqa: S608
WITHOUT_STATISTICS_SQL = f"""
select n.nspname::text, c.relname::text from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm', 'p') and c.relpersistence <> 't' and n.nspname !~ '^pg_'
  and n.nspname not in ('information_schema', '{MARK}')
  and (exists (select from pg_catalog.pg_statistic_ext x where x.stxrelid = c.oid)
       or c.relkind <> 'p' and pg_relation_size(c.oid) > 0
       and not exists (select from pg_catalog.pg_stats s where s.schemaname = n.nspname and s.tablename = c.relname)
       and exists (select from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0))
"""  # noqa: S608
"""Tables without transferred statistics: those with extended statistics, and those never analysed in the source.

Every role may read pg_stats; a table whose statistics it hides from this role counts as never analysed.
"""


def set_sequences(conn: psycopg.Connection[Any], sequences: Sequence[Counter]) -> None:
    """Set all sequences to the source's values."""
    with conn.transaction():
        for one in sequences:
            name = sql.Identifier(one.schema, one.name).as_string(conn)
            conn.execute("select setval(%s::regclass, %s, %s)", [name, one.value, one.called])


def grant_all(conn: psycopg.Connection[Any], entries: Sequence[Entry]) -> None:
    """Restore all privileges in one transaction; privileges of missing roles are noted.

    Raises:
        MoveError: The server refuses a privilege for another reason.
    """
    restorer = Restorer.for_session(conn)
    with conn.transaction():
        # Notes of an interrupted attempt are written again.
        conn.execute("delete from dbdyno_move.note where kind in ('grant', 'not granted')")
        for one in entries:
            restorer.grant(one)
        restorer.write_notes()


def can_transfer_statistics(programs: Binaries, target_major: int) -> bool:
    """Return True if these programs can transfer optimizer statistics to a server of this version."""
    return programs.major >= STATISTICS_SINCE and target_major >= STATISTICS_SINCE


def dump_statistics(source: Postgres, programs: Binaries, file: Path, job: str, snapshot: str) -> None:
    """Dump the optimizer statistics of the source.

    Raises:
        MoveError: pg_dump failed.
    """
    dump(source, programs, file, ["--statistics-only", f"--snapshot={snapshot}"], f"{application_name(job)} pg_dump")


def restore_statistics(conn: psycopg.Connection[Any], entries: Sequence[Entry]) -> int:
    """Restore optimizer statistics in one transaction, and return how many tables and indexes received them."""
    carried = [one for one in entries if one.kind == "STATISTICS DATA"]
    with conn.transaction():
        for one in carried:
            conn.execute(one.sql.encode())
    return len(carried)


def tables_without_statistics(conn: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Return the tables without statistics, or with extended statistics that cannot be transferred."""
    return [(row[0], row[1]) for row in conn.execute(WITHOUT_STATISTICS_SQL)]


def analyse(
    target: Postgres,
    job: str,
    workers: int,
    tables: Sequence[tuple[str, str]] | None = None,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Analyse tables in several sessions.

    Args:
        target: The target.
        job: The job's id.
        workers: Number of sessions.
        tables: The tables to analyse once; None to analyse all tables in stages.
        progress: Called with the statistics target of each stage.
    """
    own = threading.local()
    with contextlib.ExitStack() as opened, session(target, job) as first, ThreadPoolExecutor(workers) as pool:
        lock = threading.Lock()
        everything = tables if tables is not None else [(row[0], row[1]) for row in first.execute(ROOTS_SQL)]

        def one(name: tuple[str, str], stage: str) -> None:
            if not hasattr(own, "conn"):
                conn = session(target, job)
                with lock:
                    own.conn = opened.enter_context(conn)
                own.conn.execute("set vacuum_cost_delay = 0")
            own.conn.execute(f"set default_statistics_target to {stage}".encode())
            own.conn.execute(sql.SQL("analyze {}").format(sql.Identifier(*name)))

        for stage in STAGES if tables is None else STAGES[-1:]:
            if progress is not None:
                progress(stage)
            for done in [pool.submit(one, name, stage) for name in everything]:
                done.result()


def publish(conn: psycopg.Connection[Any], ledger: Ledger, entries: Sequence[Entry]) -> None:
    """End the job at the target in one transaction: remove its mark and restore the event triggers.

    The transaction's id is written to the ledger before the commit, and the commit waits for the disk.

    Raises:
        MoveError: The server refuses a statement; the mark is still there.
    """
    restorer = Restorer.for_session(conn)
    with conn.transaction():
        conn.execute("set local synchronous_commit = on")
        conn.execute("drop schema dbdyno_move cascade")
        for one in entries:
            restorer.restore(one)
        note_transaction(conn, ledger)
