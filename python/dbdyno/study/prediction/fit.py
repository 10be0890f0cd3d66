"""A complete machine from one arm of a run: measured parameters, fitted ones, and those with default values.

The CPU time of statements, client and flush, the device, the delays of round trips, the pause between transactions, and
the cores used by other programs are measured. Factors of the delays and of the devices' times are fitted (`match.py`),
because measured delays and waits include time in the run queue, which the model adds itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dbdyno.base.json_types import JsonObject
from dbdyno.study.prediction import mariadb
from dbdyno.study.prediction.commits import device_of_commits, needs_commits, served_parameters
from dbdyno.study.prediction.costs import CLIENT_COLD_FROM, CLIENT_COLD_US, WRITES_DEFAULT, Costs, costs_of
from dbdyno.study.prediction.device import LogDevice, device_of, device_of_canaries, mounted_device
from dbdyno.study.prediction.file_costs import FileCosts, file_costs, fitted_factor
from dbdyno.study.prediction.match import INSENSITIVE, Devices, match
from dbdyno.study.prediction.observation import MARIADB, Observation
from dbdyno.study.prediction.parameter import DEFAULT, FITTED, MEASURED, Parameter, measured_parameter, quantile_table
from dbdyno.study.prediction.server import measured_processors, server_settings

TAIL_US = 2.0
"""CPU time that client and server use after they have sent a message and before they sleep [us]."""
TAIL_FROM = "PostgreSQL 15 and dbdyno's load on an Intel Xeon, traced: 2 us at the server, 1 us at the client"
FIT_ERROR_MOST = 0.03
"""Relative difference between the medians of model and arm above which the fit is reported as failed."""


@dataclass(frozen=True)
class Machine:
    """A calibrated machine.

    Attributes:
        title: Title of the machine.
        parameters: Parameters of the section [postgres].
        scheduler: Parameters of the scheduler.
        device: The device of the log.
        statements: The statements with their costs.
        notes: Sentences about the fit.
        undetermined: Keys that the arm does not determine.
        files: Costs of reads and writes of files.
    """

    title: str
    parameters: list[Parameter]
    scheduler: list[Parameter]
    device: LogDevice
    statements: list[JsonObject]
    notes: list[str]
    undetermined: list[str]
    files: FileCosts = field(default_factory=FileCosts)

    def toml(self) -> str:
        """Return the machine as TOML."""
        from dbdyno.study.prediction.parameter import toml_value

        lines = [f"title = {toml_value(self.title)}", "", "[postgres]"]
        lines += [parameter.toml() for parameter in self.parameters]
        lines += ["", "[postgres.scheduler]", *(parameter.toml() for parameter in self.scheduler), ""]
        log = self.device.name
        # One volume may carry both, and then both have the same section.
        devices = "\n".join(dict.fromkeys([self.device.toml, *self.files.devices]))
        return "\n".join(lines) + f'\n{devices}\n[storage]\nredo = "{log}"\n{self.files.storage(log)}'


def calibrate(observation: Observation, on_progress: Callable[[str], None] = lambda words: None) -> Machine:
    """Return the machine calibrated from an arm.

    Raises:
        ModelError: The model cannot run the arm's workload.
    """
    costs = costs_of(observation)
    served = served_parameters(observation) if needs_commits(observation) else []
    device = _device(observation, costs, float(served[-1].value) if served else 0.0)
    files = file_costs(observation)
    settings, scheduler, notes = server_settings(observation)
    scheduler += measured_processors(observation)
    statements = [
        {
            "text": text,
            "user_us": cpu * (1 - costs.system),
            "system_us": cpu * costs.system,
            "wal_bytes": wal,
            **own,
        }
        for text, cpu, wal, own in zip(
            observation.steps.statements, costs.cpu_us, costs.wal_bytes, files.statements, strict=True
        )
    ]
    how = f"CPU of a transaction ({costs.server.value:.4g} us) from its fast times; log of one from those that write"
    parameters = [
        *settings,
        costs.client,
        costs.wake,
        replace(costs.wake, key="client_wake_us"),
        Parameter("tail_us", TAIL_US, DEFAULT, TAIL_FROM, unit="us"),
        costs.cold,
        Parameter("client_cold_us", CLIENT_COLD_US, DEFAULT, CLIENT_COLD_FROM, unit="us"),
        costs.flush_us,
        costs.write,
        costs.insert,
        _think(observation, costs.client.value),
        *served,
        *_others(observation),
        *_delay(costs),
        *_cpu_factor(costs),
        *files.parameters,
        Parameter("cpu_sigma", 0.0, MEASURED, "the delays include the spread of statements"),
        Parameter("statements", statements, MEASURED, how),
        Parameter("scripts", list(observation.steps.scripts), MEASURED, "the script, drawn"),
        Parameter("calibrated_sessions", observation.sessions, MEASURED, "sessions of the arm"),
    ]
    title = f"calibrated from {observation.arm.name} of {observation.run.id}"
    said = [*observation.steps.notes, *notes, *device.notes, *files.notes]
    machine = Machine(title, parameters, scheduler, device, statements, said, [], files)
    return _fit(machine, observation, costs, on_progress)


def _device(observation: Observation, costs: Costs, served_us: float) -> LogDevice:
    """Return the log device: the one that the run had mounted, or the measured one."""
    measured = _measured_device(observation, costs, served_us)
    return mounted_device(observation, measured) or measured


def _measured_device(observation: Observation, costs: Costs, served_us: float) -> LogDevice:
    """Return the log device, from the arm's waits or from its commits; always from commits on MariaDB."""
    if needs_commits(observation):
        return device_of_commits(observation, costs.whole_flush_us, costs.write.value, served_us)
    if observation.engine != MARIADB:
        return device_of(observation, costs.whole_flush_us)
    found = mariadb.device_of_commits(observation, costs.whole_flush_us, WRITES_DEFAULT)
    return found or device_of_canaries(observation)


