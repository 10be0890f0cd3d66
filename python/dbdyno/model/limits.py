"""How many requests may be under way, layer by layer, where disks are reached as LUNs."""

from __future__ import annotations

from typing import Any

from dbdyno.model.machine import Machine


def sentences(machine: Machine, plan: dict[str, Any]) -> list[str]:
    """Nothing where the machine has no LUN."""
    return []
