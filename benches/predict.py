"""Predicts arms of real runs by a machine calibrated on one of them: errors in the median and at p99.

On each place (a modelled device mounted under the embedded PostgreSQL, or this machine's own disk) two runs are
made: commits of 1 to 64 KiB, and TPC-B with its select alone. Each calibrates on one arm and predicts all others, which
are drawn by a seed from sessions 1 to 32, synchronous_commit on and off, and commit_delay. Then devices are swapped:
what was calibrated on one place predicts the run on another. An error is model / live - 1; the aims are 10 % at the
median and 25 % at p99.

Three more loads are of data files, which alone are on the place, with direct I/O: reads of a table of ten times
shared_buffers, by keys drawn uniformly (reads) or by Zipf's law (zipf), with other sizes of shared_buffers among the
arms; and sorts with a small work_mem (spills).

    python benches/predict.py [--places own,gp3,io2,disk-15000] [--loads commits,TPC-B,reads,zipf,spills]
                              [--arms 9] [--blocks 6] [--seed 45] [--out FILE.json] [--markdown FILE.md]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import dbdyno, figure, lacks, parse

from dbdyno.base.errors import DeviceError
from dbdyno.device.mounts import check_machine
from dbdyno.evidence.run import find_run
from dbdyno.model.machine import parse_machine
from dbdyno.model.swap import with_data_device, with_device
from dbdyno.study.analysis.measured.measures import measure
from dbdyno.study.prediction.compare import AIMS, CalibratedMachine, predict
from dbdyno.study.prediction.fit import calibrate
from dbdyno.study.prediction.observation import observe, timed_waits

OWN = "own"
SESSIONS = (1, 2, 4, 8, 16, 32)
SIZES = ("1KiB", "4KiB", "16KiB", "64KiB")
FITTED = "fit"
SELECT = "\\\\set aid random(1, 100000 * :scale)\\nselect abalance from dbdyno.accounts where aid = :aid;\\n"


@dataclass(frozen=True)
class Pair:
    """An arm that was not used in fitting: live beside the model."""

    place: str
    calibrated: str
    load: str
    arm: str
    errors: dict[str, float]
    inside: dict[str, bool]
    cores: float


def commits(draw: random.Random, count: int, blocks: int, turn: str) -> str:
    """A plan of commits: the fitted arm draws its sizes, the others have one each."""
    arms = [f'[[arm]]\nname = "{FITTED}"\nsessions = 1\nparameters = {{redo_bytes = "1KiB..64KiB"}}']
    grid = [(n, size, how) for n in SESSIONS for size in SIZES for how in ("on", "off", "delay")]
    for n, size, how in draw.sample(grid, count):
        settings = f"\nsettings = {_settings(how)}" if how != "on" else ""
        parameters = f'parameters = {{redo_bytes = "{size}"}}'
        arms.append(f'[[arm]]\nname = "{size} x{n} {how}"\nsessions = {n}\n{parameters}{settings}')
    work = '[workload]\nkind = "commit-loop"'
    return _plan("commits of 1 to 64 KiB", work, arms, blocks, turn)


def transfers(draw: random.Random, count: int, blocks: int, turn: str) -> str:
    """A plan of TPC-B; some arms run its select alone."""
    arms = [f'[[arm]]\nname = "{FITTED}"\nsessions = 1']
    grid = [(n, what, how) for n in SESSIONS for what in ("tpcb", "select") for how in ("on", "off", "delay")]
    grid = [row for row in grid if row != (1, "tpcb", "on") and (row[1] == "tpcb" or row[2] == "on")]
    for n, what, how in draw.sample(grid, count):
        settings = f"\nsettings = {_settings(how)}" if how != "on" else ""
        scripts = f'\nscripts = [{{name = "select", text = "{SELECT}"}}]' if what == "select" else ""
        arms.append(f'[[arm]]\nname = "{what} x{n} {how}"\nsessions = {n}{settings}{scripts}')
    work = '[workload]\nbuiltin = "tpcb-like"\nscale = 5'
    return _plan("TPC-B and its select", work, arms, blocks, turn)


def _settings(how: str) -> str:
    return {"off": '{synchronous_commit = "off"}', "delay": "{commit_delay = 300, commit_siblings = 2}"}[how]


def _plan(title: str, work: str, arms: list[str], blocks: int, turn: str, *, files: bool = False) -> str:
    # A volume saves what it did not use for a tenth of a second, which a short slice of a turn would live on.
    piece = "2s" if files else "250ms"
    # Exact waits cost busy arms up to a third of their throughput, and have tails of their own; files need them.
    waits = "exact" if files else "read"
    schedule = f'[schedule]\nblocks = {blocks}\nwarmup_blocks = 1\nturn = "{turn}"\nslice = "{piece}"'
    # Arms do different work on purpose.
    rest = f'[watch]\nwaits = "{waits}"\noverhead_blocks = 0\n[verdict]\naccept = ["work"]'
    return "\n".join([f'title = "{title}"', work, schedule, rest, *arms, ""])


def reads(draw: random.Random, count: int, blocks: int, turn: str, keys: str = "random(1, 100000)") -> str:
    """A plan of rows read by key from a table of 90 MB, with buffers of 8 MB in the fitted arm."""
    arms = [_reading(FITTED, 1, "8MB")]
    grid = [(n, size) for n in SESSIONS for size in ("4MB", "8MB", "24MB") if (n, size) != (1, "8MB")]
    arms += [_reading(f"x{n} {size}", n, size) for n, size in draw.sample(grid, count)]
    script = f"\\\\set id {keys}\\nselect v from big where id = :id;\\n"
    return _plan(f"reads by {keys}", _work(script, _BIG), arms, blocks, turn, files=True)


def zipf(draw: random.Random, count: int, blocks: int, turn: str) -> str:
    """The same, with keys of which few are popular."""
    return reads(draw, count, blocks, turn, "random_zipfian(1, 100000, 1.05)")


def spills(draw: random.Random, count: int, blocks: int, turn: str) -> str:
    """A plan of sorts that do not fit into work_mem."""
    names = [(FITTED, 1), *((f"sort x{n}", n) for n in sorted(draw.sample(SESSIONS[1:], min(count, 5))))]
    arms = [f'[[arm]]\nname = "{name}"\nsessions = {n}\nsettings = {{work_mem = "64kB"}}' for name, n in names]
    script = (
        "\\\\set b random(0, 9)\\nselect max(n) from (select row_number() over (order by v, pad) as n"
        " from tosort where bucket = :b) s;\\n"
    )
    return _plan("sorts that spill", _work(script, _SORTED), arms, blocks, turn, files=True)


_BIG = (
    "create table big (id int primary key, v int, pad text) with (fillfactor = 100)",
    "insert into big select n, n, repeat('x', 700) from generate_series(1, 100000) n",
    "vacuum analyze big",
    "checkpoint",
)
_SORTED = (
    "create table tosort (bucket int, v int, pad text)",
    "insert into tosort select n % 10, (n * 7919) % 100003, repeat('x', 60) from generate_series(1, 20000) n",
    "create index on tosort (bucket)",
    "vacuum analyze tosort",
    "checkpoint",
)


def _reading(name: str, sessions: int, buffers: str) -> str:
    server = f'{{settings = {{shared_buffers = "{buffers}"}}}}'
    return f'[[arm]]\nname = "{name}"\nsessions = {sessions}\nserver = {server}'


def _work(script: str, setup: tuple[str, ...]) -> str:
    return f'[workload]\nscripts = [{{name = "one", text = "{script}"}}]\nsetup = {json.dumps(setup)}'


LOADS = {"commits": commits, "TPC-B": transfers, "reads": reads, "zipf": zipf, "spills": spills}
FILES = ("reads", "zipf", "spills")
"""Loads of data files: these alone are on the place, which the plan names."""


def on_place(place: str, load: str) -> str:
    """The lines of a plan that put the server's files, or its data files alone, on a place."""
    if place == OWN:
        return ""
    files = f'{{data = "{place}", direct_io = true}}' if load in FILES else f'"{place}"'
    return f"[target]\ndevice = {files}\n"