def _cpu_factor(costs: Costs) -> list[Parameter]:
    """Return a factor of 1 with an interval that expresses the uncertainty of the statements' CPU times."""
    server = costs.server
    found = []
    if server.value and math.isfinite(server.low):
        low, high = max(server.low / server.value, 0.01), server.high / server.value
        found.append(Parameter("cpu_factor", 1.0, MEASURED, f"{server.how}: {server.value:.4g} us", low, high))
    return found


def _others(observation: Observation) -> list[Parameter]:
    """Return the parameter `others`: the cores that other programs used beside the load, averaged over all arms.

    Processes that serve syncs are among these programs, because the host does not count them separately.
    """
    if not observation.others:
        return []
    how = "the host's busy time without the load and the sessions' server processes, blocks"
    return [measured_parameter("others", observation.others, how)]


def _served(served_us: float | None, name: str) -> list[Parameter]:
    """Return the CPU time of what serves a sync, if it was fitted."""
    if served_us is None:
        return []
    how = f"the mean sync is that of {name}; the device's model is known"
    return [Parameter("sync_served_us", served_us, FITTED, how, unit="us")]


def _think(observation: Observation, client_us: float) -> Parameter:
    """Return the pause of a session between transactions, computed from throughput and latency.

    A pause shorter than the client's CPU time for two round trips is the client's own work, which that CPU time already
    includes.
    """
    values = observation.measures.values
    pauses = observation.sessions * 1e9 / values["throughput"] - values["mean"]
    found = measured_parameter(
        "think", [float(ns) / 1e3 for ns in pauses], "sessions / throughput - mean latency, blocks", "us"
    )
    if found.value < 2 * client_us:
        how = f"{found.value:.3g} us between transactions, which is the client's work"
        return Parameter("think", {"kind": "constant", "us": 0.0}, MEASURED, how, unit="us")
    return replace(found, value={"kind": "constant", "us": found.value})


def _delay(costs: Costs) -> list[Parameter]:
    delays = costs.delays_us
    if not len(delays):
        how = "no statement of this arm shows delays other than flushes and locks"
        return [Parameter("delay", {"kind": "constant", "us": 30.0}, DEFAULT, how)]
    how = f"{len(delays)} round trips beyond their CPU"
    return [
        Parameter("delay", quantile_table(delays), MEASURED, how),
        Parameter("delay_memory", costs.memory, MEASURED, "rank correlation of neighbouring delays"),
    ]


def _fit(machine: Machine, observation: Observation, costs: Costs, on_progress: Callable[[str], None]) -> Machine:
    """Return the machine with fitted factors, with which the model reproduces the arm."""
    log = machine.device
    devices = Devices(log.inside_us, log.sync_us, machine.files.read_us, modelled=log.modelled)
    apart = costs.over_two_cores and len(costs.delays_us) > 0
    found = match(machine.toml(), observation, devices, delays_known=apart, on_progress=on_progress)
    known = found.halt_us > 0
    undetermined, notes = list(machine.files.undetermined), list(machine.notes)
    if abs(found.off) > FIT_ERROR_MOST:
        notes.append(
            f"The model's median of the arm is {found.off:+.1%} off, with delays as they were measured."
            if known
            else f"No factor of the delays gives the arm's median: the nearest is {found.off:+.1%} off."
        )
    if found.share < INSENSITIVE or not len(costs.delays_us):
        undetermined.append("delay")
        notes.append("Round-trip delays hardly matter in this arm, so it cannot determine them.")
    if costs.insert.source == DEFAULT and any(observation.steps.changes):
        undetermined.append("insert_us_per_kb")
    if not machine.device.report and not machine.device.modelled:
        undetermined.append("device")
    elif not machine.device.modelled and machine.device.parameters[-1].source == DEFAULT:
        undetermined.append("device write_us_per_kb")
    name = observation.arm.name
    own = [
        Parameter("delay_factor", 1.0, MEASURED, "the delays are of round trips over two cores")
        if known
        else Parameter("delay_factor", found.delay, FITTED, f"the median latency is that of {name}"),
        *_device_factor(machine, found.device, name),
        *_served(found.served_us, name),
        *fitted_factor(machine.files, found.data, name),
    ]
    scheduler = machine.scheduler
    if found.halt_us:
        how = f"the client's CPU time is that of {name}, which starts a processor only if its partner is not on its own"
        scheduler = [*scheduler, Parameter("halt_us", found.halt_us, FITTED, how, unit="us")]
    parameters = [*(one for one in machine.parameters if one.key not in {row.key for row in own}), *own]
    return replace(machine, parameters=parameters, scheduler=scheduler, notes=notes, undetermined=undetermined)


def _device_factor(machine: Machine, factor: float, name: str) -> list[Parameter]:
    """Return the factor of the log device's times, with the interval of the device's median."""
    device = machine.device
    if device.modelled or not device.report or not device.parameters[0].value:
        return []
    median = device.parameters[0]
    low, high = factor * median.low / median.value, factor * median.high / median.value
    how = f"the mean sync is that of {name}; interval of the device's median"
    return [Parameter("device_factor", factor, FITTED, how, low, high)]
