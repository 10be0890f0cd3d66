"""A campaign of power cuts: load, cut, recovery and check, repeated.

A database is used for several cuts, then a new one is created; a failing cut is replayed from the creation of its
database (`only`). All random choices follow from the seed, the number of the database and the number of the cut. On
SQLite, whose load is one session, the same seed cuts at the same change; with several sessions, the order of their
changes differs each time.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dbdyno import _core
from dbdyno.base.device_types import CutReport, DeviceSpec, FaultRow
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.undo import FolderUndo
from dbdyno.cuts.engine import BrokenEngineError, CutEngine
from dbdyno.cuts.ledger import Content, Judgement, Ledger, judge, oldest_ms
from dbdyno.cuts.model import CutFault, CutRow
from dbdyno.cuts.plan import CutPlan
from dbdyno.device.faults import fault_rule
from dbdyno.device.mounts import check_machine, open_mount
from dbdyno.device.undo import MountUndo
from dbdyno.hosts.tasks import stop_if_unwanted

if TYPE_CHECKING:
    from dbdyno.hosts.workers import Workers


class Campaign:
    """A campaign on one engine; `rows` and `faults` are the evidence that it collects."""

    def __init__(self, plan: CutPlan, seed: int, engine: CutEngine, guardian: Guardian) -> None:
        self._plan, self._seed, self._engine, self._guardian = plan, seed, engine, guardian
        self._mount: _core.DeviceMount | None = None
        self._undo: int | None = None
        self._stopped = False
        self.rows: list[CutRow] = []
        self.faults: list[CutFault] = []
        self._number = 0

    @property
    def version(self) -> str:
        """Return the version of the engine."""
        return self._engine.version

    def stop(self) -> None:
        """End the campaign after the current cut."""
        self._stopped = True

    def run_database(self, first: int, last: int) -> Iterator[CutRow]:
        """Create a database and cut the power from cut `first` to cut `last`, or until a cut loses or damages data.

        Raises:
            DeviceError: the folder cannot be mounted.
            TargetError: the engine cannot be created.
        """
        self._engine.create()
        ledger = Ledger()
        try:
            self._open()
            self._engine.start()
            for number in range(first, last + 1):
                row, judgement = self._cut(number, ledger)
                yield row
                if not judgement.is_right or self._stopped:
                    return
        finally:
            self._engine.kill()
            self._close()
            self._engine.close()

    def _cut(self, number: int, ledger: Ledger) -> tuple[CutRow, Judgement]:
        self._number = number
        dice = random.Random(f"{self._seed}/{number}")
        low, high = self._engine.changes_least, self._engine.changes_most
        drawn = round(low * (high / low) ** dice.random())
        after = drawn if self._plan.after_changes is None else self._plan.after_changes
        seeds = [dice.getrandbits(63) for _ in range(2)]
        again = dice.randrange(100) < self._plan.recovery_percent
        mount = self._open_mount()
        before = set(ledger.acknowledged)
        mount.arm(after)
        seen = self._engine.load(ledger, mount.is_off)
        self._engine.repaired = ""
        report = self._lose(seeds[0])
        interrupted = again and self._interrupt(dice.randint(1, self._engine.recovery_changes_most), seeds[1])
        content, recovery_s, log_bytes = self._recover()
        judgement = judge(ledger, content)
        lost = [one for one in judgement.lost if one in before]
        row: CutRow = {
            "cut": number,
            "after_changes": after,
            "in_recovery": interrupted,
            "tried": len(ledger.tried),
            "acknowledged": len(ledger.acknowledged),
            "found": len(content.rows),
            "lost": judgement.lost,
            "lost_of_earlier": len(lost),
            "oldest_lost_ms": round(oldest_ms(ledger, judgement.lost, seen), 1),
            "doubled": judgement.doubled,
            "ghosts": judgement.ghosts,
            "damaged": judgement.damaged,
            "halves": judgement.halves,
            "corrupt": judgement.corrupt,
            "repaired": self._engine.repaired,
            "recovery_s": round(recovery_s, 4),
            "log_bytes": log_bytes,
            "pages": report["pages"],
            "pages_lost": report["pages_lost"],
            "pages_torn": report["pages_torn"],
            "names_undone": report["names_undone"],
            "pages_rebuilt": report["pages_rebuilt"],
        }
        self.rows.append(row)
        return row, judgement

    def _interrupt(self, after: int, seed: int) -> bool:
        """Cut the power again while the engine recovers; return False if the recovery ended before the cut."""
        self._open()
        mount = self._open_mount()
        mount.arm(after)
        with contextlib.suppress(BrokenEngineError):
            self._engine.start()
            self._engine.content()
        interrupted = mount.is_off()
        self._lose(seed)
        return interrupted

    def _recover(self) -> tuple[Content, float, int]:
        """Return the content after the recovery, the recovery time [s], and the bytes of log that it read."""
        self._open()
        begin = time.monotonic()
        try:
            self._engine.start()
            content = self._engine.content()
        except BrokenEngineError as error:
            content = Content(corrupt=f"does not start: {error}")
        return content, time.monotonic() - begin, self._engine.log_bytes()

    def _lose(self, seed: int) -> CutReport:
        """Cut the power and kill the engine; the device keeps a random part of the writes that were not yet durable."""
        mount = self._open_mount()
        report = mount.cut(seed, self._plan.sector_bytes)
        self._record(report["rows"])
        self._engine.kill()
        self._close()
        return report

    def _record(self, rows: list[FaultRow]) -> None:
        self.faults += [{"cut": self._number, **row} for row in rows]

    def _open_mount(self) -> _core.DeviceMount:
        assert self._mount is not None
        return self._mount

    def _open(self) -> None:
        spec: DeviceSpec = {
            "device": "power cuts",
            "toml": None,
            "folder": str(self._engine.folder),
            "back": str(self._engine.back),
            "cuts": True,
            "names": self._plan.names,
            "faults": [fault_rule(text) for text in self._plan.fail],
        }
        self._undo = self._guardian.push(MountUndo("mounted folder", str(self._engine.folder)))
        self._mount = open_mount(spec)

    def _close(self) -> None:
        if self._mount is not None:
            self._record(self._mount.faults())
            self._mount.unmount(at_once=True)
            self._mount = None
        if self._undo is not None:
            self._guardian.discard(self._undo)
            self._undo = None


class CampaignEvidence(NamedTuple):
    """Evidence of a campaign, or of one of its databases; `version` is the engine's.

    `interrupted` is true if the user stopped the campaign: the current cut is left out, all earlier ones are included.
    """

    rows: list[CutRow]
    faults: list[CutFault]
    version: str
    interrupted: bool = False


def run_campaign(
    plan: CutPlan,
    cuts: int,
    seed: int,
    *,
    only: int | None = None,
    progress: Callable[[CutRow], None] = lambda row: None,
    workers: Workers | None = None,
) -> CampaignEvidence:
    """Cut the power `cuts` times; with `only`, use just the database of cut number `only`, and stop after that cut.

    With `workers`, each database is a separate task. Without them, Ctrl-C ends the campaign early if its first cut is
    complete.

    Raises:
        DeviceError: folders cannot be mounted here.
        TargetError: the engine cannot be created, or the workers are gone.
        KeyboardInterrupt: the user stopped it before the first cut was complete.
    """
    databases = list(_databases(plan, cuts, seed, only, progress, workers))
    rows = [row for database in databases for row in database.rows]
    faults = [row for database in databases for row in database.faults]
    if databases[-1].interrupted and not rows:
        raise KeyboardInterrupt
    return CampaignEvidence(rows, faults, databases[-1].version, databases[-1].interrupted)


def _databases(
    plan: CutPlan,
    cuts: int,
    seed: int,
    only: int | None,
    progress: Callable[[CutRow], None],
    workers: Workers | None,
) -> Iterator[CampaignEvidence]:
    """Yield the evidence of each database in order."""
    each, end = plan.cuts_of_a_database, cuts if only is None else only
    first = 1 if only is None else (only - 1) // each * each + 1
    parts = [(number, min(end, number + each - 1)) for number in range(first, end + 1, each)]
    if workers is None:
        for low, high in parts:
            database = run_database(plan, seed, low, high, progress)
            yield database
            if database.interrupted:
                return
        return
    tasks = [workers.submit(run_database_as_task, plan, seed, low, high) for low, high in parts]
    try:
        for task in tasks:
            database = task.result()
            for row in database.rows:
                progress(row)
            yield database
    finally:
        for task in tasks:
            task.cancel()


def run_database(
    plan: CutPlan,
    seed: int,
    first: int,
    last: int,
    progress: Callable[[CutRow], None],
    around: Callable[[Campaign], contextlib.AbstractContextManager[None]] = lambda _: contextlib.nullcontext(),
) -> CampaignEvidence:
    """Create a database, do power cuts number `first` to `last` (fewer if interrupted), and return the evidence.

    Raises:
        DeviceError: folders cannot be mounted here.
        TargetError: the engine cannot be created.
    """
    check_machine()
    with tempfile.TemporaryDirectory(prefix=f"dbdyno-cuts-{os.getpid()}-") as work, Guardian() as guardian:
        removal = guardian.push(FolderUndo("folder of power cuts", work))
        campaign = Campaign(plan, seed, _engine(plan, Path(work), guardian), guardian)
        interrupted = False
        with around(campaign):
            try:
                for row in campaign.run_database(first, last):
                    progress(row)
            except KeyboardInterrupt:
                interrupted = True
        guardian.discard(removal)
        return CampaignEvidence(campaign.rows, campaign.faults, campaign.version, interrupted)


def run_database_as_task(plan: CutPlan, seed: int, first: int, last: int) -> CampaignEvidence:
    """Run the cuts of a database on a worker; stop after the current cut once nobody waits for the task any longer."""
    return run_database(plan, seed, first, last, lambda _: None, lambda own: stop_if_unwanted(own.stop))


def _engine(plan: CutPlan, work: Path, guardian: Guardian) -> CutEngine:
    if plan.engine == "sqlite":
        from dbdyno.cuts.sqlite import SqliteCuts

        return SqliteCuts(plan, work)
    if plan.engine == "evidence":
        from dbdyno.cuts.evidence import EvidenceCuts

        return EvidenceCuts(plan, work)
    if plan.engine == "mariadb":
        from dbdyno.cuts.mariadb import MariaDBCuts

        return MariaDBCuts(plan, guardian)
    from dbdyno.cuts.postgres import PostgresCuts

    return PostgresCuts(plan, guardian)
