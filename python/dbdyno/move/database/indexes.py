"""Statements that run after the rows are copied, in several sessions: indexes and constraints, the largest first.

A statement starts when everything that it depends on exists and no running statement holds a conflicting lock. It
commits together with a record of itself, so no statement is executed twice after a kill. While all sessions are busy,
each index is built by a single process, because the server's parallel workers would only compete with the other
sessions. The key of a large table, which excludes every other statement on that table, may use parallel workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.bench.postgres.server import Postgres
from dbdyno.move.database.archive import Entry
from dbdyno.move.database.schema import Restorer, refusal
from dbdyno.move.database.target import note_entry, session

LEAST_BYTES, MOST_BYTES = 64 << 20, 1 << 30
PLAIN = ("INDEX", "INDEX ATTACH", "CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT", "COMMENT")
"""Kinds of objects without an owner or a role of their own."""
SHARED = ("INDEX",)
"""Kinds of statements that can run at the same time on one table."""
LOOK_S = 0.2
NOTE = "insert into dbdyno_move.entry values ({})"
MEMORY_SQL = """
select pg_size_bytes(current_setting('shared_buffers')), pg_size_bytes(current_setting('maintenance_work_mem'))
"""


@dataclass(frozen=True)
class Step:
    """A statement with the statements that it depends on, the tables that it locks, and the bytes that it works on."""

    entry: Entry
    needs: frozenset[int]
    tables: frozenset[int]
    bytes: int


def steps_of(entries: Sequence[Entry], everything: Sequence[Entry], sizes: Mapping[str, int]) -> list[Step]:
    """Return the steps for some entries of an archive.

    Args:
        entries: The entries to restore now.
        everything: All entries of the archive.
        sizes: Sizes of the source's tables and indexes by `schema.name` [bytes].
    """
    own = {one.id: one for one in entries}
    known = {one.id: one for one in everything}
    tables: dict[int, frozenset[int]] = {}

    def tables_of(number: int) -> frozenset[int]:
        if number not in known:
            return frozenset()
        if known[number].kind in ("TABLE", "MATERIALIZED VIEW"):
            return frozenset([number])
        if number not in tables:
            tables[number] = frozenset()  # entries that need each other
            needs = known[number].needs if number in own else ()
            tables[number] = frozenset(one for need in needs for one in tables_of(need))
        return tables[number]

    return [
        Step(one, frozenset(need for need in one.needs if need in own), tables_of(one.id), size_of(one, sizes))
        for one in entries
    ]


def size_of(entry: Entry, sizes: Mapping[str, int]) -> int:
    """Return the size of what a statement builds or reads: an index, or a foreign key's table [bytes]."""
    if entry.kind == "INDEX":
        return sizes.get(f"{entry.schema}.{entry.tag}", 0)
    if entry.kind not in ("CONSTRAINT", "FK CONSTRAINT", "CHECK CONSTRAINT"):
        return 0
    # The tag is the name of the table and that of the constraint, and both may have blanks.
    words = entry.tag.split(" ")
    halves = [(" ".join(words[:cut]), " ".join(words[cut:])) for cut in range(1, len(words))]
    names = [second if entry.kind == "CONSTRAINT" else first for first, second in halves]
    return next((sizes[name] for one in names if (name := f"{entry.schema}.{one}") in sizes), 0)


