"""The plan of a run on storage cells: which databases' flash log is switched off and on, on which cells, for how long.

dbdyno generates no load: it comes from the database's own users. The arms differ in the IORM plan of every cell:
flashLog=off or flashLog=on for the named databases. A turn is measured in the cells' own time, from one of their
collections to a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.base.errors import PlanError
from dbdyno.evidence.run import type_errors_as_evidence_errors
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Watch, Workload

CELLS = "cells:"
COLLECTED_NS = 60 * 10**9
"""Interval between two collections of a cell's metrics: once a minute."""
WORKLOAD = "flash-log-switch"
_BLOCKS = 10


@dataclass(frozen=True)
class CellsPlan:
    """A plan in terms of cells.

    Attributes:
        hosts: The cells, as in the target.
        databases: Databases whose flash log is switched.
        arms: For each arm whether the flash log is on, base first.
        turn_ns: Minimum length of a turn by the cells' clocks.
        patience_s: Seconds to wait for a cell that collects nothing new.
        held: True if a flashLog= in the plan found on the cells is the user's own.
        kind: Kind of the run, such as 'experiment' or 'aa'.
        schedule: Schedule of the run.
        judge: How the run is judged.
    """

    hosts: str
    databases: tuple[str, ...]
    arms: tuple[bool, ...] = (False, True)
    turn_ns: int = 2 * COLLECTED_NS
    patience_s: float = 300.0
    held: bool = False
    kind: str = "experiment"
    schedule: Schedule = field(default_factory=lambda: Schedule(blocks=_BLOCKS, warmup_blocks=0))
    judge: Judge = field(default_factory=lambda: Judge(headline="redo_write"))

    @property
    def names(self) -> list[str]:
        """Return the names of the arms."""
        shown = [f"flash log {'on' if on else 'off'}" for on in self.arms]
        return [f"{n} again" if n in shown[:at] else n for at, n in enumerate(shown)]

    def to_plan(self) -> Plan:
        """Return the plan in the general form used by schedule, analysis and report, which do not know cells."""
        title = "flash-log"
        return Plan(
            title=f"A/A {title}" if self.kind == "aa" else title,
            question="Does the flash log make redo writes of the cells faster?",
            study="flash-log",
            kind=self.kind,
            dsn=f"{CELLS}{self.hosts}",
            arms=[
                Arm(
                    name,
                    f"flashLog={'on' if on else 'off'} of {', '.join(self.databases)}",
                    parameters={"flash_log": on},
                )
                for name, on in zip(self.names, self.arms, strict=True)
            ],
            workload=Workload(
                kind=WORKLOAD,
                parameters={"databases": list(self.databases), "patience_s": self.patience_s, "held": self.held},
            ),
            schedule=replace(self.schedule, turn_ns=self.turn_ns),
            watch=Watch(activity_hz=0, counters=False, overhead_blocks=0),
            judge=self.judge,
        )

    @classmethod
    def from_plan(cls, plan: Plan) -> CellsPlan:
        """Return the plan from the form that `to_plan` returns.

        Raises:
            EvidenceError: `plan` has another form; it may come from a manifest.
        """
        with type_errors_as_evidence_errors("plan for cells"):
            about, turn_ns = plan.workload.parameters, plan.schedule.turn_ns
            names = about["databases"]
            if not isinstance(names, list | tuple) or turn_ns is None:
                raise TypeError("expected a list of databases and the length of a turn")
            return cls(
                hosts=str(plan.dsn).removeprefix(CELLS),
                databases=tuple(str(name) for name in names),
                arms=tuple(bool(arm.parameters["flash_log"]) for arm in plan.arms),
                turn_ns=int(turn_ns),
                patience_s=float(str(about["patience_s"])),
                held=bool(about.get("held", False)),
                kind=plan.kind,
                schedule=plan.schedule,
                judge=plan.judge,
            )

    def aa_plan(self) -> CellsPlan:
        """Return the plan that compares the base with itself, for `--aa`."""
        return replace(self, kind="aa", arms=(self.arms[0], self.arms[0]))


def refuse_unknown_databases(asked: Sequence[str], seen: Sequence[str]) -> None:
    """Raise `PlanError` if no database is named, or if no cell counts I/O for a named one.

    Args:
        asked: The named databases.
        seen: Databases for which the cells count I/O; empty if the cells do not report it.

    Raises:
        PlanError: No database is named, or a named one is unknown to the cells.
    """
    known = {name.lower() for name in seen}
    unknown = [name for name in asked if known and name.lower() not in known]
    if asked and not unknown:
        return
    raise PlanError(
        f"the cells report no I/O for {', '.join(unknown)}" if unknown else "no database is given",
        where="--set database",
        next_step=f"name a database with --set database=NAME; the cells report {', '.join(seen) or 'none'}",
    )
