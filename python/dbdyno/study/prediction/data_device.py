"""Devices for an arm's data files and temporary files: with measured times, or the device mounted in the run.

If the run used a modelled device with direct I/O, the device and its queue are known. Otherwise the measured times are
used, and requests are assumed not to wait for each other, because one arm does not show how they delay each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.model.swap import renamed_device
from dbdyno.study.prediction.device import LEAST, MOUNTED, fit_device, section
from dbdyno.study.prediction.observation import Observation
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, quantile_table, toml_value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

NAME = "data"
SERVERS = 1_024
"""Number of requests that a measured device serves at once; it exceeds any number of sessions, so none waits."""


@dataclass(frozen=True)
class DataDevice:
    """A device of data files or temporary files.

    Attributes:
        name: Name of the device's topmost part in the machine.
        toml: The device's sections in a machine file.
        parameters: The device's parameters as rows.
        empirical: True if the times were measured, False if they are from a model.
        notes: Sentences about the device.
    """

    name: str
    toml: str
    parameters: list[Parameter]
    empirical: bool = True
    notes: list[str] = field(default_factory=list)


def mounted_device(observation: Observation) -> DataDevice | None:
    """Return the device that the run had mounted below data files and temporary files; None if it is not known."""
    volume = observation.data_volume
    if volume is None:
        return None
    try:
        name, toml = renamed_device(str(volume["device"]), MOUNTED, volume["settings"])
    except ModelError:
        return None
    note = (
        f"Data device: the run had mounted {volume['device']} with direct I/O, so the machine uses its model and "
        "queue; the measured times are shown for comparison."
    )
    return DataDevice(name, toml, [], False, [note])


def lateness(device: DataDevice, times_us: Floats, data_mb: float) -> Parameter | None:
    """Return how much longer an arm's waits are than the requests of the device's model, by quantile.

    The difference is the time in the kernel and the time until the process gets a core; its mean is fitted later. The
    result is None if there are too few waits.
    """
    import numpy as np

    from dbdyno.model.postgres import simulate

    if len(times_us) < LEAST:
        return None
    alone_us = (
        simulate(_ALONE.format(device=device.toml, name=device.name, data_mb=data_mb), sessions=1).latencies_ns / 1e3
    )
    places = np.linspace(0.0, 1.0, 2_001)
    beyond = np.maximum(np.quantile(times_us, places) - np.quantile(alone_us, places), 0.0)
    how = f"quantiles of {len(times_us)} waits, minus those of the device's model"
    return Parameter("data_late", quantile_table(beyond), MEASURED, how)


_ALONE = """
title = "a read alone"
[postgres]
cores = 64
cpu_sigma = 0.0
client_us = 0.0
read_us = 0.0
data_mb = {data_mb}
delay = {{ kind = "constant", us = 0.0 }}
statements = [{{ user_us = 0.001, reads = {{ count = [1], share = [1.0] }} }}]
scripts = [{{ weight = 1, steps = [{{ statement = 0, commits = true }}] }}]
{device}
[storage]
redo = "{name}"
data = "{name}"
"""
"""Machine whose transactions consist of one read and take no other time."""


def measured_device(
    name: str, observation: Observation, reads_us: Floats, writes_us: Floats, starts_ns: Ints | None = None
) -> DataDevice | None:
    """Return a device with the measured times; None if no times were measured.

    Args:
        name: Name of the device.
        observation: Observation of the arm.
        reads_us: Times of reads minus their CPU time [us].
        writes_us: Times of writes minus their CPU time [us].
        starts_ns: Start times of the reads [ns], to find slow states that last.
    """
    if not len(reads_us) and not len(writes_us):
        return None
    read, write = (
        quantile_table(own if len(own) else other) for own, other in ((reads_us, writes_us), (writes_us, reads_us))
    )
    how = f"{len(reads_us)} reads and {len(writes_us)} writes of blocks, {observation.fidelity}, without their CPU"
    regimes = f"regimes = [{{ read = {toml_value(read)}, write = {toml_value(write)} }}]\n"
    rows = [
        row
        for what, times in (("read", reads_us), ("write", writes_us))
        if len(times)
        for row in _quantiles(
            f"devices.{name} {what}", times, f"{len(times)} waits, {observation.fidelity}, without their CPU"
        )
    ]
    if starts_ns is not None and len(reads_us) >= LEAST:
        report = fit_device(reads_us, starts_ns, Parameter("", 0.0, DEFAULT, ""), how).report
        # A slow state that lasts is one of the reads, and whether writes share it is not known.
        regimes = regimes if len(writes_us) else report["toml"]
        rows[: len(report["quantiles"])] = [
            Parameter(
                f"devices.{name} read p{own['p'] * 100:g}", own["us"], MEASURED, how, own["low"], own["high"], "us"
            )
            for own in report["quantiles"]
        ]
    return DataDevice(name, section(name, regimes, how, SERVERS), rows, True, [_queue(name, observation)])


def _quantiles(key: str, times_us: Floats, how: str) -> list[Parameter]:
    import numpy as np

    return [
        Parameter(f"{key} p{p * 100:g}", float(np.quantile(times_us, p)), MEASURED, how, unit="us") for p in (0.5, 0.99)
    ]


def _queue(name: str, observation: Observation) -> str:
    what = "Data device" if name == NAME else "Temporary files"
    return (
        f"{what}: requests are assumed not to wait for each other, as with the {observation.sessions} session(s) "
        "of this"
        " arm. How many the device serves at once was not measured;"
        " --set data_device=NAME uses the queue of a modelled device."
    )
