"""A run folder as a model run writes it, with known waits, created in Python."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb

from dbdyno.evidence.run import Block, Run, SliceRecord, new_run

FAR_NS = 1_000_000_000_000_000
CALLS = (
    "arm varchar, block uinteger, slice uinteger, session usmallint, kind varchar,"
    " statement varchar, started_ns bigint, elapsed_ns bigint, rows bigint"
)
WAITS = (
    "arm varchar, block uinteger, session bigint, started_ns bigint, elapsed_ns bigint,"
    " event varchar, object varchar, p1 bigint, p2 bigint, p3 bigint"
)


class Clock:
    """Clock of one session, whose actions follow one another [ns]."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def spend(self, ns: int) -> tuple[int, int]:
        """Advance the clock; return the start and the length of the interval [ns]."""
        begin, self.now_ns = self.now_ns, self.now_ns + ns
        return begin, ns


def model_run(folder: Path, seed: int, *, blocks: int = 2, transactions: int = 20) -> Run:
    """Write a run with two arms of three sessions and a log writer; the same seed gives the same run."""
    random_ = random.Random(seed)
    run = new_run(folder, "made", {"machine": {"target": "model:made"}}, name="made")
    for block in range(blocks):
        calls: list[tuple[object, ...]] = []
        waits: list[tuple[object, ...]] = []
        for arm in ("off", "32 KB / on"):
            for session in range(3):
                clock = Clock(FAR_NS * block + random_.randrange(10**6))
                for number in range(transactions):
                    _transaction(random_, clock, (arm, block, session), number, calls, waits)
            clock = Clock(FAR_NS * block + 5)
            for number in range(transactions):
                span = clock.spend(random_.randrange(1, 100_000))
                waits.append((arm, block, 0, *span, "log file parallel write", "lgwr", 2, number, 1))
                clock.spend(random_.randrange(5_000))
        _write(run, block, calls, waits)
    run.save(status="complete")
    return run


def _transaction(
    random_: random.Random,
    clock: Clock,
    who: tuple[str, int, int],
    number: int,
    calls: list[tuple[object, ...]],
    waits: list[tuple[object, ...]],
) -> None:
    arm, block, session = who

    def wait(event: str, longest_ns: int, p: tuple[int, int, int]) -> None:
        begin, ns = clock.spend(random_.randrange(longest_ns))
        if ns:
            waits.append((*who, begin, ns, event, "session", *p))

    wait("SQL*Net message from client", 3_000, (675562835, 1, 0))
    began = clock.now_ns
    clock.spend(random_.randrange(1, 90_000))
    wait("cpu queue", 2, (0, 0, 0))
    clock.spend(random_.randrange(1_500))
    committed = clock.now_ns
    wait("log file sync", 900_000, (number, 2**40 + session, 0))
    head = (arm, block, 0, session)
    now = clock.now_ns
    calls.append((*head, "commit", "commit-loop", committed, now - committed, None))
    calls.append((*head, "transaction", "commit-loop", began, now - began, 1))


def _write(run: Run, block: int, calls: list[tuple[object, ...]], waits: list[tuple[object, ...]]) -> None:
    with duckdb.connect() as connection:
        for name, columns, rows in (("calls", CALLS, calls), ("waits", WAITS, waits)):
            (run.path / name).mkdir(exist_ok=True)
            connection.execute(f"create table {name} ({columns})")
            # Row by row it takes seconds.
            marks = ", ".join(["unnest(?)"] * len(rows[0]))
            connection.execute(
                f"insert into {name} select {marks}", [list(column) for column in zip(*rows, strict=True)]
            )
            place = run.path / name / f"b{block:06}.parquet"
            connection.table(name).write_parquet(str(place))
    run.add_block(Block(block, "measure", 0, 1, len(calls), [SliceRecord(0, 0)]))
