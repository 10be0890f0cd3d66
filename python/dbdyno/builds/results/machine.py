"""Name and facts of this machine, which distinguish the stored results of different machines."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

from dbdyno.base.errors import PlanError


def this_machine(name: str | None = None) -> dict[str, object]:
    """Return the facts of this machine, with its name.

    Unless a name is given, machines with the same processor, number of processors and memory have the same name,
    because a CI service runs every job on a new host.

    Raises:
        PlanError: The given name is not 1 to 40 letters, digits, -, _ or dots.
    """
    facts = {"cpu": _cpu(), "cpus": os.cpu_count() or 1, "memory_gib": _memory_gib(), "system": platform.system()}
    if name is None:
        name = hashlib.sha256(repr(sorted(facts.items())).encode()).hexdigest()[:8]
    elif not is_name(name):
        raise PlanError(
            f"{name!r} is not a valid machine name",
            where="--ran-on",
            next_step="give 1 to 40 letters, digits, -, _ or dots",
        )
    return {"name": name, **facts}


def is_name(text: str) -> bool:
    """Return True if a text is a valid machine name, which is also used as a folder name."""
    return 0 < len(text) <= 40 and text.isascii() and text[0].isalnum() and not set(text) - _SIGNS


_SIGNS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def _cpu() -> str:
    """Return the model of the processor, or its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[0][:80] if names and names[0] else platform.machine()


def _memory_gib() -> int:
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
