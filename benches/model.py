"""Speed of the model's kernel on M/M/1, beside SimPy on the same model (pip install simpy).

Both sides are asked for events per second of CPU time, an event being an arrival or a departure.
SimPy is no requirement of dbdyno: without it only the kernel's own figures are printed.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CUSTOMERS = 100_000
RHO = 0.8


def kernel() -> dict[str, float]:
    """Events per second of the kernel in its three styles and of a bare loop."""
    command = ["cargo", "run", "--release", "-q", "-p", "dyno-model", "--example", "kernel_bench"]
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


def main() -> None:
    """Prints one JSON object."""
    figures = kernel()
    simpy = simpy_events_per_s()
    if simpy is not None:
        figures["simpy_events_per_s"] = round(simpy)
        for style in ("machine", "server", "customers"):
            figures[f"{style}_over_simpy"] = round(figures[f"{style}_events_per_s"] / simpy, 1)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
