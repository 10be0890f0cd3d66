"""Measures the speed of the model: a whole study, a flash card, and the kernel compared with SimPy (pip install
simpy).

The study is flash-log as its source ran it: 20 sessions, 200,000 commits each, with the flash log
and without, on a rack of three cells, all evidence written. The kernel runs M/M/1 beside SimPy on
the same model; both are asked for events per second of CPU time, an event being an arrival or a
departure. SimPy is no requirement of dbdyno: without it the other figures are printed. The bound of a
process per customer is the bare heap with a boxed future for each customer and nothing else.

`--mqsim PROGRAM` names the program of MQSim, built from its source: it and the flash card then simulate the same writes
alternately (mqsim.py), each as a whole process. Without it, that is left out.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mqsim
from figures import ROOT, SMOKE, example, figure, parse

CUSTOMERS = 100_000
RHO = 0.8


def study(commits: int) -> Any:
    """The study of a rack with the flash log and without it."""
    from dbdyno import _core

    arms = [
        {
            "name": word,
            "settings": {"cells.flash_log.enabled": word},
            "sessions": 20,
            "workload": {"kind": "commit-loop", "redo_bytes": "512"},
        }
        for word in ("off", "on")
    ]
    machine = _core.model_machine("exadata-x2")
    return _core.ModelRun({"machine": machine, "seed": 1, "transactions": commits, "arms": arms})


def flash_log(commits: int) -> dict[str, float]:
    """CPU time, peak memory of this process and size of the evidence of a whole block."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        answer = study(commits).block(0, Path(folder))
        cpu_s = time.process_time() - begin
        written = sum(part.stat().st_size for part in Path(folder).rglob("*.parquet"))
    events = sum(arm["events"] for arm in answer["report"]["arms"])
    return {
        "flash_log_commits": 2 * 20 * commits,
        "flash_log_cpu_s": round(cpu_s, 2),
        "flash_log_events": events,
        "flash_log_rows": answer["rows"] + answer["waits"],
        "flash_log_evidence_mb": round(written / 1e6, 1),
        "flash_log_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def printed(name: str, *sizes: int) -> dict[str, float]:
    """The figures that an example prints: the kernel in its styles, or the flash card."""
    command = [*example(name), *map(str, sizes)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def simpy_events_per_s() -> float | None:
    """The same queue, a process per customer; the best of three; None without SimPy."""
    if find_spec("simpy") is None:
        return None
    import simpy

    def customer(env, till, dice):  # type: ignore[no-untyped-def]
        with till.request() as turn:
            yield turn
            yield env.timeout(dice.expovariate(1.0))

    def source(env, till, dice):  # type: ignore[no-untyped-def]
        for _ in range(CUSTOMERS):
            yield env.timeout(dice.expovariate(RHO))
            env.process(customer(env, till, dice))

    best = 0.0
    for seed in range(3):
        env = simpy.Environment()
        env.process(source(env, simpy.Resource(env), random.Random(seed)))
        begin = time.process_time()
        env.run()
        best = max(best, 2 * CUSTOMERS / (time.process_time() - begin))
    return best


def beside_mqsim(program: Path, writes: int, rounds: int) -> None:
    """The card and MQSim alternately on the same writes: the ratio of their writes for each second of CPU time."""
    if not program.is_file():
        print(f"MQSim is left out: {program} is not a file. Build it from its source, and name its program.")
        return
    [card] = example("flash_bench")
    command = [card, str(writes), "1", str(mqsim.CHANNELS)]
    ratios, rates = [], []
    for _ in range(rounds):
        peer = mqsim.run(program, writes)
        cpu_s, text = mqsim.cpu_of(command)
        own = json.loads(text)
        under_way = own["pages_written"] - writes
        if peer.host_writes != writes or not 0 <= under_way <= mqsim.WRITERS:
            raise SystemExit(
                f"not the same work: {peer.host_writes} writes by MQSim, {own['pages_written']} by the card"
            )
        ratios.append(peer.cpu_s / cpu_s)
        rates.append(writes / cpu_s)
    rate, ratio = statistics.median(rates), statistics.median(ratios)
    print(
        f"flash card beside MQSim, {writes:,} writes: {rate:,.0f} writes/s, MQSim {rate / ratio:,.0f}, "
        f"ratio {ratio:.1f} ({min(ratios):.1f} to {max(ratios):.1f}); "
        f"programs {own['programs']:,} and {peer.programs:,}, erases {own['erases']:,} and {peer.erases:,}"
    )
    what = f"flash card with {mqsim.CHANNELS} channels, {writes:,} writes from erased"
    figure(what, rate, "1/s", against="MQSim", ratio=ratio)
    figure(f"{what}: programs", own["programs"], "count", against="MQSim", ratio=own["programs"] / peer.programs)


def main() -> None:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=200_000, help="of each session and arm")
    parser.add_argument("--writes", type=int, default=2_000_000, help="to the flash card")
    parser.add_argument("--customers", type=int, default=1_000_000)
    parser.add_argument("--mqsim", type=Path, help="program of MQSim")
    parser.add_argument("--mqsim-writes", type=int, default=1_000_000, help="to the card and to MQSim")
    given = parse(parser, commits=100, writes=20_000, customers=50_000, mqsim_writes=20_000)
    card = {f"flash_card_{name}": value for name, value in printed("flash_bench", given.writes).items()}
    figures = {**flash_log(given.commits), **card, **printed("kernel_bench", given.customers)}
    simpy = simpy_events_per_s()
    if simpy is not None:
        figures["simpy_events_per_s"] = round(simpy)
        for style in ("machine", "server", "customers"):
            figures[f"{style}_over_simpy"] = round(figures[f"{style}_events_per_s"] / simpy, 1)
    print(json.dumps(figures, indent=1))
    told(figures)
    if given.mqsim is None:
        print("MQSim is left out: name its program with --mqsim.")
    else:
        beside_mqsim(given.mqsim, given.mqsim_writes, 1 if SMOKE else 3)


def told(found: dict[str, float]) -> None:
    """Keeps the figures that have an aim."""
    figure("flash-log on a rack", found["flash_log_cpu_s"], "CPU-seconds", aim="< 60")
    figure("flash-log on a rack: peak memory", found["flash_log_peak_mb"], "MB", aim="< 500")
    figure("flash card, writes a second", found["flash_card_host_writes_per_s"], "1/s", aim=">= 2 million")
    aims = {"machine": "100x SimPy, 0.5 of the heap", "server": "", "customers": "0.5 of the heap"}
    for style, aim in aims.items():
        rate = found[f"{style}_events_per_s"]
        figure(f"M/M/1, {style}", rate, "events/s", against="a bare heap", ratio=found[f"{style}_over_bare"], aim=aim)
        if "simpy_events_per_s" in found:
            ratio = rate / found["simpy_events_per_s"]
            figure(f"M/M/1, {style}, and SimPy", rate, "events/s", against="SimPy", ratio=ratio, aim=aim)
    bound, ratio = found["futures_events_per_s"], found["futures_over_bare"]
    figure("M/M/1, customers: bound", bound, "events/s", against="a bare heap", ratio=ratio)


if __name__ == "__main__":
    main()
