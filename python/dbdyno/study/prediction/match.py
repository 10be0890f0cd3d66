"""Fit of a machine: the two numbers for which its model reproduces the calibrated arm.

    delay_factor     the median latency is the arm's
    device_factor    a sync of the log takes the arm's mean time: a measured wait ends when the process has a core
                     again, and the model adds that time itself

Each is found with the other as it is, in turn, a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dbdyno.model.postgres import Simulated, simulate
from dbdyno.study.prediction.observed import SYNC, Observed

FACTOR_MOST = 4.0
DEVICE_LEAST, DEVICE_MOST = 0.05, 3.0
HALVINGS = 8
TURNS = 3
CLOSE = 0.003


@dataclass(frozen=True)
class Match:
    """Fitted numbers, the relative error of the model's median, and the effect of the delays on it.

    `share` is the part of the median that the whole delays make up: where it is small the arm does not determine them.
    """

    delay: float
    device: float
    off: float
    share: float


def match(
    machine: str, seen: Observed, inside_us: float, sync_us: float = 0.0, *, on_progress: Callable[[str], None]
) -> Match:
    """Return the numbers for which a machine (TOML) with factors of 1 reproduces its arm.

    Args:
        machine: The machine.
        seen: The arm.
        inside_us: CPU time inside a measured wait for a sync, which the model has outside of it.
        sync_us: Mean time of a sync without its CPU, where no waits were measured; 0 if it is not known.
        on_progress: Called with what is being done.

    Raises:
        ModelError: The model cannot run what was measured.
    """
    import numpy as np

    median_ns = float(np.median(seen.measures.pooled()))
    syncs = seen.of_wait(SYNC)["elapsed_ns"]
    live_ns = max(float(syncs.mean()) - inside_us * 1e3, 0.0) if len(syncs) else sync_us * 1e3

    def run(delay: float, device: float) -> Simulated:
        on_progress(f"fitting: factor of delays {delay:.3f}, of the device {device:.3f}")
        settings = {"postgres.delay_factor": repr(delay), "postgres.device_factor": repr(device)}
        return simulate(machine, sessions=seen.sessions, settings=settings, replications=1)

    device = 1.0
    for _ in range(TURNS):
        delay, outcome = _delay(run, device, median_ns)
        if not live_ns or not outcome.sync_ns or abs(outcome.sync_ns / live_ns - 1) < CLOSE:
            break
        device = min(max(device * live_ns / outcome.sync_ns, DEVICE_LEAST), DEVICE_MOST)
    delay, outcome = _delay(run, device, median_ns)
    share = (run(1.0, device).quantile_ns(0.5) - run(0.0, device).quantile_ns(0.5)) / median_ns
    return Match(delay, device, outcome.quantile_ns(0.5) / median_ns - 1, share)


def _delay(run: Callable[[float, float], Simulated], device: float, median_ns: float) -> tuple[float, Simulated]:
    """Return the factor of the delays with the nearest median, found by bisection, and its result."""
    low, high, at = 0.0, FACTOR_MOST, 1.0
    best: tuple[float, float, Simulated] | None = None
    for _ in range(HALVINGS):
        outcome = run(at, device)
        off = outcome.quantile_ns(0.5) / median_ns - 1
        if best is None or abs(off) < abs(best[0]):
            best = (off, at, outcome)
        if abs(off) < CLOSE:
            break
        low, high = (at, high) if off < 0 else (low, at)
        at = (low + high) / 2
    assert best is not None
    return best[1], best[2]
