"""dbdyno's own stores under power cuts: runs, snapshots, jobs of moves, and records of settings to be restored."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import DeviceError
from dbdyno.base.processes import python_command
from dbdyno.base.version import VERSION
from dbdyno.cuts.plan import CutPlan
from dbdyno.cuts.processes import ProcessCuts

STORES = ("runs", "snapshots", "moves", "settings")
"""Permitted values of `store` in the settings of a plan."""


class EvidenceCuts(ProcessCuts):
    """One of dbdyno's stores as a `CutEngine`; a commit is an entry that its writer reports as stored."""

    version = VERSION

    def __init__(self, plan: CutPlan, work: Path) -> None:
        super().__init__(work)
        self._store = plan.settings.get("store", STORES[0])
        if self._store not in STORES or set(plan.settings) - {"store"}:
            raise DeviceError(
                "the engine `evidence` has only one setting, `store`",
                where="settings",
                next_step=f"set store to one of {', '.join(STORES)}",
            )

    def _load_command(self, first: int) -> list[str]:
        return python_command("dbdyno.cuts.own_stores", "load", self._store, str(self.folder), str(first))

    def _content_command(self) -> list[str]:
        return python_command("dbdyno.cuts.own_stores", "content", self._store, str(self.folder))
