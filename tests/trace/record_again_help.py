"""Helpers for tests in which recorders start and stop: which are killed, a load of pgbench, and the server's log."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

from proxy_help import pgbench

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from together import meanwhile


def fates(cycles: int, killed: int) -> tuple[random.Random, list[bool]]:
    """Return random numbers, whose seed is printed, and for each recorder whether it is killed."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    kinds = [True] * killed + [False] * (cycles - killed)
    dice.shuffle(kinds)
    return dice, kinds


@contextlib.contextmanager
def under_pgbench(engine: EmbeddedPostgres) -> Iterator[None]:
    """Run pgbench's TPC-B during the block, and check that no transaction fails."""
    transactions, broken = [0], list[BaseException]()

    def load(over: threading.Event) -> None:
        try:
            while not over.is_set():
                said = pgbench(engine, engine.conninfo(), "-n", "-c", 2, "-j", 1, "-t", 200)
                assert "number of transactions actually processed: 400/400" in said
                transactions[0] += 400
        except BaseException as error:
            broken.append(error)

    with meanwhile(load):
        yield
    print(f"{transactions[0]:,} transactions")
    assert broken == []
    assert transactions[0] >= 400


def logged(engine: EmbeddedPostgres, since: int) -> list[str]:
    """Return the lines of the server's log after that many bytes, without checkpoints, which the load causes."""
    with engine.log_file.open("rb") as log:
        log.seek(since)
        lines = log.read().decode(errors="replace").splitlines()
    said = [line for line in lines if "checkpoint" not in line]
    print(f"{len(said)} lines in the log")
    return said
