"""A whole machine from one arm of a run: what was measured, what was fitted, and what had to be taken as a default.

Measured are the CPU of statements, client and flush, the device, the delays of round trips and the pause between
transactions. Fitted is one number: the factor of the delays with which the model's median latency is the arm's own. In
an arm of one session it is near 1; with more sessions the delays that clients see contain time in the run queue, which
the model has of its own, and the factor takes it out again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbdyno.model.postgres import simulate
from dbdyno.study.prediction.costs import Costs, costs_of
from dbdyno.study.prediction.device import LogDevice, device_of
from dbdyno.study.prediction.observed import Observed
from dbdyno.study.prediction.parameter import DEFAULT, FITTED, MEASURED, Parameter, measured
from dbdyno.study.prediction.server import server_settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

FACTOR_MOST = 4.0
ROUNDS = 9
CLOSE = 0.003
"""Relative difference of the medians at which the factor is good enough."""
INSENSITIVE = 0.05
"""Relative change of the median, from no delay to the whole one, below which an arm does not determine the factor."""


@dataclass(frozen=True)
class Machine:
    """A calibrated machine.

    Attributes:
        title: Its title.
        parameters: Parameters of the section [postgres].
        scheduler: Those of its scheduler.
        device: The device of the log.
        statements: Its statements with their costs.
        scripts: Scripts of the calibrated arm.
        notes: Sentences about the fit.
        undetermined: Keys that the arm does not determine.
    """

    title: str
    parameters: list[Parameter]
    scheduler: list[Parameter]
    device: LogDevice
    statements: list[dict[str, Any]]
    notes: list[str]
    undetermined: list[str]

    def toml(self) -> str:
        """Return the machine as TOML."""
        from dbdyno.study.prediction.parameter import toml_value

        lines = [f"title = {toml_value(self.title)}", "", "[postgres]"]
        lines += [parameter.toml() for parameter in self.parameters]
        lines += ["", "[postgres.scheduler]", *(parameter.toml() for parameter in self.scheduler), ""]
        return "\n".join(lines) + "\n" + self.device.toml + '\n[storage]\nredo = "log"\ndata = "log"\n'


def calibrate(seen: Observed, on_progress: Callable[[str], None] = lambda words: None) -> Machine:
    """Return the machine of an arm.

    Raises:
        ModelError: The model cannot run what was measured.
    """
    costs = costs_of(seen)
    device = device_of(seen, costs.flush_us.value)
    settings, scheduler, notes = server_settings(seen)
    statements = [
        {
            "text": text,
            "user_us": cpu * (1 - costs.system),
            "system_us": cpu * costs.system,
            "wal_bytes": wal,
        }
        for text, cpu, wal in zip(seen.steps.statements, costs.cpu_us, costs.wal_bytes, strict=True)
    ]
    how = f"CPU of a transaction ({costs.server.value:.4g} us) by unhurried times; log of a transaction by writers"
    parameters = [
        *settings,
        costs.client,
        costs.flush_us,
        costs.insert,
        _think(seen, costs.client.value),
        *_others(seen),
        *_delay(costs),
        *_factors(costs, device),
        Parameter("cpu_sigma", 0.0, MEASURED, "the spread of statements is in their delays"),
        Parameter("statements", statements, MEASURED, how),
        Parameter("scripts", list(seen.steps.scripts), MEASURED, "the script, drawn"),
        Parameter("calibrated_sessions", seen.sessions, MEASURED, "sessions of the arm"),
    ]
    title = f"calibrated from {seen.arm.name} of {seen.run.id}"
    machine = Machine(title, parameters, scheduler, device, statements, [*seen.steps.notes, *notes, *device.notes], [])
    return _with_factor(machine, seen, costs, on_progress)


def _factors(costs: Costs, device: LogDevice) -> list[Parameter]:
    """Return factors of 1 whose intervals say how well CPU and device are known."""
    server, median = costs.server, device.parameters[0]
    found = []
    if server.value and math.isfinite(server.low):
        low, high = max(server.low / server.value, 0.01), server.high / server.value
        found.append(Parameter("cpu_factor", 1.0, MEASURED, f"{server.how}: {server.value:.4g} us", low, high))
    if device.report and median.value:
        low, high = median.low / median.value, median.high / median.value
        found.append(
            Parameter("device_factor", 1.0, MEASURED, f"median of the device: {median.value:.4g} us", low, high)
        )
    return found


def _others(seen: Observed) -> list[Parameter]:
    """Return the cores that other programs used beside the load, all arms together."""
    if not seen.others_cores:
        return []
    how = "the host's busy time without the load and the sessions' server processes, blocks"
    return [measured("others_cores", seen.others_cores, how)]


def _think(seen: Observed, client_us: float) -> Parameter:
    """Return the pause of a session between two transactions: what its throughput leaves beside its latency.

    A pause of less than two round trips of the client is work of the client, which is among its CPU.
    """
    values = seen.measures.values
    pauses = seen.sessions * 1e9 / values["throughput"] - values["mean"]
    found = measured("think", [float(ns) / 1e3 for ns in pauses], "sessions / throughput - mean latency, blocks", "us")
    if found.value < 2 * client_us:
        how = f"{found.value:.3g} us between transactions, which is the client's work"
        return Parameter("think", {"kind": "constant", "us": 0.0}, MEASURED, how, unit="us")
    return replace(found, value={"kind": "constant", "us": found.value})


def _delay(costs: Costs) -> list[Parameter]:
    delays = costs.delays_us
    if not len(delays):
        how = "no statement of this arm shows delays apart from flushes and locks"
        return [Parameter("delay", {"kind": "constant", "us": 30.0}, DEFAULT, how)]
    how = f"{len(delays)} round trips beyond their CPU"
    return [
        Parameter("delay", table(delays), MEASURED, how),
        Parameter("delay_memory", costs.memory, MEASURED, "rank correlation of neighbouring delays"),
    ]


def table(values: Floats) -> dict[str, Any]:
    """Return measured quantiles as a distribution of a machine: 31 of 81 points in the last decile."""
    import numpy as np

    body = [0.0, 0.0005, 0.002, 0.005, *(0.01 + at / 50 for at in range(45))]
    places = [*body, *(1.0 - 10 ** (-1.0 - at / 10) for at in range(31)), 1.0]
    found = np.maximum.accumulate(np.maximum(np.quantile(values, places), 1e-3))
    return {"kind": "measured", "probability": [round(p, 8) for p in places], "us": [float(us) for us in found]}


def _with_factor(machine: Machine, seen: Observed, costs: Costs, on_progress: Callable[[str], None]) -> Machine:
    """Return the machine with the factor of the delays at which its median is the arm's."""
    import numpy as np

    live_ns = float(np.median(seen.measures.pooled()))
    toml = machine.toml()

    def median_ns(factor: float) -> float:
        on_progress(f"fitting the delays: factor {factor:.3f}")
        settings = {"postgres.delay_factor": repr(factor)}
        return simulate(toml, sessions=seen.sessions, settings=settings, replications=1).quantile_ns(0.5)

    found, reached = _root(median_ns, live_ns)
    share = (median_ns(1.0) - median_ns(0.0)) / live_ns
    undetermined, notes = [], list(machine.notes)
    how = f"median of the model = median of {seen.arm.name} ({live_ns / 1e3:.4g} us)"
    if abs(reached / live_ns - 1) > 10 * CLOSE:
        notes.append(
            f"No factor of the delays gives the arm's median: the nearest is {reached / live_ns - 1:+.1%} off."
        )
    if share < INSENSITIVE or not len(costs.delays_us):
        undetermined.append("delay")
        notes.append("The delays of round trips hardly matter in this arm, so it does not determine them.")
    if costs.insert.source == DEFAULT and any(seen.steps.changes):
        undetermined.append("insert_us_per_kb")
    if not machine.device.report:
        undetermined.append("device")
    elif machine.device.parameters[-1].source == DEFAULT:
        undetermined.append("device write_us_per_kb")
    factor = Parameter("delay_factor", found, FITTED, how)
    return replace(machine, parameters=[*machine.parameters, factor], notes=notes, undetermined=undetermined)


def _root(median_ns: Callable[[float], float], live_ns: float) -> tuple[float, float]:
    """Return the factor whose median is nearest to the live one, by bisection, and that median."""
    low, high = 0.0, FACTOR_MOST
    best, reached = 1.0, median_ns(1.0)
    at = best
    value = reached
    for _ in range(ROUNDS):
        if abs(value / live_ns - 1) < abs(reached / live_ns - 1):
            best, reached = at, value
        if abs(value / live_ns - 1) < CLOSE or math.isnan(value):
            break
        low, high = (at, high) if value < live_ns else (low, at)
        at = (low + high) / 2 if low > 0 or high < FACTOR_MOST else at
        value = median_ns(at)
    return best, reached
