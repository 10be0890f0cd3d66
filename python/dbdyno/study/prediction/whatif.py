"""Effect of changes on throughput and latency: over devices, sessions, cores and settings, each with a band.

The band is the uncertainty of the fit: each point is run again on machines whose measured parameters are drawn from
their intervals. It does not cover effects that the model leaves out.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.model.postgres import SimulationResult, simulate
from dbdyno.study.prediction.axes import CORES, DATA_DEVICE, DEVICE, SESSIONS, Axis, Point, points_of
from dbdyno.study.prediction.compare import CalibratedMachine, host_assumptions
from dbdyno.study.prediction.memory import BUFFERS

SCHEMA = 1
DRAWS = 6
"""Number of machines with drawn parameters that are simulated for the band of a point."""
TRANSACTIONS = 6_000
BUSY = 0.9
"""Busy share at which a resource counts as the bottleneck."""
KNEE_SHARE = 0.95
"""Share of its largest throughput that a curve reaches at its knee."""
_Z = 1.96


@dataclass(frozen=True)
class PointResult:
    """A point with its result, and with the results of the machines with drawn parameters."""

    point: Point
    outcome: SimulationResult
    drawn: list[SimulationResult]

    def row(self, prices: Mapping[str, Any]) -> JsonObject:
        """Return the point as a row of the page's model."""
        own = self.outcome
        rates = sorted([own.throughput_per_s, *(one.throughput_per_s for one in self.drawn)])
        tails = sorted([own.quantile_ns(0.99), *(one.quantile_ns(0.99) for one in self.drawn)])
        return {
            **self.point.levels,
            "throughput": own.throughput_per_s,
            "low": rates[0],
            "high": rates[-1],
            "p50": own.quantile_ns(0.5),
            "p99": own.quantile_ns(0.99),
            "p99_low": tails[0],
            "p99_high": tails[-1],
            "cores_busy": own.cores,
            "device_busy": own.device,
            "data_busy": own.data,
            "commits_per_flush": own.commits_per_flush,
            "binds": bottleneck(own),
            "per_money": _per_money(self.point, own, prices),
        }


def whatif(
    machine: CalibratedMachine,
    axes: Sequence[Axis],
    *,
    prices: Mapping[str, Any] | None = None,
    seed: int = 1,
    on_progress: Callable[[str], None] = lambda words: None,
) -> JsonObject:
    """Return the page about all combinations of levels.

    Raises:
        ModelError: A level is not valid for its axis, or the machine cannot run it.
    """
    points = points_of(machine.machine, axes, machine.sessions or 1)
    varied = intervals(machine)
    found = []
    for number, point in enumerate(points):
        on_progress(f"{number + 1} of {len(points)}")
        outcome = _run(point, {})
        dice = random.Random(seed)
        drawn = [_run(point, drawn_settings(varied, point.settings, dice)) for _ in range(DRAWS)] if varied else []
        found.append(PointResult(point, outcome, drawn))
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "whatif",
        "title": f"What if: {machine.machine.title}",
        "axes": [axis.name for axis in axes],
        "points": [one.row(prices or {}) for one in found],
        "priced": bool(prices),
        "figures": {"sweep": figure_curves(found, axes)},
        "sentences": [*curves(found, axes), *extrapolation(machine, axes)],
    }


def _run(point: Point, more: Mapping[str, str]) -> SimulationResult:
    settings = {**more, **point.settings}
    return simulate(
        point.machine, sessions=point.sessions, settings=settings, replications=1, transactions=TRANSACTIONS
    )


def intervals(machine: CalibratedMachine) -> dict[str, tuple[float, float, float]]:
    """Return the parameters of the modelled PostgreSQL that have an interval: value, low end and high end."""
    found = {}
    for row in machine.machine.parameters:
        value, ends = row["value"], row.get("interval")
        if row["path"].startswith("postgres.") and isinstance(value, int | float) and ends:
            found[row["path"]] = (float(value), float(ends[0]), float(ends[1]))
    return found


def drawn_settings(
    varied: Mapping[str, tuple[float, float, float]], kept: Mapping[str, str], dice: random.Random
) -> dict[str, str]:
    """Return values drawn at random from the intervals, except for settings whose values are in `kept`."""
    settings = {}
    for path, (value, low, high) in varied.items():
        drawn = dice.gauss(value, (high - low) / 2 / _Z)
        if path not in kept:
            settings[path] = repr(max(drawn, value / 20, 0.0))
    return settings


def bottleneck(outcome: SimulationResult) -> str:
    """Return the bottleneck of a result in words."""
    if outcome.cores >= BUSY:
        return "cores"
    if outcome.device >= BUSY:
        return "log device"
    if outcome.data >= BUSY:
        return "data device"
    waits = {name: ns for (_, name), ns in outcome.waits_ns.items()}
    if waits.get("transactionid", 0.0) > 0.3 * outcome.mean_ns:
        return "row locks"
    return "round trips"


