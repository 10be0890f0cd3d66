"""Measures `dbdyno cells show` on 50 modelled cells with about 500 metrics each, and the parser of listings alone.

    python benches/cells.py [--cells 50] [--late 0.2] [--rounds 3]

The cells are those of `dbdyno model cells`, in a process of their own on loopback, each answering
`--late` seconds late; their share of the processor is in the time. `show` is a whole process from
its start to its end; its memory is the most that the system says it had. The reader reads 100,000
lines of text, five of them damaged. Aims: show within 3 s and 150 MB, the reader within 0.3 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from figures import figure, parse

LINES = 100_000
SMALL = {"cells.disks": "3", "cells.modules": "4", "cells.groups.RECO.size_gb": "20"}


def serve(cells: int, late: float, folder: Path) -> None:
    """Serves until it is ended; prints the options that reach the cells and how much they hold."""
    from dbdyno_rig.cell import Cell
    from dbdyno_rig.rack import Load, Rack
    from dbdyno_rig.serve import Servers

    class Late(Cell):
        def answer(self, text: str, *, xml: bool = False) -> tuple[str, int]:
            time.sleep(late)
            return super().answer(text, xml=xml)

    workload = {"kind": "update-loop", "blocks": 20_000, "think_ms": 10}
    rack = Rack("model:exadata-x2", Load(workload, 8, 1, {**SMALL, "cells.count": str(cells)}))
    rack.advance(61 * 10**9)

    async def work() -> None:
        # A thread a cell: they are late at the same time, as fifty real ones would be.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(cells))
        made = [Late(rack, number) for number in range(cells)]
        async with Servers(made, folder) as served:
            print(json.dumps([served.reach, len(rack.samples[0][-1].rows)]), flush=True)
            await asyncio.Event().wait()

    asyncio.run(work())


def show(reach: str) -> tuple[float, float, int]:
    """Seconds, MB and values of one `show`."""
    words = [sys.executable, "-m", "dbdyno", "cells", "show", *shlex.split(reach)]
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        child = subprocess.Popen([*words, "--format", "csv"], stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        rows = out.read().count(b"\n") - 1
    assert child.returncode == 0, child.returncode
    return seconds, used.ru_maxrss / 1024, rows


def read() -> float:
    """Seconds to read the lines."""
    from dbdyno.cells.listing import read_text
    from dbdyno.cells.numbers import cellcli_text

    lines = [
        f"\t CD_IO_RQ_R_SM   \t CD_{at % 12:02}_cell01\t {cellcli_text(at * 37, 'IO requests')}" for at in range(LINES)
    ]
    for at in range(5):
        lines[at * 19_999] = "\t CD_IO_RQ_R_SM \t broken"
    text = "\n".join(lines)
    begin = time.perf_counter()
    found = read_text(text, "cell01")
    seconds = time.perf_counter() - begin
    assert (len(found.readings), len(found.unread)) == (LINES - 5, 5)
    return seconds


def main() -> None:
    """Prints both figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cells", type=int, default=50)
    parser.add_argument("--late", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", type=Path)
    given = parse(parser, cells=3, late=0.05, rounds=1)
    if given.serve:
        serve(given.cells, given.late, given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--serve", folder, "--cells", str(given.cells)]
        server = subprocess.Popen([*words, "--late", str(given.late)], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            reach, metrics = json.loads(server.stdout.readline())
            rounds = [show(reach) for _ in range(given.rounds)]
        finally:
            server.terminate()
            server.wait()
    seconds = [one[0] for one in rounds]
    print(
        f"show: {given.cells} cells x {metrics} values, {given.late * 1e3:.0f} ms late: best"
        f" {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s,"
        f" {max(one[1] for one in rounds):.0f} MB, {rounds[0][2]:,} rows"
    )
    what = f"cells show of {given.cells} cells that answer {given.late * 1e3:.0f} ms late"
    figure(what, statistics.median(seconds), "s", aim="< 3")
    figure(f"{what}: peak memory", max(one[1] for one in rounds), "MB", aim="< 150")
    reads = [read() for _ in range(given.rounds)]
    print(f"read: {LINES:,} lines: best {min(reads):.3f} s, median {statistics.median(reads):.3f} s")
    figure(f"reading {LINES:,} lines of a listing", statistics.median(reads), "s", aim="< 0.3")


if __name__ == "__main__":
    main()