def memory_bytes(target: Postgres, conn: psycopg.Connection[Any], workers: int) -> int:
    """Return `maintenance_work_mem` for each session [bytes].

    All sessions together get a quarter of the available memory if the server runs on this host, else as much as its
    shared buffers; no session gets less than the server's own setting.
    """
    row = conn.execute(MEMORY_SQL).fetchone()
    shared, own = row or (0, 0)
    budget = _available_bytes() // 4 if target.is_here(conn) else shared
    return max(int(own), min(max(budget // workers, LEAST_BYTES), MOST_BYTES))


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


def restore_all(
    target: Postgres,
    job: str,
    steps: Sequence[Step],
    done: set[int],
    workers: int,
    memory: int,
    progress: Callable[[int], None],
) -> None:
    """Restore all steps that are not yet done.

    Args:
        target: The target.
        job: The job's id.
        steps: The steps, in an order in which they can be restored.
        done: Numbers of entries that the target has; those restored here are added.
        workers: Number of sessions.
        memory: `maintenance_work_mem` of each session [bytes].
        progress: Called with the total size of the restored steps [bytes].

    Raises:
        MoveError: A statement was refused; completed statements are not undone.
    """
    left = [one for one in sorted(steps, key=lambda step: -step.bytes) if one.entry.id not in done]
    if not left:
        return
    running: dict[Future[None], Step] = {}
    missing = {one.entry.id for one in left}
    sessions = _Sessions(target, job, memory)
    built = sum(one.bytes for one in steps) - sum(one.bytes for one in left)
    try:
        with ThreadPoolExecutor(workers) as pool:
            try:
                while left or running:
                    # Entries that depend on each other (the archive has none) would wait forever.
                    found = _ready(left, missing, running.values(), workers) or ([] if running else left[:1])
                    spare = len(running) + len(found) < workers
                    for one in found:
                        left.remove(one)
                        running[pool.submit(sessions.restore, one.entry, spare)] = one
                    ended, _ = wait(running, LOOK_S, FIRST_COMPLETED)
                    for future in ended:
                        step = running.pop(future)
                        future.result()
                        done.add(step.entry.id)
                        missing.discard(step.entry.id)
                        built += step.bytes
                    progress(built)
            except BaseException:
                sessions.cancel()
                raise
    finally:
        sessions.close()


def _ready(pending: Iterable[Step], missing: set[int], running: Iterable[Step], workers: int) -> list[Step]:
    """Return the steps that can start now: their dependencies are restored, and no lock conflicts."""
    busy = list(running)
    found: list[Step] = []
    for one in pending:
        if len(busy) >= workers:
            break
        if one.needs.isdisjoint(missing) and not any(_collide(one, other) for other in busy):
            found.append(one)
            busy.append(one)
    return found


def _collide(first: Step, second: Step) -> bool:
    if first.entry.kind in SHARED and second.entry.kind in SHARED:
        return False
    return bool(first.tables & second.tables)


class _Sessions:
    """Sessions at the target, one for each thread that restores statements."""

    def __init__(self, target: Postgres, job: str, memory: int) -> None:
        self._target, self._job, self._memory = target, job, memory
        self._own = threading.local()
        self._lock = threading.Lock()
        self._opened: list[tuple[Any, psycopg.Connection[Any]]] = []
        self._cancelled = False

    def restore(self, entry: Entry, spare: bool) -> None:
        """Restore an entry in this thread's session; with `spare`, the server may use parallel workers."""
        restorer = self._restorer()
        conn = restorer.conn
        parallel = f"set local max_parallel_maintenance_workers to {'default' if spare else '0'}"
        try:
            words = restorer.create_statements(entry) if entry.kind in PLAIN else None
            if words is not None and not restorer.notes:
                # One message to the server instead of five.
                conn.execute(f"begin; {parallel}; {words}; {NOTE.format(entry.id)}; commit".encode())
                return
            with conn.transaction():
                conn.execute(parallel.encode())
                restorer.notes.clear()
                restorer.restore(entry)
                restorer.write_notes()
                note_entry(conn, entry.id)
        except psycopg.Error as error:
            if not conn.closed:
                conn.rollback()
            raise refusal(entry, error) from None

    def _restorer(self) -> Restorer:
        known: Restorer | None = getattr(self._own, "restorer", None)
        if known is not None:
            return known
        opened = session(self._target, self._job)
        conn = opened.__enter__()
        with self._lock:
            self._opened.append((opened, conn))
        conn.execute(f"set maintenance_work_mem = '{self._memory >> 10}kB'".encode())
        restorer = self._own.restorer = Restorer.for_session(conn)
        return restorer

    def cancel(self) -> None:
        """Cancel the running statements of all sessions at the server."""
        with self._lock:
            for _, conn in self._opened:
                conn.cancel_safe(timeout=2)

    def close(self) -> None:
        """Close all sessions."""
        for opened, _ in self._opened:
            opened.__exit__(None, None, None)