def _per_money(point: Point, outcome: SimulationResult, prices: Mapping[str, Any]) -> float | None:
    """Return the transactions per unit of money, from prices per hour of cores, server and device."""
    if not prices:
        return None
    cores = float(point.levels.get(CORES, 0) or 0)
    hour = float(prices.get("core", 0.0)) * cores + float(prices.get("server", 0.0))
    hour += float(prices.get("devices", {}).get(point.levels.get(DEVICE, ""), 0.0))
    return outcome.throughput_per_s * 3_600 / hour if hour > 0 else None


def curves(point_results: Sequence[PointResult], axes: Sequence[Axis]) -> list[str]:
    """Return a sentence for each curve over sessions: its knee, and the bottleneck beyond it."""
    if SESSIONS not in [axis.name for axis in axes]:
        return []
    groups: dict[tuple[tuple[str, str], ...], list[PointResult]] = {}
    for one in point_results:
        key = tuple((name, level) for name, level in one.point.levels.items() if name != SESSIONS)
        groups.setdefault(key, []).append(one)
    return [_curve(key, sorted(own, key=lambda one: one.point.sessions)) for key, own in groups.items()]


def figure_curves(point_results: Sequence[PointResult], axes: Sequence[Axis]) -> JsonObject | None:
    """Return the figure's curves, over sessions or else over the first numeric axis; None if no axis is numeric."""
    names = [axis.name for axis in axes if len(axis.levels) > 1 and all(_is_number(level) for level in axis.levels)]
    over = SESSIONS if SESSIONS in names else next(iter(names), None)
    if over is None:
        return None
    curves: dict[str, list[dict[str, float]]] = {}
    for one in point_results:
        rest = ", ".join(f"{name} {level}" for name, level in one.point.levels.items() if name != over)
        all_drawn = [one.outcome, *one.drawn]
        rates, means = [own.throughput_per_s for own in all_drawn], [own.mean_ns for own in all_drawn]
        point = {
            "x": float(one.point.levels[over]),
            "per_s": rates[0],
            "per_s_low": min(rates),
            "per_s_high": max(rates),
        }
        point |= {"mean_ns": means[0], "mean_low_ns": min(means), "mean_high_ns": max(means)}
        curves.setdefault(rest or "model", []).append(point)
    return {
        "x_label": over,
        "operation": "transaction",
        "curves": [{"name": name, "points": points} for name, points in curves.items()],
    }


def _is_number(level: str) -> bool:
    return level.replace(".", "", 1).isdigit() and float(level) > 0


def _curve(key: Sequence[tuple[str, str]], point_results: Sequence[PointResult]) -> str:
    most = max(one.outcome.throughput_per_s for one in point_results)
    knee = next(one for one in point_results if one.outcome.throughput_per_s >= KNEE_SHARE * most)
    name = ", ".join(f"{axis} {level}" for axis, level in key) or "this machine"
    last = point_results[-1]
    if knee is last and len(point_results) > 1:
        return f"{name}: throughput still rises at {last.point.sessions} sessions ({most:,.0f}/s); {_binds(last)}."
    return f"{name}: the knee is at {knee.point.sessions} sessions, {most:,.0f}/s at most; {_binds(knee)}."


def _binds(point_result: PointResult) -> str:
    what = bottleneck(point_result.outcome)
    if what == "cores":
        return f"the cores are the limit there ({point_result.outcome.cores:.0%} busy)"
    if what == "log device":
        shared = f"{point_result.outcome.commits_per_flush:.3g} commits share a flush"
        return f"the log's device is the limit there ({point_result.outcome.device:.0%} busy, {shared})"
    if what == "data device":
        return f"the data files' device is the limit there ({point_result.outcome.data:.0%} busy)"
    if what == "row locks":
        return "row locks are the limit there"
    return f"no resource is full (cores {point_result.outcome.cores:.0%} busy): round-trip time is the limit"


def extrapolation(machine: CalibratedMachine, axes: Sequence[Axis]) -> list[str]:
    """Return sentences on how far each axis extends beyond the calibrated range."""
    said = [] if machine.sessions else [f"{host_assumptions()} The band includes that."]
    cores = machine.machine.number("postgres.cores")
    for axis in axes:
        numbers = [float(level) for level in axis.levels if _is_number(level)]
        if axis.name == SESSIONS and machine.sessions and numbers and max(numbers) > machine.sessions:
            said.append(
                f"Calibrated at {machine.sessions} session(s): {max(numbers):g} are an extrapolation of"
                f" {max(numbers) / machine.sessions:.3g} times."
            )
        if axis.name == CORES and numbers and math.isfinite(cores) and max(numbers) > cores:
            said.append(
                f"Calibrated on {cores:g} cores: up to {max(numbers):g} is an extrapolation, and latches"
                " that many cores contend for are not in the model."
            )
        if axis.name in (DEVICE, DATA_DEVICE) and any(level != "measured" for level in axis.levels):
            said.append(
                "The devices are the catalogue's, not measured here: their times exclude the file system's overhead."
            )
        if axis.name == BUFFERS:
            said.append(
                "Misses at other shared_buffers are expected from the pages that the script draws, independent of each"
                " other. What the kernel's own cache then answers is not known, except on a device mounted with direct"
                " I/O."
            )
    return said
