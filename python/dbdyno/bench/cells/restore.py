"""Interrupted runs on cells: whether their plans are still in effect, and how to restore the previous ones.

The manifest of a run on cells holds what is needed to restore them (addresses, how they are reached, the plans found
and those of the arms; no secret), and is on disk before the first plan is changed. Its field `restored` says that the
plans were restored. Even if it does not say so, the guardian may have restored them, so the cells are queried each
time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.base.errors import CellsError, EvidenceError, errors_as
from dbdyno.base.escaping import escape_line
from dbdyno.base.json_types import JsonObject
from dbdyno.cells import hosts, iorm_plan
from dbdyno.cells.hosts import Host
from dbdyno.cells.iorm_plan import IormPlan
from dbdyno.cells.iorm_switch import PlanUndo
from dbdyno.cells.ssh import Access
from dbdyno.evidence.run import Run, list_runs

PATIENCE_S = 20.0
"""Maximum time until a cell that answered shows its restored plan [s]."""


def undo_of(run: Run) -> PlanUndo:
    """Return the undo, from the run's folder, that restores the plans that the run found.

    Raises:
        CellsError: The run has changed no cell, or its manifest is invalid.
    """
    held = run.manifest.iorm if run.manifest.has("iorm") else None
    wire = held.get("undo") if isinstance(held, dict) else None
    if not isinstance(wire, dict) or wire.get("type") != "PlanUndo":
        raise CellsError(
            "did not change the IORM plan of a storage cell, so there is nothing to restore",
            where=run.id,
            next_step="list the runs with `dbdyno runs`, and name one of the study flash-log",
        )
    unread = (TypeError, ValueError, KeyError, AttributeError, CellsError, EvidenceError)
    step = "compare the cells' plans manually with `dbdyno cells run 'list iormplan detail'`"
    with errors_as(CellsError, unread, "the manifest of the run does not say what was changed", run.id, step):
        cells = tuple(_cell(cell) for cell in wire["cells"])
        reach = dict(wire["reach"])
    return PlanUndo("IORM plans", cells, reach, patience_s=PATIENCE_S, settle_s=0.0)


def _cell(wire: Mapping[str, Any]) -> JsonObject:
    """Return one cell of an undo, with its address and plans checked like user input."""
    host = hosts.check_host(wire["address"], wire["port"], wire["user"])
    return {
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "name": escape_line(wire["name"], 80),
        "found": iorm_plan.check_plan(wire["found"]),
        "ours": tuple(iorm_plan.check_plan(own) for own in wire["ours"]),
    }


def checked_access(run: Run, undo: PlanUndo, access: Access) -> Access:
    """Return the access to the cells, as defined by the command line and the user's configuration.

    A run folder could name somebody else's configuration with a ProxyCommand, a jump host or host keys. Its connection
    options are therefore only shown, and the user must repeat them.

    Raises:
        CellsError: The run used connection options and the command line has none.
    """
    words = _way_words(undo.reach)
    if words and not (access.keys or access.known_hosts or access.jump or access.config is not True):
        raise CellsError(
            f"connected to its cells with its own options: {words}; they are not used automatically",
            where=run.id,
            next_step="check these options, and repeat those you trust on the command line",
        )
    return access


def _way_words(reach: Mapping[str, Any]) -> str:
    """Return the connection options with which a run was started, according to its manifest."""
    keys = reach.get("keys")
    words = [f"--key {key}" for key in (keys if isinstance(keys, list | tuple) else ())]
    words += [f"--{name.replace('_', '-')} {reach[name]}" for name in ("known_hosts", "jump") if reach.get(name)]
    if isinstance(reach.get("config"), str):
        words.append(f"--ssh-config {reach['config']}")
    return escape_line(" ".join(words))


def refuse_interrupted_runs(folder: Path, found: Mapping[Host, IormPlan]) -> None:
    """Raise `CellsError` if a run in `folder` works on one of these cells, or was interrupted and left its plan there.

    The plan found would then not be the one to restore.

    Raises:
        CellsError: A run works on one of these cells, or was interrupted and left its plan there.
    """
    for run in list_runs(folder):
        if run.manifest.restored or not run.manifest.has("iorm"):
            continue
        undo = undo_of(run)
        states = {host: undo.state_of(host, plan.directives) for host, plan in found.items()}
        shared = [host.name for host, state in states.items() if state is not None]
        if shared and run.status == "running":
            raise CellsError(
                f"run {run.id} is still running on this cell",
                where=shared[0],
                next_step="wait until the run has ended, or stop it; it restores the plans",
            )
        left = [host.name for host, state in states.items() if state == "ours"]
        if left:
            more = f"; also on {len(left) - 1} more cell(s)" if len(left) > 1 else ""
            raise CellsError(
                f"run {run.id} was interrupted, and its IORM plan is still in effect on this cell{more}",
                where=left[0],
                next_step=f"run `dbdyno cells restore {run.path}` to restore the previous plan",
            )
