"""The log device of an arm: the device mounted in the run, or sync times with their regimes and the time per KB.

If the run had mounted a modelled device below the log, its model is used: it also knows limits that one session does
not reach, such as the bytes per second. What a sync takes beyond the model is the time of the programs that serve it.

Otherwise service times are the waits for the sync minus the CPU time inside them. If commits differ in size and there
is one session, each wait belongs to one commit, and the time added per KB is a slope. The table then has the times
extrapolated to size zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.model.swap import renamed_device
from dbdyno.study.prediction.observation import SYNC, WRITE, Observation
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, toml_value
from dbdyno.study.prediction.sizes import mean_kb, per_kb

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NAME, MOUNTED = "log", "mounted"
LEAST = 100


@dataclass(frozen=True)
class LogDevice:
    """The log device.

    Attributes:
        toml: The device's section in a machine file.
        parameters: The device's parameters as rows.
        inside_us: CPU time inside a measured wait, which is not part of the device's time [us].
        report: The fit of the device's times, as `_core.model_calibrate` returns it; empty if the device is a default.
        notes: Sentences about the device.
        sync_us: Mean time of a sync minus its CPU time [us]; 0 if the waits for syncs were measured.
        name: Name of the device's part that holds the log.
        modelled: True if the device is the one that the run had mounted; its times are not fitted.
    """

    toml: str
    parameters: list[Parameter]
    report: JsonObject
    notes: list[str]
    inside_us: float = 0.0
    sync_us: float = 0.0
    name: str = NAME
    modelled: bool = False


def mounted_device(observation: Observation, measured: LogDevice) -> LogDevice | None:
    """Return the device that the run had mounted below the log, with the measured times beside it; None without one."""
    volume = observation.log_volume
    if volume is None:
        return None
    shared = volume is observation.data_volume
    try:
        name, toml = renamed_device(
            str(volume["device"]), MOUNTED if shared else f"{MOUNTED}_log", volume["settings"], files="redo"
        )
    except ModelError:
        return None
    note = (
        f"Log device: the run had mounted {volume['device']}, so the machine uses its model and queue; the measured "
        "times are shown for comparison."
    )
    return replace(measured, toml=toml, name=name, modelled=True, notes=[*measured.notes, note])


def device_of(observation: Observation, flush_us: float) -> LogDevice:
    """Return the log device fitted to the arm's waits or, without waits, to the syncs measured before the blocks."""
    import numpy as np

    waits = observation.waits_for(SYNC)
    if len(waits["elapsed_ns"]) < LEAST:
        return device_of_canaries(observation)
    write_us = float(observation.waits_for(WRITE)["elapsed_ns"].sum()) / 1e3 / len(waits["elapsed_ns"])
    inside_us = max(flush_us - write_us, 0.0)
    times = waits["elapsed_ns"] / 1e3 - inside_us
    added = _per_kb(observation)
    if added.value:
        times = times - added.value * mean_kb(observation)
    how = f"{len(times)} waits for {SYNC.partition(':')[2]}, {observation.fidelity}, by start time"
    found = fit_device(np.maximum(times, 1.0), waits["started_ns"], added, how)
    return replace(found, notes=_notes(observation, found.report), inside_us=inside_us)


def fit_device(
    times_us: Floats, starts_ns: NDArray[np.int64], added: Parameter, how: str, servers: int = 1
) -> LogDevice:
    """Return a device fitted to the start times of syncs and their times [us] minus the time that each KB adds.

    `added` is the time that each KB adds. `servers` is the number of syncs that the device does at the same time.
    """
    import numpy as np

    from dbdyno import _core
    from dbdyno.model.calibrate import sentences

    report = _core.model_calibrate(
        np.ascontiguousarray(times_us, dtype="<f8").tobytes(),
        np.ascontiguousarray(starts_ns, dtype="<i8").tobytes(),
    )
    regimes = report["toml"].replace("{ stay_ms", f"{{ write_us_per_kb = {toml_value(added.value)}, stay_ms")
    rows = [
        Parameter(f"devices.{NAME} p{row['p'] * 100:g}", row["us"], MEASURED, how, row["low"], row["high"], "us")
        for row in report["quantiles"]
    ]
    return LogDevice(section(NAME, regimes, how, servers), [*rows, added], report, list(sentences(report)))


def _notes(observation: Observation, report: JsonObject) -> list[str]:
    from dbdyno.model.calibrate import sentences

    notes = [f"Device: {text}" for text in sentences(report)]
    if observation.fidelity == "read":
        notes.append(
            "Device: its waits were sampled, and short waits are seen less often than long ones; exact waits would "
            "give its distribution."
        )
    return notes


def section(name: str, regimes: str, how: str, servers: int = 1) -> str:
    """Return the section of an empirical device in a machine file."""
    return f'# {how}\n[devices.{name}]\nkind = "empirical"\ncapacity_gb = 100.0\nservers = {servers}\n{regimes}'


def device_of_canaries(observation: Observation) -> LogDevice:
    """Return a device with a constant time: the median time of a file's syncs, measured before the blocks."""
    import statistics

    found = [b.canaries["fsync_ns"] / 1e3 for b in observation.measures.blocks if "fsync_ns" in b.canaries]
    us = statistics.median(found) if found else 500.0
    how = (
        f"median of {len(found)} syncs of a file measured before blocks: this arm waited for no sync"
        if found
        else "this arm waited for no sync, and none was measured separately"
    )
    times = f'{{ kind = "constant", us = {toml_value(us)} }}'
    regimes = f"regimes = [{{ read = {times}, write = {times} }}]\n"
    row = Parameter(f"devices.{NAME} p50", us, MEASURED if found else DEFAULT, how, unit="us")
    note = "Device: this arm does not determine it, nor anything that waits for it."
    return LogDevice(section(NAME, regimes, how), [row], {}, [note])


def _per_kb(observation: Observation) -> Parameter:
    """Return the additional sync time per KB of log."""
    key = f"devices.{NAME} write_us_per_kb"
    found = per_kb(observation, SYNC)
    if found is None:
        return Parameter(key, 0.0, DEFAULT, "sizes do not differ in this arm, or several sessions share a flush")
    return Parameter(
        key, found[0], MEASURED, "slope of the sync over the commit's log size", found[1], found[2], "us/KB"
    )
