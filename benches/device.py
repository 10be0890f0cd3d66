"""Compares writes of 4 KB to a mounted folder with those to the folder below, at depth 1, 8 and 64.

The device takes no time, so the difference is the cost of FUSE. Python threads write, as a user's process would; the
ratio is of writes per second. Where the kernel offers FUSE over io_uring (`Y` in
/sys/module/fuse/parameters/enable_uring), both ways are measured in turns.

python benches/device.py [--writes 20000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import figure, lacks, parse

from dbdyno.base.device_types import DeviceSpec
from dbdyno.base.errors import DeviceError
from dbdyno.device.mounts import check_machine, mount_folder

DEPTHS = (1, 8, 64)
LOAD = """
import os, sys, threading
path, depth, writes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
file, page = os.open(path, os.O_RDWR | os.O_CREAT), bytes(4096)
def job(number):
    for at in range(number, writes, depth):
        os.pwrite(file, page, at % 4096 * 4096)
jobs = [threading.Thread(target=job, args=(number,)) for number in range(depth)]
[job.start() for job in jobs]
[job.join() for job in jobs]
"""


def per_second(folder: Path, depth: int, writes: int) -> float:
    """Writes a second of a process, its start left out."""
    command = [sys.executable, "-c", LOAD, str(folder / "file"), str(depth)]
    times = []
    for count in (0, writes):
        begin = time.perf_counter()
        subprocess.run([*command, str(count)], check=True)
        times.append(time.perf_counter() - begin)
    return writes / max(times[1] - times[0], 1e-6)


def main() -> None:
    """Prints a line for each depth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=20_000)
    given = parse(parser, writes=500)
    try:
        check_machine()
    except DeviceError as error:
        lacks(str(error))
    with tempfile.TemporaryDirectory() as work:
        folder, back, bare = (Path(work) / name for name in ("mounted", "back", "bare"))
        for place in (folder, back, bare):
            place.mkdir()
        for depth in DEPTHS:
            theirs = per_second(bare, depth, given.writes)
            for transport in ("read", "ring"):
                spec: DeviceSpec = {"device": "none", "toml": None, "folder": str(folder), "back": str(back)}
                with mount_folder({**spec, "direct_io": True, "transport": transport}) as mount:
                    if mount.status()["transport"] != transport:
                        continue
                    ours = per_second(folder, depth, given.writes)
                way = " over io_uring" if transport == "ring" else ""
                print(
                    f"depth {depth}{way}: {ours:,.0f} writes/s mounted, {theirs:,.0f} bare, ratio {ours / theirs:.2f}"
                )
                figure(
                    f"writes of 4 KB{way}, depth {depth}", ours, "1/s", against="the bare folder", ratio=ours / theirs
                )


if __name__ == "__main__":
    main()