def run(plan: str, work: Path, name: str) -> Path:
    """Runs a plan, unless it has been run; the run's folder."""
    file, out, servers = work / f"{name}.toml", work / f"runs-{name}", work / "servers"
    if list(out.glob("*/analysis.json")):
        return next(path.parent for path in out.glob("*/manifest.json"))
    servers.mkdir(exist_ok=True)
    servers.chmod(0o777)
    file.write_text(plan)
    done = dbdyno("run", str(file), "--out", str(out), TMPDIR=str(servers))
    if done.returncode not in (0, 1):
        lacks(f"{name}: {done.stderr.strip()[-600:]}")
    return next(path.parent for path in out.glob("*/manifest.json"))


def fitted(path: Path) -> str:
    """The machine of a run's fitted arm, as TOML."""
    live = find_run(str(path), path.parent)
    return calibrate(timed_waits(observe(live, measure(live), FITTED))).toml()


def pairs(path: Path, machine: str, place: str, calibrated: str, load: str) -> Iterator[Pair]:
    """All arms of a run but the fitted one, beside the model."""
    live = find_run(str(path), path.parent)
    given = CalibratedMachine.from_machine(parse_machine("model:calibrated", machine))
    for arm in predict(live, measure(live), given)["arms"]:
        if arm["arm"] == FITTED and place == calibrated:
            continue
        errors = {row["metric"]: row["error"] for row in arm["metrics"]}
        inside = {row["metric"]: row["inside"] for row in arm["metrics"]}
        yield Pair(place, calibrated, load, arm["arm"], errors, inside, arm["cores"])


