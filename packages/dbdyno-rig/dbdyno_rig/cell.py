"""One modelled cell: takes a CellCLI command, gives what CellCLI would print.

LIST reads what the cell collected last and what the model holds now; CREATE, DROP and ALTER are in
`changes`. Created grid disks are kept here: nothing does I/O on them, and their counters are zero.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from dbdyno.errors import ModelError
from dbdyno_rig import answer
from dbdyno_rig.alerts import Alerts
from dbdyno_rig.language import Change, Query, RefusedError, parsed
from dbdyno_rig.rack import Rack
from dbdyno_rig.things import (
    columns,
    selected,
)


@dataclass(frozen=True)
class Extra:
    """A grid disk that was created by a command."""

    name: str
    cell_disk: str
    flash: bool
    size_bytes: int
    offset_bytes: int


@dataclass
class IormPlan:
    """Resource management as it was given; the part that the model knows is in effect there."""

    objective: str = "basic"
    database: list[str] = field(default_factory=list)
    category: str = ""
    active: bool = True


class Cell:
    """A cell of a rack, by its number."""

    def __init__(self, rack: Rack, number: int) -> None:
        self.rack = rack
        self.number = number
        self.name = rack.names[number]
        facts = rack.facts["cells"][number]
        self.plan = IormPlan(database=[_directive(n, d) for n, d in facts["plan"].items()])
        self.mode: str = facts["flash_cache_mode"]
        self.cache_made_ns = self.log_made_ns = rack.began_ns
        self.flushing: bool | None = None
        self.extra: list[Extra] = []
        self.alerts = Alerts()
        self._changing = threading.Lock()
        rack.listeners[number].append(self.alerts.collected)

    def answer(self, text: str, *, xml: bool = False) -> tuple[str, int]:
        """What CellCLI prints for a command, and its exit code."""
        began_ms = self.rack.service_began_ns(self.number) // 10**6
        try:
            command = parsed(text)
            if isinstance(command, Query):
                return self._list(command, xml, began_ms), 0
            return self._changed(command), 0
        except RefusedError as refused:
            words = str(refused)
            return answer.xml_error(words, self.name, began_ms) if xml else f"\n{words}\n", 1

    def facts(self) -> dict[str, Any]:
        """The cell in the model, as it is now."""
        return self.rack.cell(self.number)

    def _list(self, query: Query, xml: bool, began_ms: int) -> str:
        from dbdyno_rig.lists import LISTS

        things = selected(query, LISTS[query.kind](self))
        shown = columns(query, xml=xml)
        if xml:
            return answer.xml(things, shown, query.kind, self.name, began_ms)
        print_them = answer.detail if query.detail else answer.rows
        return print_them(things, shown)

    def _changed(self, change: Change) -> str:
        from dbdyno_rig.changes import carry_out

        try:
            # What a command looks at before it acts is still so when it acts.
            with self._changing:
                return carry_out(self, change)
        except ModelError as error:
            raise RefusedError(2526, f"Pre-condition failed: {error.message}.") from error

    def free_bytes(self, facts: dict[str, Any], cell_disk: dict[str, Any]) -> int:
        """What of a cell disk belongs to nothing."""
        of_flash = sum(1 for disk in facts["cell_disks"] if disk["flash"])
        used = sum(g["bytes"] for g in facts["grid_disks"] if g["cell_disk"] == cell_disk["name"])
        used += sum(e.size_bytes for e in self.extra if e.cell_disk == cell_disk["name"])
        if cell_disk["flash"]:
            used += (facts["flash_log_bytes"] + facts["flash_cache_bytes"]) // of_flash
        return max(0, int(cell_disk["bytes"]) - int(used))


def _directive(name: str, directive: dict[str, Any]) -> str:
    """A directive of the model as CellCLI writes it."""
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
