"""Runs on cells that were cut: whether their plans are in force still, and the way back.

The manifest of a run on cells holds what restoring needs (addresses, the way to them, the plans
found and those of the arms; no secret), and is on disk before the first plan is changed. `restored`
in it says that the plans are back. Where it does not, the guardian may have put them back all the
same: so the cells are asked, each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dbdyno.cells.hosts import Host
from dbdyno.cells.iorm_plan import IormPlan
from dbdyno.cells.iorm_switch import PlanUndo
from dbdyno.cells.ssh import Access
from dbdyno.errors import CellsError
from dbdyno.evidence.run import Run, list_runs

PATIENCE_S = 20.0
"""How long a cell that answered may take to show its plan again."""


def undo_of(run: Run) -> PlanUndo:
    """What puts the plans back that a run found, from its folder; raises `CellsError` for a run
    that has changed no cell."""
    from dbdyno.target.undo import from_wire

    wire = run.manifest.get("iorm", {}).get("undo")
    undo = from_wire(wire) if wire else None
    if not isinstance(undo, PlanUndo):
        raise CellsError(
            "has changed no plan of storage cells: there is nothing to restore",
            where=run.id,
            next_step="`dbdyno runs` lists the runs; those on cells are of flash-log",
        )
    return replace(undo, patience_s=PATIENCE_S, settle_s=0.0)


def way_of(undo: PlanUndo, given: Access) -> Access:
    """How a run reached its cells, except for what is given anew."""
    own = undo.access
    return replace(
        given,
        keys=given.keys or own.keys,
        known_hosts=given.known_hosts or own.known_hosts,
        jump=given.jump or own.jump,
        config=own.config if given.config is True else given.config,
    )


def refuse_cut(folder: Path, found: Mapping[Host, IormPlan]) -> None:
    """Raises `CellsError` where a run below `folder` works on one of these cells, or was cut and
    its plan is in force there: what is found is then not the plan to put back."""
    for run in list_runs(folder):
        if run.manifest.get("restored", True) or "iorm" not in run.manifest:
            continue
        undo = undo_of(run)
        states = {host: undo.state_of(host, plan.directives) for host, plan in found.items()}
        shared = [host.name for host, state in states.items() if state is not None]
        if shared and run.status == "running":
            raise CellsError(
                f"run {run.id} is at work there",
                where=shared[0],
                next_step="wait for it, or stop it: it puts the plans back",
            )
        left = [host.name for host, state in states.items() if state == "ours"]
        if left:
            more = f"; so it is on {len(left) - 1} more cell(s)" if len(left) > 1 else ""
            raise CellsError(
                f"run {run.id} was cut, and its IORM plan is still in force there{more}",
                where=left[0],
                next_step=f"dbdyno cells restore {run.path}   (puts back what that run found)",
            )
