"""State of a modelled cell that the model itself does not hold: its plan, created grid disks, alerts.

Created grid disks are recorded only here: nothing does I/O on them, and their counters are zero.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from dbdyno.base.json_types import JsonObject
from dbdyno_rig.alerts import Alerts
from dbdyno_rig.rack import Rack


@dataclass(frozen=True)
class CreatedGridDisk:
    """A grid disk that was created by a command."""

    name: str
    cell_disk: str
    flash: bool
    size_bytes: int
    offset_bytes: int


@dataclass
class IormPlan:
    """Resource management plan as it was entered; the part that the model supports is in effect in the model."""

    objective: str = "basic"
    database: list[str] = field(default_factory=list)
    category: str = ""
    active: bool = True


class CellState:
    """State of a cell of a rack, identified by its number."""

    def __init__(self, rack: Rack, number: int) -> None:
        self.rack = rack
        self.number = number
        self.name = rack.names[number]
        facts = rack.facts["cells"][number]
        self.plan = IormPlan(database=[_directive(n, d) for n, d in facts["plan"].items()])
        self.mode: str = facts["flash_cache_mode"]
        self.cache_made_ns = self.log_made_ns = rack.began_ns
        self.flushing: bool | None = None
        self.extra: list[CreatedGridDisk] = []
        self.alerts = Alerts()
        self.changing = threading.Lock()
        rack.listeners[number].append(self.alerts.check_sample)

    def facts(self) -> JsonObject:
        """Return the current state of the cell in the model."""
        return self.rack.cell(self.number)

    def free_bytes(self, facts: JsonObject, cell_disk: JsonObject) -> int:
        """Return the number of bytes on a cell disk that are not allocated."""
        of_flash = sum(1 for disk in facts["cell_disks"] if disk["flash"])
        used = sum(g["bytes"] for g in facts["grid_disks"] if g["cell_disk"] == cell_disk["name"])
        used += sum(e.size_bytes for e in self.extra if e.cell_disk == cell_disk["name"])
        if cell_disk["flash"]:
            used += (facts["flash_log_bytes"] + facts["flash_cache_bytes"]) // of_flash
        return max(0, int(cell_disk["bytes"]) - int(used))


def _directive(name: str, directive: JsonObject) -> str:
    """Return a directive of the model in CellCLI's syntax."""
    words = [f"name={name}"]
    if directive["level"]:
        words += [f"level={directive['level']}", f"allocation={directive['allocation']:g}"]
    else:
        words.append(f"share={directive['share']}")
    if directive["limit"] < 100:
        words.append(f"limit={directive['limit']:g}")
    for key, attribute in (("flash_cache", "flashCache"), ("flash_log", "flashLog")):
        words.append(f"{attribute}={'on' if directive[key] else 'off'}")
    return ",".join(words)
