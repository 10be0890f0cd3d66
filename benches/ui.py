"""Measures the processor time of `dbdyno ui` by page, over a month of snapshots and fifty runs.

    python benches/ui.py [--days 30] [--statements 200] [--sessions 25] [--runs 50] [--keep FOLDER]

The store is made as a watch leaves it, with its sums; of its sessions one in five is active. Each view is asked once
to warm up, then in stretches that nobody has asked for, so that no answer is a kept one; told are the median of the
server's processor time (utime and stime of the process), and its memory at the end. Aims: home < .3 s, a day < .4 s, a
month < 1.5 s, a drag's detail < .5 s, 300 MB. Then `snap report` and `compare` of the same store, by command.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

from figures import SMOKE, dbdyno, figure, lacks, parse, with_bytecode
from packed_store import Made, write

from dbdyno.bench.postgres.server import open_target
from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.folder import Store
from dbdyno.snapshot.taking.take import open_collector, take
from snapshot import SETTINGS, dsn

PLAN = """\
title = "run of the bench"
arm = [{name = "a"}, {name = "b"}]
target = "mock:"
[workload]
kind = "mock"
[schedule]
blocks = 4
warmup_blocks = 0
turn = "40ms"
[watch]
overhead_blocks = 0
"""
VIEWERS = 2 if SMOKE else 10
TICKS = os.sysconf("SC_CLK_TCK")
UNREADY = b'data-follows="sums"'
"""What a page has that waits for the sums of its interval."""


class Site:
    """A server of pages, and what it has cost."""

    def __init__(self, folder: Path) -> None:
        words = ["--runs", str(folder / "runs"), "--store", str(folder / "snaps"), "--port", "0", "--no-browser"]
        command = [sys.executable, "-m", "dbdyno", "ui", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.base, _, self.token = self.process.stdout.readline().strip().partition("/?token=")

    def get(self, address: str) -> bytes:
        cookie = f"dbdyno-{self.base.rpartition(':')[2]}={self.token}"
        with urlopen(Request(self.base + address, headers={"Cookie": cookie}), timeout=600) as answer:
            return bytes(answer.read())

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

    def cost(self, addresses: list[str]) -> float:
        """The median of the processor time of these answers."""
        found = []
        for address in addresses:
            began = self.cpu_s()
            page = self.get(address)
            found.append(self.cpu_s() - began)
            assert UNREADY not in page, f"{address} says that it is being prepared"
        return statistics.median(found)

    def until_ready(self, address: str) -> None:
        """Waits until the sums of this page have been made."""
        while UNREADY in self.get(address):
            time.sleep(1)


def main() -> int:
    """One measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--statements", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=25)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--keep", type=Path, help="make the store in this folder, or measure the one that is there")
    given = parse(parser, days=0.035, statements=5, sessions=5, runs=2)
    rounds = 1 if given.smoke else 5
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        lacks("starlette or uvicorn is not here: pip install 'dbdyno[ui]'")
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = given.keep or Path(name)
        ends_s = _laboratory(folder, given)
        site = Site(folder)
        try:
            _measure(site, ends_s, given.days, rounds)
        finally:
            site.process.terminate()
            site.process.wait()
        _measure_commands(folder, round(given.days * 1440), min(rounds, 3))
    return 0


def _laboratory(folder: Path, given: argparse.Namespace) -> int:
    """Makes store and runs unless they are there, and returns when the last snapshot was taken."""
    ends = folder / "ends"
    if not ends.is_file():
        folder.mkdir(exist_ok=True)
        ends_s = _store(folder, given)
        _runs(folder, given.runs)
        ends.write_text(str(ends_s))
    return int(ends.read_text())


def _store(folder: Path, given: argparse.Namespace) -> int:
    """Writes the store with its sums, and returns when its last snapshot was taken."""
    with open_target(None, settings=SETTINGS) as target:
        with target.connect() as conn:
            conn.execute("create extension pg_stat_statements")
            conn.execute("create table t (id int primary key)")
        with open_collector(dsn(target), Options()) as collector:
            like = take(collector, Store(folder / "like"), engine_name="postgres")
    (folder / "snaps").mkdir()
    made = Made(folder / "snaps", like, round(given.days * 1440) + 1, given.statements, given.sessions)
    began = time.perf_counter()
    write(made)
    words = ["snap", "sessions", "1", str(made.count), "--store", str(folder / "snaps")]
    dbdyno(*words).check_returncode()
    print(f"{made.count} snapshots and their sums made in {time.perf_counter() - began:.0f} s", flush=True)
    return made.at_s(made.count)


