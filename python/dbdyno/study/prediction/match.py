"""Fit of a machine: the factors with which its model reproduces the calibrated arm.

    delay_factor     the model's median latency equals that of the arm; 1 if the delays were measured on round trips
                     over two cores, which show them without any waiting
    device_factor    the mean time of a log sync equals that of the arm: a measured wait ends when the process has
                     a core again, and the model adds that time itself
    sync_served_us   in its place if the run had mounted the device: the CPU time of what serves a sync, which is the
                     time by which a sync is longer than the device takes
    data_factor      the same for a read of the data files

The factors are found in a few rounds, one factor at a time with the others fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from dbdyno.model.postgres import SimulationResult, simulate
from dbdyno.study.prediction.observation import SYNC, Observation

FACTOR_MOST = 4.0
DEVICE_LEAST, DEVICE_MOST = 0.05, 3.0
SERVED_MOST_US = 500.0
HALVINGS = 8
HALT_US = (25.0, 3200.0)
"""Range of the time after which an idle processor is halted [us]."""
TURNS = 3
CLOSE = 0.003
INSENSITIVE = 0.05
"""Smallest relative change of the median, between no delay and full delay, for an arm to determine the factor."""

Factors = tuple[float, float]
"""Factors of the times of the log device and of the data device; if the log device is a modelled one, the first is the
CPU time of what serves a sync [us].
"""


@dataclass(frozen=True)
class Match:
    """Fitted factors, the relative error of the model's median, and the effect of the delays on the median.

    `share` is the share of the median that comes from the delays; if it is small, the arm does not determine their
    factor.
    """

    delay: float
    device: float
    off: float
    share: float
    data: float = 1.0
    halt_us: float = 0.0
    served_us: float | None = None


@dataclass(frozen=True)
class Devices:
    """Measured times of an arm's devices.

    Attributes:
        inside_us: CPU time inside a measured wait for a sync, which the model does not count as part of the wait [us].
        sync_us: Mean time of a sync without its CPU time, if no waits were measured [us]; 0 if it is not known.
        read_us: Mean time of a read of the data files without its CPU time [us]; 0 if it is not fitted.
        modelled: True if the log device is a modelled one, whose times are known.
    """

    inside_us: float
    sync_us: float = 0.0
    read_us: float = 0.0
    modelled: bool = False


def match(
    machine: str,
    observation: Observation,
    devices: Devices,
    *,
    delays_known: bool = False,
    on_progress: Callable[[str], None],
) -> Match:
    """Return the factors with which a machine (TOML) reproduces its arm; in the TOML all factors are 1.

    Args:
        machine: The machine.
        observation: Observation of the arm.
        devices: Measured times of the arm's devices.
        delays_known: True if the delays need no factor.
        on_progress: Called with a text about the current work.

    Raises:
        ModelError: The model cannot run the arm's workload.
    """
    import numpy as np

    median_ns = float(np.median(observation.measures.pooled_latencies()))
    syncs = observation.waits_for(SYNC)["elapsed_ns"]
    known = devices.sync_us > 0 or not len(syncs)
    reports = observation.reports
    client_ns = sum(r.get("load_cpu_ns", 0) for r in reports) / max(sum(r["transactions"] for r in reports), 1)
    delays_known = delays_known and client_ns > 0
    sync_ns = devices.sync_us * 1e3 if known else max(float(syncs.mean()) - devices.inside_us * 1e3, 0.0)

    @cache  # the last round often asks for the same factors as the one before it
    def run(delay: float, factors: Factors, halt_us: float = 0.0) -> SimulationResult:
        device, data = factors
        what = "time to serve a sync [us]" if devices.modelled else "factor of the log's device"
        on_progress(f"fitting: factor of delays {delay:.3f}, {what} {device:.3f}, factor of the data's {data:.3f}")
        log = "sync_served_us" if devices.modelled else "device_factor"
        settings = {"postgres.delay_factor": repr(delay), f"postgres.{log}": repr(device)}
        if devices.read_us:
            settings["postgres.data_factor"] = repr(data)
        if halt_us:
            settings["postgres.scheduler.halt_us"] = repr(halt_us)
        return simulate(machine, sessions=observation.sessions, settings=settings, replications=1)

    def found(factors: Factors) -> tuple[float, float, SimulationResult]:
        if delays_known:
            halt_us, outcome = _halt(lambda us: run(1.0, factors, us), client_ns)
            return 1.0, halt_us, outcome
        delay, outcome = _delay(run, factors, median_ns)
        return delay, 0.0, outcome

    better_log = _served if devices.modelled else _factor
    factors = (0.0 if devices.modelled else 1.0, 1.0)
    for _ in range(TURNS):
        delay, halt_us, outcome = found(factors)
        better = (
            better_log(factors[0], sync_ns, outcome.sync_ns),
            _factor(factors[1], devices.read_us * 1e3, outcome.read_ns),
        )
        if better == factors:
            break
        factors = better
    delay, halt_us, outcome = found(factors)
    whole = run(1.0, factors, halt_us)
    share = (whole.quantile_ns(0.5) - run(0.0, factors, halt_us).quantile_ns(0.5)) / median_ns
    if share < INSENSITIVE:
        # Any factor gives the same median, so that the one found says nothing: the delays stay as they were measured.
        delay, outcome = 1.0, whole
    served_us = factors[0] if devices.modelled and sync_ns else None
    off = outcome.quantile_ns(0.5) / median_ns - 1
    return Match(delay, 1.0 if devices.modelled else factors[0], off, share, factors[1], halt_us, served_us)


def _halt(run: Callable[[float], SimulationResult], client_ns: float) -> tuple[float, SimulationResult]:
    """Return the time after which an idle processor is halted [us], and its result: the client's CPU time is the arm's.

    A process whose last processor is halted joins its waker, and then neither of them has to start one. So the longer
    the time, the more CPU time the client needs.
    """
    low, high = HALT_US
    best: tuple[float, float, SimulationResult] | None = None
    for _ in range(HALVINGS):
        at = math.sqrt(low * high)
        outcome = run(at)
        off = outcome.client_cpu_ns / client_ns - 1
        if best is None or abs(off) < abs(best[0]):
            best = (off, at, outcome)
        if abs(off) < CLOSE:
            break
        low, high = (at, high) if off < 0 else (low, at)
    assert best is not None
    return best[1], best[2]


def _factor(factor: float, live_ns: float, model_ns: float) -> float:
    """Return a better factor for a device's times, or the same factor if the model is close or nothing is fitted."""
    if not live_ns or not model_ns or abs(model_ns / live_ns - 1) < CLOSE:
        return factor
    return min(max(factor * live_ns / model_ns, DEVICE_LEAST), DEVICE_MOST)


def _served(served_us: float, live_ns: float, model_ns: float) -> float:
    """Return a better CPU time of what serves a sync [us], or the same if the model is close or nothing is fitted."""
    if not live_ns or not model_ns or abs(model_ns / live_ns - 1) < CLOSE:
        return served_us
    return min(max(served_us + (live_ns - model_ns) / 1e3, 0.0), SERVED_MOST_US)


def _delay(
    run: Callable[[float, Factors], SimulationResult], factors: Factors, median_ns: float
) -> tuple[float, SimulationResult]:
    """Return, by bisection, the delay factor with which the model's median is nearest to the arm's, and the result."""
    low, high, at = 0.0, FACTOR_MOST, 1.0
    best: tuple[float, float, SimulationResult] | None = None
    for _ in range(HALVINGS):
        outcome = run(at, factors)
        off = outcome.quantile_ns(0.5) / median_ns - 1
        if best is None or abs(off) < abs(best[0]):
            best = (off, at, outcome)
        if abs(off) < CLOSE:
            break
        low, high = (at, high) if off < 0 else (low, at)
        at = (low + high) / 2
    assert best is not None
    return best[1], best[2]
