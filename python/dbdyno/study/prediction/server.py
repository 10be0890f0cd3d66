"""Settings of a run's server that the model supports: cores with their scheduler, and durability of commits."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.study.prediction import mariadb
from dbdyno.study.prediction.memory import BUFFERS, WORK_MEM
from dbdyno.study.prediction.observation import MARIADB, Observation
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, measured_parameter

PAGE_KB = 8
SINCE_LESS_WOKEN = 170_000
"""Version of PostgreSQL since which a commit wakes the log writer only for `wal_writer_flush_after`."""
MODELLED = ("synchronous_commit", "commit_delay", "commit_siblings", "wal_writer_delay")
"""Server settings that change the model."""
_NO_EFFECT = ("application_name", "track_io_timing", "track_wal_io_timing")
_IN_COSTS = ("server ", "device ", f"{BUFFERS} ", f"{WORK_MEM} ")
"""Changes of a calibrated arm whose effects are part of its measured costs: server, device and memory."""
PROCESSORS = {
    "busy_ratio": (
        "sibling_factor",
        1.0,
        8.0,
        "CPU time of a computation while all other processors compute, compared with its time while they are idle",
    ),
    "searches": ("searches", 0.0, 1.0, "wake-ups on an idle processor if the last one was the waker's"),
}
"""Measured properties of the processors, by name of the canary: parameter, smallest and largest value, description."""
TRACED = (
    Parameter("pulls", 0.0, DEFAULT, "TPC-B on an Intel Xeon, traced: 1 to 4 % of wake-ups if the last one is busy"),
    Parameter("searches_late", 0.0, DEFAULT, "the same: 0 to 3 % on a processor that has been idle for long"),
)
"""Where a server or client wakes up, as traced. The canaries of these names are of two threads without other work."""
_MS = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "min": 60_000.0, "": 1.0}
_KB = {"kb": 1.0, "mb": 1_024.0, "gb": 1_048_576.0, "b": 1 / 1_024, "": float(PAGE_KB)}
_MICROSECONDS = {"us": 1.0, "ms": 1_000.0, "s": 1e6, "": 1.0}


def server_settings(observation: Observation) -> tuple[list[Parameter], list[Parameter], list[str]]:
    """Return the parameters of a server and of its scheduler, and a sentence on each change that is not modelled."""
    about = observation.run.manifest.arms[observation.number]
    target: JsonObject = observation.run.manifest.targets.get(str(about["target"])) or {}
    cores = int(target.get("host_cpus") or 0)
    found = [
        Parameter("cores", cores, MEASURED, "processors that the host reports")
        if cores
        else Parameter("cores", 2, DEFAULT, "the run does not say how many processors the host has")
    ]
    own, notes = parameters_of(observation.engine, observation.settings)
    found += mariadb.fixed_parameters() if observation.engine == MARIADB else _log_writer(observation, target)
    found += [Parameter(key, value, MEASURED, "the server's setting") for key, value in own.items()]
    found.append(Parameter("turn_ms", turn_ms_of(observation.run), MEASURED, "the run's slice of an arm"))
    scheduler = scheduler_parameters(cores or 2)
    if observation.engine == MARIADB:
        scheduler.append(Parameter("groups", False, DEFAULT, "MariaDB: its threads are one process, and one group"))
    return (
        found,
        scheduler,
        [note for note in notes if note.partition(" ")[0] in about["changes"] and not note.startswith(_IN_COSTS)],
    )


def turn_ms_of(run: Run) -> float:
    """Return the time for which a run's load runs one arm at a time [ms]; 0 if it is not known."""
    return (run.manifest.slice_ns or run.manifest.turn_ns or 0) / 1e6


def _log_writer(observation: Observation, target: JsonObject) -> list[Parameter]:
    """Return the parameters of PostgreSQL's log writer and of the log's buffers, by version and settings."""
    settings = observation.settings
    shared_kb = _number(settings.get(BUFFERS, "128MB"), _KB)
    automatic = f"1/32 of {BUFFERS}, 16 MB at most"
    given = settings.get("wal_buffers", "-1")
    buffers = (
        Parameter("wal_buffers_kb", min(max(shared_kb / 32, 64.0), 16_384.0), MEASURED, automatic)
        if given.startswith("-")
        else Parameter("wal_buffers_kb", _number(given, _KB), MEASURED, "the server's setting")
    )
    flush_kb = _number(settings.get("wal_writer_flush_after", "1MB"), _KB)
    often = int(target.get("version_num") or 0) < SINCE_LESS_WOKEN
    how = "PostgreSQL up to 16: a page" if often else "PostgreSQL since 17: wal_writer_flush_after"
    return [
        buffers,
        Parameter("wal_writer_flush_kb", flush_kb, MEASURED, "the server's setting"),
        Parameter("wal_writer_wake_kb", PAGE_KB if often else flush_kb, MEASURED, how),
    ]


def parameters_of(engine: str, settings: Mapping[str, str]) -> tuple[dict[str, bool | int | float], list[str]]:
    """Return settings of a server of either engine as model parameters, and a sentence for each unsupported setting."""
    return (mariadb.as_parameters if engine == MARIADB else as_parameters)(settings)


def as_parameters(settings: Mapping[str, str]) -> tuple[dict[str, bool | int | float], list[str]]:
    """Return server settings as model parameters, and a sentence for each unsupported setting."""
    found: dict[str, bool | int | float] = {}
    notes = []
    for name, text in settings.items():
        if name == "synchronous_commit":
            found[name] = text.lower() not in ("off", "false", "no", "0")
        elif name == "commit_delay":
            found["commit_delay_us"] = _number(text, _MICROSECONDS)
        elif name == "commit_siblings":
            found[name] = int(_number(text, {"": 1.0}))
        elif name == "wal_writer_delay":
            found["wal_writer_delay_ms"] = _number(text, _MS)
        elif name not in _NO_EFFECT:
            notes.append(f"{name} is not in the model: its effect is not predicted.")
    return found, notes


def _number(text: str, units: Mapping[str, float]) -> float:
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-z]*)\s*", text.lower())
    return float(match[1]) * units.get(match[2], 1.0) if match else 0.0


def scheduler_parameters(cores: int) -> list[Parameter]:
    """Return the scheduler's parameters by the kernel's rule for this number of processors."""
    factor = 1 + int(math.log2(min(cores, 8)))
    how = f"Linux: 1 + log2 of {min(cores, 8)} processors"
    return [Parameter("slice_ms", 0.7 * factor, DEFAULT, f"{how}, times 0.7 ms")]


def measured_processors(observation: Observation) -> list[Parameter]:
    """Return the measured properties of the processors before a run's blocks; empty for runs of older versions."""
    blocks = observation.measures.blocks
    values = {name: [b.canaries[name] for b in blocks if name in b.canaries] for name in PROCESSORS}
    found = processor_parameters(values)
    return [*found, *TRACED] if found else []


def processor_parameters(values: Mapping[str, list[float]]) -> list[Parameter]:
    """Return parameters of the scheduler from measured values, which are listed by name of the canary."""
    found = []
    for name, (key, least, most, how) in PROCESSORS.items():
        if values.get(name):
            own = measured_parameter(key, values[name], how)
            value, low, high = (min(max(end, least), most) for end in (own.value, own.low, own.high))
            found.append(replace(own, value=value, low=low, high=high))
    return found
