"""Model of a campaign of power cuts: its rows, their totals, and a concluding sentence."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import NotRequired, TypedDict

from dbdyno.base.device_types import FaultRow
from dbdyno.base.json_types import JsonObject
from dbdyno.cuts.plan import CutPlan

SCHEMA = 1
FAULTS_MOST = 10_000
"""Maximum number of faults of survived cuts that the model of a campaign contains."""
RECOVERY_GROUPS = 5
"""Maximum number of rows in the table of recovery times."""


class CutRow(TypedDict):
    """A power cut and the findings after it; `tried` and `acknowledged` are totals of its database so far.

    `pages_rebuilt` are pages that a rebuild of a RAID-5 array damaged. `repaired` is the repair that was needed before
    the engine started; such a cut counts as survived.
    """

    cut: int
    after_changes: int
    in_recovery: bool
    tried: int
    acknowledged: int
    found: int
    lost: list[int]
    lost_of_earlier: int
    oldest_lost_ms: float
    doubled: list[int]
    ghosts: list[int]
    damaged: list[int]
    halves: list[int]
    corrupt: str
    repaired: str
    recovery_s: float
    log_bytes: int
    pages: int
    pages_lost: int
    pages_torn: int
    names_undone: int
    pages_rebuilt: int


class CutFault(FaultRow):
    """A fault of the device, and the number of the cut during or just before which it happened; 0 in the set-up."""

    cut: int


class RecoveryRow(TypedDict):
    """Recoveries that read similar amounts of log: their number, the largest amount [bytes], and their times [s]."""

    cuts: int
    log_bytes: int
    p50_s: float
    max_s: float


class ShrunkModel(TypedDict):
    """The smallest plan that reproduces a failing cut."""

    cut: int
    plan: str
    after_changes: int
    tries: int
    failures: int
    repeats: int


class CampaignModel(TypedDict):
    """A campaign, as shown on its page."""

    schema: int
    kind: str
    title: str
    plan: JsonObject
    version: str
    seed: int
    cuts: list[CutRow]
    sums: dict[str, float]
    failed: list[int]
    headline: str
    faults: list[CutFault]
    recoveries: list[RecoveryRow]
    shrunk: NotRequired[ShrunkModel]


def is_survived(row: CutRow) -> bool:
    """Return True if nothing is wrong after a cut."""
    return not any(row[key] for key in ("lost", "doubled", "ghosts", "damaged", "halves", "corrupt"))


def campaign_model(
    plan: CutPlan, seed: int, rows: list[CutRow], faults: list[CutFault], version: str = ""
) -> CampaignModel:
    """Return the model of a campaign on an engine of this version."""
    times = sorted(row["recovery_s"] for row in rows)
    sums: dict[str, float] = {
        "cuts": len(rows),
        "in_recovery": sum(row["in_recovery"] for row in rows),
        "acknowledged": _commits(rows, plan.cuts_of_a_database),
        "lost": sum(len(row["lost"]) for row in rows),
        "doubled": sum(len(row["doubled"]) for row in rows),
        "ghosts": sum(len(row["ghosts"]) for row in rows),
        "damaged": sum(len(row["damaged"]) for row in rows),
        "halves": sum(len(row["halves"]) for row in rows),
        "corrupt": sum(bool(row["corrupt"]) for row in rows),
        "repaired": sum(bool(row["repaired"]) for row in rows),
        "oldest_lost_ms": max((row["oldest_lost_ms"] for row in rows), default=0.0),
        "recovery_p50_s": times[len(times) // 2] if times else 0.0,
        "recovery_max_s": times[-1] if times else 0.0,
        "pages": sum(row["pages"] for row in rows),
        "pages_lost": sum(row["pages_lost"] for row in rows),
        "pages_torn": sum(row["pages_torn"] for row in rows),
        "pages_rebuilt": sum(row["pages_rebuilt"] for row in rows),
    }
    failed = [row["cut"] for row in rows if not is_survived(row)]
    return {
        "schema": SCHEMA,
        "kind": "cuts",
        "title": plan.title,
        "plan": asdict(plan),
        "version": version,
        "seed": seed,
        "cuts": rows,
        "sums": sums,
        "failed": failed,
        "headline": conclusion(sums, failed),
        "faults": reported_faults(faults, set(failed)),
        "recoveries": recoveries(rows),
    }


def reported_faults(faults: list[CutFault], failed: set[int]) -> list[CutFault]:
    """Return, in order, all faults of power cuts that did damage, and the first `FAULTS_MOST` faults of the others."""
    room = itertools.count()
    return [row for row in faults if row["cut"] in failed or next(room) < FAULTS_MOST]


def recoveries(rows: list[CutRow], groups: int = RECOVERY_GROUPS) -> list[RecoveryRow]:
    """Return recovery times by the amount of log read, in groups of equal numbers of cuts, smallest amount first.

    Cuts whose log is not known, or that did not recover, are left out.
    """
    known = sorted((row for row in rows if row["log_bytes"] and not row["corrupt"]), key=lambda row: row["log_bytes"])
    each = -(-len(known) // groups) or 1
    found: list[RecoveryRow] = []
    for at in range(0, len(known), each):
        own = known[at : at + each]
        times = sorted(row["recovery_s"] for row in own)
        most = own[-1]["log_bytes"]
        found.append({"cuts": len(own), "log_bytes": most, "p50_s": times[len(times) // 2], "max_s": times[-1]})
    return found


def _commits(rows: list[CutRow], each: int) -> int:
    """Return the number of acknowledged commits of all databases: the sum over the last cut of each database."""
    last = {(row["cut"] - 1) // each: row["acknowledged"] for row in rows}
    return sum(last.values())


def conclusion(sums: dict[str, float], failed: list[int]) -> str:
    """Return the finding of a campaign as one sentence."""
    cuts, commits = f"{sums['cuts']:,.0f} power cuts", f"{sums['acknowledged']:,.0f} acknowledged commits"
    if not failed:
        return f"{cuts}, {commits}: all commits are there, none twice, and nothing is damaged"
    words = {
        "lost": "acknowledged commits lost",
        "corrupt": "databases corrupt",
        "halves": "sessions with half a transaction",
        "damaged": "rows damaged",
        "doubled": "rows twice",
        "ghosts": "rows that no session wrote",
    }
    found = [f"{sums[key]:,.0f} {text}" for key, text in words.items() if sums[key]]
    return f"{cuts}, {commits}: {len(failed)} cuts not survived: {', '.join(found)}"
