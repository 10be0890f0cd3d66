"""A complete machine from a host without a database: device and delays are measured, statement costs are assumed.

The CPU time of TPC-B's statements was measured with PostgreSQL 15 on one processor (`reference.py`) and is scaled to
this host: user time by the speed of work on a small database in memory, kernel time by the speed of messages through a
socket. How well such factors apply to another host is an assumption, which is stated as an interval.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.speed import HostSpeed
from dbdyno.study.prediction.costs import AS_MUCH
from dbdyno.study.prediction.fit import Machine
from dbdyno.study.prediction.host_device import host_device
from dbdyno.study.prediction.parameter import DEFAULT, MEASURED, Parameter, measured_parameter, quantile_table
from dbdyno.study.prediction.reference import REFERENCE, SCALING_FACTOR
from dbdyno.study.prediction.scripts import Steps, steps_of
from dbdyno.study.prediction.server import TRACED, processor_parameters, scheduler_parameters
from dbdyno.study.prediction.slopes import slope
from dbdyno.study.prediction.sync_methods import USUAL

DELAY_FACTOR = 1.5
"""Factor by which assumed delays can be wrong; for machines calibrated from runs, fits gave 0.9 to 2.1."""
_DEFAULTS = "the CPU of statements and client (PostgreSQL 15 on one processor, scaled to this one)"
UNDETERMINED = (
    _DEFAULTS,
    "their log",
    "row locks",
    "the pause between transactions",
    "settings of the server",
    "everything about data that are not in memory",
)


def calibrate_host(speed: HostSpeed, *, scale: int) -> Machine:
    """Return the machine of a host that was probed, with TPC-B at this scale as its script.

    Raises:
        ModelError: The probe made too few syncs.
    """
    user, system = scales(speed)
    steps = _steps(scale)
    statements = [_statement(text, user, system) for text in steps.statements]
    parameters = [
        Parameter("cores", speed.cores, MEASURED, "processors that a process may use here"),
        _client(system),
        *_wake(speed),
        *_flush(speed),
        Parameter("insert_us_per_kb", REFERENCE.insert_us_per_kb * user, DEFAULT, _scale_source(user), unit="us/KB"),
        measured_parameter("others", speed.others, "busy cores while the probe slept, rounds"),
        *_delay(speed),
        Parameter(
            "cpu_factor", 1.0, DEFAULT, f"assumed interval: {_scale_source(user)}", 1 / SCALING_FACTOR, SCALING_FACTOR
        ),
        Parameter("cpu_sigma", 0.0, DEFAULT, "the delays include the spread of statements"),
        Parameter("statements", statements, DEFAULT, f"user {_scale_source(user)}; kernel {_scale_source(system)}"),
        Parameter("scripts", list(steps.scripts), DEFAULT, f"tpcb-like, scale {scale}, drawn"),
        Parameter("calibrated_sessions", 0, DEFAULT, "no run"),
    ]
    device = host_device(speed)
    return Machine(
        f"made from a host without a database: {speed.cpu or 'unknown processor'}, log in {speed.folder}",
        parameters,
        [*scheduler_parameters(speed.cores), *processor_parameters(speed.processors), *TRACED],
        device,
        statements,
        [*_sentences(speed, user, system), *device.notes],
        list(UNDETERMINED),
    )


def scales(speed: HostSpeed) -> tuple[float, float]:
    """Return the factors by which this host is slower than the reference: in user mode, and in the kernel."""
    work, message = statistics.median(speed.work_us), statistics.median(speed.message_us)
    return work / REFERENCE.work_us, message / REFERENCE.message_us


def _sentences(speed: HostSpeed, user: float, system: float) -> list[str]:
    return [
        f"Compared with the processor of the defaults (AMD EPYC, virtual) work in user mode takes {user:.3g} times "
        "as long"
        f" here, and messages through the kernel {system:.3g} times.",
        f"Scaled costs are assumed to be right within a factor of {SCALING_FACTOR:g} either way; a run of a database"
        " (`dbdyno model calibrate RUN --arm ARM`) replaces this assumption by a measurement.",
    ]


def _scale_source(factor: float) -> str:
    return f"PostgreSQL 15 on an AMD EPYC, times {factor:.3g}"


def _steps(scale: int) -> Steps:
    from dbdyno.study.plan.file import parse_plan

    text = f'title = "host"\n[workload]\nbuiltin = "tpcb-like"\nscale = {scale}\n[[arm]]\nname = "one"\n'
    plan = parse_plan(text, Path("host.toml"))
    return steps_of(plan, plan.arms[0])


def _statement(text: str, user: float, system: float) -> JsonObject:
    user_us, system_us = REFERENCE.statement_times(text)
    changes = text.lower().startswith(("update", "insert", "delete"))
    return {
        "text": text,
        "user_us": user_us * user,
        "system_us": system_us * system,
        "wal_bytes": REFERENCE.wal_bytes if changes else 0.0,
    }


def _client(system: float) -> Parameter:
    us = REFERENCE.client_us * system
    return Parameter(
        "client_us",
        us,
        DEFAULT,
        f"dbdyno's load: {_scale_source(system)}",
        us / SCALING_FACTOR,
        us * SCALING_FACTOR,
        "us",
    )


def _wake(speed: HostSpeed) -> list[Parameter]:
    if not speed.wake_us:
        return []
    wake = measured_parameter("wake_us", speed.wake_us, "CPU time to start an idle core, rounds", "us")
    return [wake, Parameter("cold_us", wake.value, DEFAULT, AS_MUCH, wake.low, wake.high, "us")]


def _flush(speed: HostSpeed) -> list[Parameter]:
    """Return the CPU time of a flush, and the CPU time that each KB adds to it."""
    import numpy as np

    own = speed.syncs[USUAL]
    kb, cpu_us = np.asarray(own.kb), np.asarray(own.cpu_us)
    how = f"CPU of {len(cpu_us)} writes with {USUAL}"
    found = slope(kb, cpu_us)
    if found is None:
        return [measured_parameter("flush_us", own.cpu_us, how, "us")]
    each, low, high = found
    return [
        measured_parameter("flush_us", cpu_us - each * kb, f"{how}, without the cost per KB", "us"),
        Parameter("flush_us_per_kb", each, MEASURED, f"{how}: slope over the size", low, high, "us/KB"),
    ]


def _delay(speed: HostSpeed) -> list[Parameter]:
    import numpy as np

    if not speed.delays_us:
        how = "one core: no idle core to start"
        return [Parameter("delay", {"kind": "constant", "us": 1.0}, DEFAULT, how)]
    how = f"{len(speed.delays_us)} round trips to a process on another core, compared with the same core"
    return [
        Parameter("delay", quantile_table(np.asarray(speed.delays_us, dtype=np.float64)), MEASURED, how),
        Parameter("delay_factor", 1.0, DEFAULT, "assumed interval", 1 / DELAY_FACTOR, DELAY_FACTOR),
    ]
