"""Runs of every kind for the pages: an imported trace, sweeps of two models, cells, power cuts, and other files."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import dbdyno
from dbdyno.cells.collection import Collection, Column
from dbdyno.cells.hosts import Host
from dbdyno.cells.listing import Listing, Reading
from dbdyno.cells.record import Pace, new_recording, save_round
from dbdyno.cuts.model import CutRow, campaign_model
from dbdyno.cuts.plan import plan_of
from dbdyno.evidence.run import Run

ORDERS = Path(__file__).resolve().parents[2] / "examples" / "orders.trc"
CELLS = ("cel01", "cel02")
SWEEP = """\
title = "commits by sessions on {model}"
target = "model:{model}"
[workload]
kind = "commit-loop"
[schedule]
blocks = 4
turn = "50ms"
warmup_blocks = 0
[[arm]]
name = "a"
[[arm]]
name = "b"
"""
CUT: CutRow = {
    **dict.fromkeys(("tried", "acknowledged", "found"), 40),  # type: ignore[typeddict-item]
    **{key: [] for key in ("lost", "doubled", "ghosts", "damaged", "halves")},
    **dict.fromkeys(
        ("lost_of_earlier", "log_bytes", "pages", "pages_lost", "pages_torn", "names_undone", "pages_rebuilt"), 0
    ),
    "cut": 1,
    "after_changes": 9,
    "in_recovery": False,
    "oldest_lost_ms": 0.0,
    "corrupt": "",
    "repaired": "",
    "recovery_s": 0.2,
}


def recorded(folder: Path, minutes: int = 6) -> Run:
    """Write a recording of two cells, one round per minute, each with a different rate of redo writes."""
    run = new_recording(folder, [Host(name, name) for name in CELLS], Pace())
    for minute in range(minutes):
        at_ns = (1_800_000_000 + 60 * minute) * 10**9
        columns = []
        for number, cell in enumerate(CELLS):
            value = float(minute * (6000 + 3000 * number))
            seen = [Reading(cell, "FL_IO_W", "FLASHLOG", value, "IO requests", repr(value), 0, at_ns)]
            columns.append(Column(Host(cell, cell), Listing(seen, {cell: 1}), at_ns, 0.1))
        save_round(run, minute, Collection(columns))
    run.save(status="complete")
    return run


def make_kinds(made: Path) -> None:
    """Write the folder `runs` with one of each kind into `made`."""
    runs = made / "runs"
    runs.mkdir()
    assert dbdyno("trace", "import", ORDERS, "--out", runs / "orders").returncode == 0
    for model in ("sas-and-flash", "exadata-x2"):
        (made / "sweep.toml").write_text(SWEEP.format(model=model))
        done = dbdyno("run", made / "sweep.toml", "--out", runs)
        assert done.returncode in (0, 1), done.stderr
    (runs / "cuts.json").write_text(json.dumps(campaign_model(plan_of("sqlite-full"), 7, [CUT], [])))
    (runs / "notes.json").write_text('{"schema": 1, "kind": "nothing of ours"}')
    (runs / "torn.json").write_text('{"schema": 1, "ki')
    (runs / "link.json").symlink_to("/etc/passwd")