def _runs(folder: Path, count: int) -> None:
    (folder / "plan.toml").write_text(PLAN)
    dbdyno("run", str(folder / "plan.toml"), "--out", str(folder / "runs"))
    (first,) = (folder / "runs").iterdir()
    for at in range(count - 1):
        shutil.copytree(first, folder / "runs" / f"{first.name}-{at}")


def _measure(site: Site, ends_s: int, days: float, rounds: int) -> None:
    """Print what each view costs: the median of its first addresses, so many of them."""

    def stretch(back_s: float, length_s: float) -> str:
        low, high = (datetime.fromtimestamp(ends_s - s, UTC) for s in (back_s + length_s, back_s))
        return quote(f"{low:%Y-%m-%dT%H:%M:%S}..{high:%Y-%m-%dT%H:%M:%S}")

    day = min(86_400.0, days * 43_200)
    hour = day / 24
    # A store that an older version made may lack sums. The first query of a process starts DuckDB: once.
    back = min(3600.0, day)
    older = stretch(back, days * 86_400 - back - 300)
    for address in (f"/server?window={older}", "/", f"/server?window={stretch(0, day)}"):
        site.until_ready(address)
    shown = stretch(0, day)
    views: dict[str, tuple[str, float, list[str]]] = {
        "home": ("< .3 s", 0.3, ["/"] * 5),
        "a day of history": ("< .4 s", 0.4, [f"/server?window={stretch(60 + at * 60, day)}" for at in range(5)]),
        "a drag's detail": (
            "< .5 s",
            0.5,
            [f"/server?window={shown}&stretch={stretch(at * hour, hour)}" for at in range(1, 6)],
        ),
        "what happened in it": (
            "",
            0.0,
            [f"/report?stretch={stretch(at * hour, hour)}&brief=1&part=1" for at in range(1, 4)],
        ),
        f"{days:g} days of history": (
            "< 1.5 s",
            1.5,
            [f"/server?window={stretch(at * 60, days * 86_400 - 300)}" for at in range(3)],
        ),
        "list of runs": ("", 0.0, ["/runs"] * 5),
    }
    for what, (aim, most, addresses) in views.items():
        cost = site.cost(addresses[:rounds])
        print(f"{what}: {cost:.3f} s of processor time {f'(aim {aim})' if aim else ''}", flush=True)
        against = {"against": "aim", "ratio": cost / most, "aim": "< 1"} if most else {}
        figure(what, cost, "s of CPU", **against)  # type: ignore[arg-type]
    _many(site, [f"/server?window={shown}&stretch={stretch(at * hour / 7, hour)}" for at in range(VIEWERS)])


def _measure_commands(folder: Path, snapshots: int, rounds: int) -> None:
    """The same store by commands, each as a whole process: reports of a day and of all, two days compared."""
    day = min(1440, snapshots // 3)
    commands = {
        "snap report of a day, the command": (1.0, ["snap", "report", f"last-{day}", "last"]),
        "two days compared, the command": (
            2.0,
            ["compare", f"snap:last-{2 * day}..last-{day}", f"snap:last-{day}..last"],
        ),
        "snap report of all, the command": (5.0, ["snap", "report", "1", "last"]),
    }
    if SMOKE:  # one command as a process is enough
        del commands["snap report of all, the command"]
        _, words = commands.pop("two days compared, the command")
        assert dbdyno(*words, "--store", str(folder / "snaps")).returncode in (0, 1)
    for what, (most, words) in commands.items():
        command = [sys.executable, "-m", "dbdyno", *words, "--store", str(folder / "snaps")]
        found = []
        kept = with_bytecode(folder / "bytecode")
        for _ in range(rounds):
            process = subprocess.Popen(command, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            assert os.waitstatus_to_exitcode(status) in (0, 1), command
            found.append((usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
        cost, memory = min(found)
        print(f"{what}: {cost:.2f} s of processor time, {memory:.0f} MB (aim < {most:g} s)", flush=True)
        figure(what, cost, "s of CPU", against="aim", ratio=cost / most, aim="< 1")


def _many(site: Site, addresses: list[str]) -> None:
    """Several viewers at once, and the memory that all of it took."""
    began = time.perf_counter()
    ask: Callable[[str], bytes] = site.get
    with ThreadPoolExecutor(VIEWERS) as viewers:
        list(viewers.map(ask, addresses))
    wall = time.perf_counter() - began
    memory = site.memory_mb()
    print(f"{VIEWERS} viewers at once: all answered in {wall:.2f} s; memory at most {memory:.0f} MB (aim < 300)")
    figure("memory after ten viewers", memory, "MB", against="aim", ratio=memory / 300, aim="< 1")


if __name__ == "__main__":
    sys.exit(main())
