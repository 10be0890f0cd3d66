"""Workloads of a modelled rack's database: named loads, and loads as a user writes them.

    quiet                                   a named load
    commit-loop,think_ms=5,sessions=20      a workload of the model and its parameters

A named load only combines workloads and machine parameters, which a user could also specify individually.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno_rig.rack import Load

SESSIONS = 8
ORDERS = "update-loop,blocks=200000,skew=0.8,think_ms=20"
REPORTS = "scan-jobs,bytes=8589934592,ahead=32,think_ms=20000,sessions=32"


@dataclass(frozen=True)
class NamedLoad:
    """A named load: its description, its workloads, and the machine parameters that it sets."""

    says: str
    workloads: tuple[str, ...]
    settings: Mapping[str, str]


NAMED_LOADS: dict[str, NamedLoad] = {
    "quiet": NamedLoad("8 sessions change rows; the disks have nearly nothing to do", (ORDERS,), {}),
    "mixed": NamedLoad(
        "8 sessions change rows, 32 reports scan 8 GB each with 20 s between; the controllers'"
        " batteries learn for one minute of twenty, and writes then go to the disks themselves",
        (ORDERS, REPORTS),
        {"cells.controller.learn_every_s": "1200", "cells.controller.learn_s": "60"},
    ),
}


def load_of(given: Sequence[str], *, sessions: int | None, seed: int, settings: Mapping[str, str]) -> Load:
    """Return the load that combines these named loads and workloads.

    Args:
        given: Names of loads, or workloads as the user writes them.
        sessions: Number of sessions of a workload that does not specify it; None means 8.
        seed: Seed of the model.
        settings: Machine parameters; they override those of named loads.

    Raises:
        ModelError: A workload is written incorrectly.
    """
    texts: list[str] = []
    machine: dict[str, str] = {}
    for text in given:
        named = NAMED_LOADS.get(text)
        texts += named.workloads if named else (text,)
        machine |= named.settings if named else {}
    loads = []
    for text in texts:
        workload = workload_of(text)
        count = workload.pop("sessions", sessions or SESSIONS)
        if not isinstance(count, int) or not 1 <= count <= 10_000:
            raise ModelError("sessions must be a whole number from 1 to 10,000", where=text)
        loads.append((count, workload))
    (first, workload), *beside = loads
    return Load(workload, first, seed, {**machine, **settings}, tuple(beside))


def workload_of(text: str) -> JsonObject:
    """Return the workload written as `kind,key=value,...` in the form that the core reads.

    Raises:
        ModelError: A pair is not KEY=VALUE.
    """
    kind, *pairs = text.split(",")
    found: JsonObject = {"kind": kind}
    for pair_text in pairs:
        key, value = pair(pair_text, "--workload")
        found[key] = _number(value)
    return found


def pair(text: str, where: str) -> tuple[str, str]:
    """Return the key and value of KEY=VALUE.

    Raises:
        ModelError: The text has another form.
    """
    key, equals, value = text.partition("=")
    if not (key.strip() and equals and value.strip()):
        raise ModelError(f"{text!r} is not KEY=VALUE", where=where)
    return key.strip(), value.strip()


def _number(text: str) -> int | float | str:
    for of_kind in (int, float):
        with contextlib.suppress(ValueError):
            return of_kind(text)
    return text