def rows_of(found: list[Pair]) -> str:
    """The table of all pairs, in Markdown."""
    lines = [
        "| place | calibrated on | load | arm | throughput | p50 | p99 | missed | in the live interval |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for pair in found:
        cells = [f"{pair.errors[name]:+.1%}" for name in ("throughput", "p50", "p99")]
        missed = ", ".join(name for name, aim in AIMS.items() if abs(pair.errors[name]) > aim)
        within = ", ".join(name for name in AIMS if pair.inside[name])
        first = [pair.place, pair.calibrated, pair.load, pair.arm]
        lines.append("| " + " | ".join([*first, *cells, missed, within]) + " |")
    return "\n".join(lines) + "\n"


def kept(found: list[Pair], what: str, wanted: int = 60) -> None:
    """Prints and keeps how many pairs reach the aims, of which `wanted` are asked for, and the middle error."""
    for metric, aim in AIMS.items():
        errors = sorted(abs(pair.errors[metric]) for pair in found)
        if not errors:
            continue
        good = sum(error <= aim for error in errors) / len(errors)
        middle = errors[len(errors) // 2]
        print(f"{what}: {metric} within {aim:.0%} in {good:.0%} of {len(errors)} pairs, median error {middle:.1%}")
        inside = sum(pair.inside[metric] for pair in found) / len(found)
        print(f"{what}: {metric} within the live run's own interval in {inside:.0%}")
        figure(f"{what}: {metric}, share of pairs within {aim:.0%}", good, "share", aim=f"all of {wanted} pairs")
        figure(f"{what}: {metric}, median error", middle, "share", aim=f"{aim:.0%}")


def options(about: str | None, places: str, arms: int) -> argparse.ArgumentParser:
    """The options of a bench that predicts arms drawn by a seed on several places."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", default=places)
    parser.add_argument("--arms", type=int, default=arms)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--turn", default="1s")
    parser.add_argument("--seed", type=int, default=45)
    parser.add_argument("--work", type=Path, help="keep runs and machines there; what is there is not run again")
    parser.add_argument("--markdown", type=Path)
    return parser


def chosen_places(given: argparse.Namespace) -> list[str]:
    """The places asked for; the bench ends where this machine cannot mount them."""
    places: list[str] = given.places.split(",")
    try:
        if places != [OWN]:
            check_machine()
    except DeviceError as error:
        lacks(str(error))
    print(f"seed {given.seed}, load {os.getloadavg()[0]:.1f}")
    return places


@contextlib.contextmanager
def working_folder(given: argparse.Namespace) -> Iterator[Path]:
    """The folder of runs and machines, which servers of other users can read."""
    with contextlib.ExitStack() as stack:
        work = given.work or Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        work.mkdir(exist_ok=True)
        work.chmod(0o755)
        yield work


def main() -> None:
    """All places and loads."""
    parser = options(__doc__, "own,gp3,io2,disk-15000", 9)
    parser.add_argument("--loads", default="commits,TPC-B")
    parser.add_argument("--out", type=Path)
    given = parse(parser, places="own", loads="commits", arms=1, blocks=2, turn="250ms")
    places = chosen_places(given)
    with working_folder(given) as work:
        found = everything(places, given, work)
    if given.markdown:
        given.markdown.write_text(rows_of(found))
    if given.out:
        given.out.write_text(json.dumps([vars(pair) for pair in found], indent=1) + "\n")


def everything(places: list[str], given: Any, work: Path) -> list[Pair]:
    """Runs all loads on all places, predicts them, and swaps the devices."""
    runs: dict[tuple[str, str], Path] = {}
    machines: dict[tuple[str, str], str] = {}
    found: list[Pair] = []
    for place in places:
        for load in given.loads.split(","):
            plan = LOADS[load]
            draw = random.Random(f"{given.seed} {place} {load}")
            text = plan(draw, given.arms, given.blocks, given.turn) + on_place(place, load)
            runs[place, load] = run(text, work, f"{place}-{load}")
            machines[place, load] = fitted(runs[place, load])
            (work / f"{place}-{load}-machine.toml").write_text(machines[place, load])
            own = list(pairs(runs[place, load], machines[place, load], place, place, load))
            kept(own, f"{load} on {place}")
            found += own
            print(rows_of(own))
    kept(found, "calibrated and predicted on one place")
    swapped: list[Pair] = []
    for (place, load), machine in machines.items():
        for other in places:
            if other not in (place, OWN):
                toml = (with_data_device if load in FILES else with_device)(machine, other)
                swapped += pairs(runs[other, load], toml, other, place, load)
    if swapped:
        kept(swapped, "devices swapped")
        print(rows_of(swapped))
    return found + swapped


if __name__ == "__main__":
    main()
