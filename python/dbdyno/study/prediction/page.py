"""Model of the page about a calibrated machine."""

from __future__ import annotations

import math
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.speed import HostSpeed
from dbdyno.study.prediction.fit import Machine
from dbdyno.study.prediction.observation import Observation
from dbdyno.study.prediction.parameter import Parameter

SCHEMA = 1
_OTHERS = 0.1
"""Share of the cores used by other programs above which that use is reported."""
_STRUCTURES = ("statements", "scripts", "relations")


def page_of(machine: Machine, observation: Observation) -> dict[str, object]:
    """Return the page about a machine that was calibrated from an arm."""
    return {**_page(machine, _sentences(machine, observation)), "run": observation.run.id, "arm": observation.arm.name}


def host_page_of(machine: Machine, speed: HostSpeed) -> dict[str, object]:
    """Return the page about a machine that was calibrated from a host without a database."""
    return {**_page(machine, _said_of_host(machine, speed)), "run": None, "arm": None}


def _page(machine: Machine, sentences: list[str]) -> dict[str, object]:
    own = [*machine.parameters, *machine.device.parameters, *machine.files.rows, *machine.scheduler]
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "calibrated",
        "title": f"A machine {machine.title}",
        "parameters": [_row(parameter) for parameter in own if parameter.key not in _STRUCTURES],
        "statements": machine.statements,
        "undetermined": machine.undetermined,
        "sentences": [*sentences, *machine.notes],
        "toml": machine.toml(),
    }


def _sentences(machine: Machine, observation: Observation) -> list[str]:
    blocks, waits = len(observation.measures.blocks), len(observation.waits["elapsed_ns"])
    said = [
        f"From {blocks} blocks of arm {observation.arm.name} ({observation.sessions} sessions,"
        f" {observation.measures.total('transactions')} transactions, {waits} waits, {observation.fidelity});"
        " warm-up and other arms are not included."
    ]
    others = next((own for own in machine.parameters if own.key == "others"), None)
    cores = next(own.value for own in machine.parameters if own.key == "cores")
    if others is not None and others.value > _OTHERS * cores:
        said.append(_neighbours(others.value, cores))
    if machine.undetermined:
        said.append(f"Not determined by this arm: {', '.join(machine.undetermined)}.")
    return said


def _said_of_host(machine: Machine, speed: HostSpeed) -> list[str]:
    syncs = {method: len(own.elapsed_us) for method, own in speed.syncs.items()}
    others = sum(speed.others) / len(speed.others) if speed.others else 0.0
    beside = [f"{_neighbours(others, speed.cores)} Measure on an idle host."] if others > _OTHERS * speed.cores else []
    return [
        f"From this host alone: {sum(syncs.values())} writes of a log in {speed.folder} ({', '.join(syncs)}),"
        f" {len(speed.delays_us)} round trips to another process, {len(speed.work_us)} rounds of CPU probes.",
        f"Not determined without a database: {'; '.join(machine.undetermined)}.",
        *beside,
    ]


def _neighbours(others: float, cores: int) -> str:
    return (
        f"Other programs used {others:.2g} of {cores} cores during this measurement: they are part of the machine, "
        "and its predictions assume the same neighbours."
    )


def _row(parameter: Parameter) -> JsonObject:
    return {
        "section": "postgres",
        "key": parameter.key,
        "value": _value(parameter.value),
        "unit": parameter.unit,
        "low": parameter.low if math.isfinite(parameter.low) else None,
        "high": parameter.high if math.isfinite(parameter.high) else None,
        "source": parameter.source,
        "how": parameter.how,
    }


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        if value.get("kind") == "measured":
            by = dict(zip(value["probability"], value["us"], strict=True))
            return f"p50 {by[0.51]:.4g} us, p99 {by[0.99]:.4g} us"
        return f"{value.get('us', 0.0):.4g} us"
    return str(value)
