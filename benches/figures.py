"""What all benches share: `--smoke`, one JSON line for each figure, and the Rust examples as programs.

`figure` writes a line where `DBDYNO_BENCH_RESULTS` names a file, as `make bench` does (benches/results.jsonl). A line
has `date`, `commit`, `machine`, `load` (of one minute, as the bench began), `command`, `bench`, `what`, `value` and
`unit`; with a peer or a limit beside it `against` and `ratio`, which is this figure over that one in the same unit;
`low` and `high`, the 95 % interval of the ratio, where there is one; and the `aim`.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from dbdyno.base.json_types import JsonObject

ROOT = Path(__file__).resolve().parents[1]
RESULTS = "DBDYNO_BENCH_RESULTS"
LACKS = 3
"""How a bench ends that lacks what it measures with."""
LOAD = os.getloadavg()[0]
SMOKE = "--smoke" in sys.argv
"""Whether sizes are tiny: each kind of work is done once, nothing is measured."""


def parse(parser: argparse.ArgumentParser, arguments: list[str] | None = None, **smoke: Any) -> argparse.Namespace:
    """Parses the command line. With `--smoke` the sizes are those of `smoke`, in which each kind of work is done
    once."""
    parser.add_argument(
        "--smoke", action="store_true", help="tiny sizes, each kind of work once: shows that it works, measures nothing"
    )
    given = parser.parse_args(arguments)
    if given.smoke:
        vars(given).update(smoke)
    return given


def length(seconds: float, transactions: int) -> list[str]:
    """Options of pgbench: so many seconds, or so many transactions of each session in a smoke."""
    return ["-t", str(transactions)] if SMOKE else ["-T", f"{seconds:.0f}"]


def with_bytecode(folder: Path) -> dict[str, str]:
    """The environment of a command whose bytecode is kept in a folder, as that of an installed package is.

    In a smoke the caller's: compiling the package once more would cost more than all else there.
    """
    if SMOKE:
        return dict(os.environ)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder)}


def dbdyno(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command whose cost is not measured, and returns what it printed.

    In a smoke it runs within this process: to start Python and to import the package costs as much as most commands.
    """
    if SMOKE:
        sys.path.append(str(ROOT / "tests"))
        from command_line import dbdyno as within

        return within(*words, **environment)
    command = [sys.executable, "-m", "dbdyno", *words]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def lacks(reason: str) -> NoReturn:
    """Ends a bench that lacks what it measures with, and says what."""
    print(reason, file=sys.stderr)
    sys.exit(LACKS)


def figure(
    what: str,
    value: float,
    unit: str,
    *,
    against: str = "",
    ratio: float | None = None,
    interval: tuple[float, float] | None = None,
    aim: str = "",
) -> None:
    """Keeps a figure, where figures are kept. `ratio`: this one over that of `against`, in the same unit."""
    path = os.environ.get(RESULTS)
    if not path or SMOKE:
        return
    line: JsonObject = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        "commit": commit(),
        "machine": machine(),
        "load": round(LOAD, 1),
        "command": command(),
        "bench": Path(sys.argv[0]).stem,
        "what": what,
        "value": float(f"{value:.4g}"),
        "unit": unit,
    }
    if ratio is not None:
        line |= {"against": against, "ratio": float(f"{ratio:.4g}")}
    if interval is not None:
        line |= {"low": float(f"{interval[0]:.4g}"), "high": float(f"{interval[1]:.4g}")}
    if aim:
        line["aim"] = aim
    with Path(path).open("a") as out:
        out.write(json.dumps(line, ensure_ascii=False) + "\n")


@functools.cache
def commit() -> str:
    """The commit of this tree, with + where files differ from it; empty outside of git."""
    git = ["git", "-C", str(ROOT)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
        kept = ("--", ".", ":!benches/results.jsonl", ":!docs/explanation/performance.md")
        dirty = subprocess.run([*git, "status", "--porcelain", *kept], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+" if dirty.stdout.strip() else "")


@functools.cache
def machine() -> str:
    """Processors, memory and system."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} x {model}, {memory_gb:.0f} GB, {platform.system()} {platform.release().split('-')[0]}"


def command() -> str:
    """The command as it can be typed again; FOLDER for a place of this machine."""
    given = ["FOLDER" if word.startswith("/") else word for word in sys.argv[1:]]
    return " ".join(["python", f"benches/{Path(sys.argv[0]).name}", *given])


def example(name: str) -> list[str]:
    """Return the command of a Rust example, which cargo makes where it is missing or old, in the profile asked for.

    As one of the whole workspace: of one package alone, its dependencies would have fewer features, and arrow and
    parquet were compiled once more for that.
    """
    profile = os.environ.get("PROFILE", "release")
    build = ["cargo", "build", "--profile", profile, "--quiet", "--workspace", "--example", name]
    subprocess.run(build, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / profile / "examples" / name)]
