"""Plans for storage cells: the study that switches a plan of the cells themselves.

    dbdyno run flash-log --target cells:exa1cel[01-14] --set database=SALES

There is no load of ours: the database's own users make it. The arms differ by flashLog=off or on
of the databases named, in the IORM plan of every cell. A turn is measured in the cells' own time,
from one collection of theirs to a later one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dbdyno.errors import PlanError
from dbdyno.evidence.run import reading
from dbdyno.study.plan.factors import words
from dbdyno.study.plan.plan import CELLS, Arm, Judge, Plan, Schedule, Watch, Workload

if TYPE_CHECKING:
    from dbdyno.evidence.run import Run

COLLECTED_NS = 60 * 10**9
"""A cell collects its metrics once a minute."""
FACTORS = {"database": "", "flash_log": "off,on", "turn": "120s", "patience": "5min", "held": "refuse"}
"""Factors of flash-log on cells, with what they are by default."""
_BLOCKS, _BLOCKS_QUICK = 10, 4


@dataclass(frozen=True)
class CellsPlan:
    """A plan for cells. `arms` is whether the flash log is on, base first; `databases` whose it is;
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
                Arm(name, f"flashLog={'on' if on else 'off'} of {', '.join(self.databases)}")
                for name, on in zip(self.names, self.arms, strict=True)
            ],
            workload=Workload([]),
            schedule=self.schedule,
            watch=Watch(activity_hz=0, counters=False, overhead_blocks=0),
            judge=self.judge,
        )

    def same_twice(self) -> CellsPlan:
        """The base against itself: what `--aa` runs."""
        return replace(self, kind="aa", arms=(self.arms[0], self.arms[0]))


def plan_of(run: Run) -> CellsPlan:
    """The plan of a run on cells, from its manifest; raises `EvidenceError` where that holds none."""
    with reading("plan for cells", run.id):
        common, iorm = run.manifest["plan"], run.manifest["iorm"]
        return CellsPlan(
            hosts=str(common["dsn"]).removeprefix(CELLS),
            databases=tuple(str(name) for name in iorm["databases"]),
            arms=tuple(bool(on) for on in iorm["on"]),
            turn_ns=int(run.manifest["turn_ns"]),
            patience_s=float(iorm["patience_s"]),
            held=bool(iorm.get("held", False)),
            kind=str(run.manifest["kind"]),
            schedule=Schedule(blocks=int(run.manifest["blocks_planned"]), warmup_blocks=0),
        )


def is_cells(target: str | None) -> bool:
    """Whether the name of a target is that of cells: `cells:HOST1,HOST2`, `cells:@FILE`."""
    return target is not None and target.startswith(CELLS)


def cells_study(
    name: str,
    target: str,
    options: Mapping[str, str],
    *,
    quick: bool = False,
    blocks: int | None = None,
) -> CellsPlan:
    """The plan of a study on cells; raises `PlanError` for one that does not run there."""
    from dbdyno.trace.units import length_ns

    if name != "flash-log":
        raise PlanError(
            "does not run on storage cells",
            where=name or "--target",
            next_step="flash-log does: dbdyno run flash-log --target cells:HOST1,HOST2",
        )
    for option in options:
        if option not in FACTORS:
            raise PlanError(
                f"study flash-log has no factor {option!r} on cells",
                where=f"--set {option}",
                next_step=f"its factors: {', '.join(FACTORS)}",
            )
    chosen = {**FACTORS, **options}
    if not target.removeprefix(CELLS).strip(", "):
        raise PlanError(
            "no cell is named",
            where="--target",
            next_step="--target cells:HOST1,HOST2 or cells:@FILE",
        )
    return CellsPlan(
        hosts=target.removeprefix(CELLS),
        databases=tuple(words(chosen["database"], "database")) if chosen["database"] else (),
        arms=_arms(chosen["flash_log"]),
        turn_ns=length_ns(chosen["turn"], "--set turn"),
        patience_s=length_ns(chosen["patience"], "--set patience") / 1e9,
        held=_held(chosen["held"]),
        schedule=Schedule(blocks=blocks or (_BLOCKS_QUICK if quick else _BLOCKS), warmup_blocks=0),
    )


def _arms(text: str) -> tuple[bool, ...]:
    levels = words(text, "flash_log")
    if sorted(levels) != ["off", "on"]:
        raise PlanError(
            f"{text!r} is not both arms",
            where="--set flash_log",
            next_step="off,on or on,off: the first is the base; --aa runs the base against itself",
        )
    return tuple(level == "on" for level in levels)


def _held(text: str) -> bool:
    if text not in ("refuse", "ours"):
        raise PlanError(
            f"{text!r} is neither of refuse, ours",
            where="--set held",
            next_step="ours: a flashLog= that the plan holds already is our own, and is put back as it was",
        )
    return text == "ours"


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
