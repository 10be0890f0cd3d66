"""Modelled racks for the tests: small, light, and of any state."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path

from dbdyno.cells.ssh import Access
from dbdyno_rig.cell import Cell
from dbdyno_rig.rack import Load, Rack
from dbdyno_rig.serve import RackAccess, Servers

SECOND = 10**9
UPDATES = {"kind": "update-loop", "blocks": 20_000, "skew": 0.5, "think_ms": 50}
SMALL_BUFFERS = {"database.buffers.buffers": "500"}


def rack(*, seed: int = 1, seconds: float = 0, **settings: str) -> Rack:
    """Return a rack of three cells with an update load, after that many virtual seconds."""
    given = {**SMALL_BUFFERS, **{key.replace("__", "."): text for key, text in settings.items()}}
    made = Rack("model:exadata-x2", Load(UPDATES, 4, seed, given))
    made.advance(round(seconds * SECOND))
    return made


def cell(**given) -> Cell:
    """The first cell of such a rack."""
    return Cell(rack(**given), 0)


def any_rack(dice: random.Random) -> Rack:
    """Return a rack with a random workload, cache, log and duration."""
    workload = dice.choice(
        [
            UPDATES,
            {"kind": "commit-loop", "think_ms": dice.choice([1, 20]), "redo_bytes": "512..64KiB"},
            {"kind": "key-lookup", "think_ms": 5},
        ]
    )
    settings = {
        **SMALL_BUFFERS,
        "cells.count": str(dice.randint(2, 4)),
        "cells.disks": str(dice.randint(1, 12)),
        "cells.modules": str(dice.randint(1, 16)),
        "cells.flash_cache.mode": dice.choice(["write-through", "write-back", "none"]),
        "cells.flash_log.enabled": dice.choice(["true", "false"]),
        "cells.groups.DATA.size_gb": str(dice.choice([50, 200])),
    }
    load = Load(workload, dice.randint(1, 6), dice.randrange(2**32), settings)
    made = Rack("model:exadata-x2", load)
    made.advance(dice.randint(0, 70) * SECOND)
    return made


def value(asked: Cell, name: str) -> float:
    """Return the current value of a cell's metric, summed over its objects; not the value of the last collection."""

    rows = asked.rack.core.collect(asked.number)["rows"]
    return sum(row[3] for row in rows if row[2] == name)


def said(asked: Cell, text: str) -> str:
    """Return the cell's answer to a command, which must succeed."""
    output, code = asked.answer(text)
    assert code == 0, output
    return output


@contextlib.contextmanager
def serving(cells: list[Cell], folder: Path, **given) -> Iterator[RackAccess]:
    """Serve these cells in another thread; yield how to reach them."""
    found: list[RackAccess] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    end = asyncio.Event()

    async def work() -> None:
        async with Servers(cells, folder, **given) as served:
            found.append(served)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    assert ready.wait(120)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
        loop.close()


def access(served: RackAccess) -> Access:
    assert served.key is not None
    return Access((served.key,), served.known_hosts, config=False, timeout_s=10.0)


@contextlib.contextmanager
def passing(rack: Rack) -> Iterator[threading.Event]:
    """Let time pass in a rack in another thread; yield the event that stops it."""
    stop = threading.Event()
    thread = threading.Thread(target=rack.run, args=(stop,))
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(20)
