"""Help for the tests of recordings: a server, whether the kernel allows probes, and questions to a recorded run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.query import connect
from dbdyno.evidence.run import Run
from dbdyno.trace.record.place import Place
from dbdyno.trace.record.recording import Recording, Wanted, recording


def session(engine: EmbeddedPostgres) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(**engine.conninfo(), autocommit=True)  # type: ignore[arg-type]


@contextlib.contextmanager
def recorded(engine: EmbeddedPostgres, out: Path, wanted: Wanted | None = None) -> Iterator[Recording]:
    """Records the server while the block runs, whatever it costs."""
    assert engine.pid is not None
    with recording(Place(engine.pid), out, wanted or Wanted(cost_limit=0)) as it:
        yield it


def rows(run: Path, question: str, *values: Any) -> list[tuple[Any, ...]]:
    """A question to the recorded run, by SQL."""
    connection, broken = connect(Run.open(run))
    assert broken == []
    with connection:
        return connection.execute(question, list(values)).fetchall()


@contextlib.contextmanager
def loaded(engine: EmbeddedPostgres, sessions: int = 2) -> Iterator[list[str]]:
    """Sessions that work all the time, some of them new ones; the list has what failed."""
    failed: list[str] = []
    over = threading.Event()

    def work(number: int) -> None:
        try:
            while not over.is_set():
                with session(engine) as connection:
                    for _ in range(20):
                        connection.execute("insert into busy values (%s)", [number])
                        connection.execute("select count(*) from busy where a = %s", [number])
        except psycopg.Error as error:
            failed.append(str(error))

    with session(engine) as connection:
        connection.execute("create table if not exists busy (a int)")
    threads = [threading.Thread(target=work, args=[number]) for number in range(sessions)]
    for thread in threads:
        thread.start()
    try:
        yield failed
    finally:
        over.set()
        for thread in threads:
            thread.join()


def changed_code(engine: EmbeddedPostgres) -> int:
    """In how many bytes a backend's code differs from the program file: a probe is one byte each."""
    with session(engine) as connection:
        pid = connection.info.backend_pid
        differing = 0
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        exe = str(Path(f"/proc/{pid}/exe").readlink())
        for line in maps:
            words = line.split()
            if len(words) < 6 or words[5] != exe or "x" not in words[1]:
                continue
            begin, end = (int(word, 16) for word in words[0].split("-"))
            with Path(f"/proc/{pid}/mem").open("rb") as memory, Path(f"/proc/{pid}/exe").open("rb") as program:
                memory.seek(begin)
                program.seek(int(words[2], 16))
                has, should = memory.read(end - begin), program.read(end - begin)
            differing += sum(a != b for a, b in zip(has, should, strict=False)) if has[: len(should)] != should else 0
        return differing
