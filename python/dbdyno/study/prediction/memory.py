"""Memory settings of a server and their effect in the model: `shared_buffers` and `work_mem`.

`shared_buffers` changes how often a statement reads from files; it is predicted if the machine knows the referenced
pages. `work_mem` decides whether a sort spills; it is not predicted, because only the calibrated value was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbdyno.base.errors import ModelError
from dbdyno.model.machine import Machine

BUFFERS, WORK_MEM = "shared_buffers", "work_mem"
BUFFERS_PATH, WORK_MEM_PATH = "postgres.shared_buffers_mb", "postgres.work_mem_mb"
_UNITS = {"b": 2**-20, "kb": 2**-10, "mb": 1.0, "gb": 2**10, "tb": 2**20}
_BLOCKS = {BUFFERS: "8kb", WORK_MEM: "kb"}


def megabytes(text: str, unit: str = "mb") -> float:
    """Return a PostgreSQL size in MB; a number without a unit is in `unit`; NaN if the text is not a size."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b)?\s*", text, re.IGNORECASE)
    if match is None:
        return float("nan")
    if match[2] is None and unit == "8kb":
        return float(match[1]) * 8 * _UNITS["kb"]
    return float(match[1]) * _UNITS[(match[2] or unit).lower()]


def memory_settings(machine: Machine, changes: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the model's settings for an arm's memory settings, and a sentence for each one that is not predicted."""
    settings, notes = {}, []
    if BUFFERS in changes:
        size = megabytes(changes[BUFFERS], _BLOCKS[BUFFERS])
        if knows_pages(machine) and size > 0:
            settings[BUFFERS_PATH] = repr(size)
        elif size != machine.number("postgres.calibrated_buffers_mb"):
            notes.append(f"{BUFFERS} = {changes[BUFFERS]}: the machine does not know the pages that statements read,")
            notes[-1] += " so its effect is not predicted."
    if WORK_MEM in changes and machine.number(WORK_MEM_PATH) != megabytes(changes[WORK_MEM], _BLOCKS[WORK_MEM]):
        notes.append(
            f"{WORK_MEM} = {changes[WORK_MEM]} differs from the calibrated arm, so what spills is not predicted:"
            " calibrate on this arm to predict other sessions, devices and cores."
        )
    return settings, notes


def knows_pages(machine: Machine) -> bool:
    """Return True if a machine has the pages that its statements reference, and the size of its own buffer cache."""
    values = {row["path"]: row["value"] for row in machine.parameters}
    return bool(values.get("postgres.relations")) and bool(values.get("postgres.calibrated_buffers_mb"))


def buffers_setting(machine: Machine, text: str) -> dict[str, str]:
    """Return the settings of the model for a level of `shared_buffers`.

    Raises:
        ModelError: The machine does not know the pages that its statements reference, or the level is not a size.
    """
    where = f"--set {BUFFERS}={text}"
    if not knows_pages(machine):
        raise ModelError(
            "the machine file does not describe the pages that its statements read",
            where=where,
            next_step="calibrate it on an arm whose statements read a table by a key, with a working set that does not"
            " fit in shared_buffers",
        )
    size = megabytes(text, _BLOCKS[BUFFERS])
    if not 0 < size <= 1e6:
        raise ModelError("is not a size", where=where, next_step="write for example shared_buffers=128MB,1GB")
    return {BUFFERS_PATH: repr(size)}
