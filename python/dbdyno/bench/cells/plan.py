"""What a run on storage cells is: whose flash log is switched off and on, on which cells, for how long.

There is no load of ours: the database's own users make it. The arms differ by flashLog=off or on
of the databases named, in the IORM plan of every cell. A turn is measured in the cells' own time,
from one collection of theirs to a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dbdyno.base.errors import PlanError
from dbdyno.evidence.run import reading
from dbdyno.study.plan.plan import Arm, Judge, Plan, Schedule, Watch, Workload

CELLS = "cells:"
COLLECTED_NS = 60 * 10**9
"""A cell collects its metrics once a minute."""
WORKLOAD = "flash-log-switch"
_BLOCKS = 10


@dataclass(frozen=True)
class CellsPlan:
    """A plan in the words of the cells. `arms` is whether the flash log is on, base first; `databases` whose it is;
    `turn_ns` the least time of a turn by the cells' clocks; `patience_s` how long to wait for a
    cell that collects nothing anew; `held` that a flashLog= in the plan found is the user's own."""

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
        """Names of the arms."""
        shown = [f"flash log {'on' if on else 'off'}" for on in self.arms]
        return [f"{n} again" if n in shown[:at] else n for at, n in enumerate(shown)]

    def common(self) -> Plan:
        """The same for the rooms that know nothing of cells: schedule, analysis, report."""
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
    def of(cls, plan: Plan) -> CellsPlan:
        """The plan that `common` made; raises `EvidenceError` for anything else: it may come from a manifest."""
        with reading("plan for cells"):
            about, turn_ns = plan.workload.parameters, plan.schedule.turn_ns
            names = about["databases"]
            if not isinstance(names, list | tuple) or turn_ns is None:
                raise TypeError("databases and a turn are named")
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

    def same_twice(self) -> CellsPlan:
        """The base against itself: what `--aa` runs."""
        return replace(self, kind="aa", arms=(self.arms[0], self.arms[0]))


def refuse_database(asked: Sequence[str], seen: Sequence[str]) -> None:
    """Raises `PlanError` where no database is named, or one of which no cell counts any I/O.
    `seen` are the databases that the cells count; empty where they do not tell."""
    known = {name.lower() for name in seen}
    unknown = [name for name in asked if known and name.lower() not in known]
    if asked and not unknown:
        return
    raise PlanError(
        f"the cells count no I/O of {', '.join(unknown)}" if unknown else "no database is named",
        where="--set database",
        next_step=f"--set database=NAME; the cells know {', '.join(seen) or 'none by name'}",
    )
