"""Data flows as a workload: an operation is one flow, run by an engine that is already started.

An arm is an engine, its optimizer on or off, and the text of the flow with its steps in some order. Before anything is
timed, every arm answers once, and all arms on tables of the same size must return the same rows. The report also shows
the time of the same flow over nearly empty tables: it is the time for planning and for starting jobs.
"""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from dbdyno.base.errors import PlanError, TargetError
from dbdyno.bench.flows import tables
from dbdyno.bench.flows.engines import ENGINES, Engine
from dbdyno.bench.flows.process import EngineProcess, FlowError, FlowResult, StopRequested
from dbdyno.bench.flows.worker import DSN
from dbdyno.bench.operations import Operations
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.protocol import BenchContext, EvidenceReading, Facts, RunLayout, Traits
from dbdyno.bench.undo import FolderUndo
from dbdyno.flow.answers import Answer, answer, difference
from dbdyno.study.plan.schedule import blocks, timing

if TYPE_CHECKING:
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Arm, Plan
    from dbdyno.study.plan.schedule import Turn

T = TypeVar("T")
FAILED = "FLOWS"
"""Error code of a flow that its engine could not run."""
LIMIT_S = 600.0
FLOOR_RUNS = 3


class FlowBench(PassiveBench):
    """Bench of the engines of one run."""

    traits = Traits(
        interrupted="the engines were ended", no_errors="flows of these engines return no SQLSTATE", predictable=False
    )
    workload = "flow"
    engines: ClassVar[Mapping[str, Engine]] = ENGINES
    parts: ClassVar[tuple[str, ...]] = ("order",)
    """Quantities that the analysis derives from the times; see `EvidenceReading.parts`."""
    floor_runs = FLOOR_RUNS
    floors_by_arm = False
    """True if arms with the same engine start it in different ways, so that each arm has its own minimum time."""

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        super().__init__(plan, around)
        self.held = contextlib.ExitStack()
        self.running: dict[str, EngineProcess] = {}
        self.floors: dict[str, int] = {}
        self.arm_floors: dict[str, int] = {}
        self.rows: dict[int, int] = {}
        self.done = 0

    def refusal(self, plan: Plan) -> str | None:
        """Return None if every arm is an engine with one flow, otherwise the reason."""
        if plan.workload.kind != self.workload:
            return "its workload is not a data flow"
        for arm in plan.arms:
            given = plan.parameters_of(arm)
            if given.get("engine") not in self.engines:
                return f"arm {arm.name!r} names no engine of data flows: {', '.join(self.engines)}"
            if len(plan.scripts_of(arm)) != 1 or plan.sessions_of(arm) != 1 or plan.rate_of(arm) is not None:
                return f"arm {arm.name!r} is not a single flow in a single session"
        return None

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return the engines that are started and the flows that they run, as sentences."""
        lines = {f"starts on this host: {plan.parameters_of(arm).get('engine')}": None for arm in plan.arms}
        return [*lines, *(f"carries out: {plan.scripts_of(arm)[0].text}" for arm in plan.arms)]

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Check that the engines are installed, and prepare the run.

        Raises:
            TargetError: An engine is not installed.
            PlanError: The number of lines is too small or too large.
        """
        plan = self.plan = replace(self.plan, watch=replace(self.plan.watch, overhead_blocks=0))
        for arm in plan.arms:
            self._engine(arm)
            if not tables.LEAST <= self._lines(arm) <= tables.MOST:
                raise PlanError(
                    f"lines must be between {tables.LEAST} and {tables.MOST:,}",
                    where=f"arm {arm.name!r}",
                    next_step="choose a number of lines in this range",
                )
        seed = seed if seed is not None else plan.schedule.seed or secrets.randbits(31)
        how = timing(plan.schedule, "turns")
        reason = "each engine has the machine to itself while it works"
        self.ready = RunLayout(plan, seed, how, blocks(plan, how, seed), reason)
        return self.ready

    def facts(self) -> Facts:
        """Return a description of each engine, and the changes that each arm makes."""
        rows = [arm_row(self.plan, arm, changes={**arm.levels}, description=arm.description) for arm in self.plan.arms]
        about = {
            one.title: {"version": f"{one.title}; tables: {one.keeps}", "settings": []}
            for one in dict.fromkeys(self._engine(arm) for arm in self.plan.arms)
        }
        return Facts(about, rows, EvidenceReading(parts=self.parts))

    def begin(self, run: Run, resumed: int) -> None:
        """Create the tables, start the engines, and let every arm answer once.

        Raises:
            TargetError: Two arms return different answers, so their times cannot be compared; or an engine does not
                start.
        """
        folder = Path(tempfile.gettempdir()).resolve() / f"dbdyno-flows-{secrets.token_hex(6)}"
        self.held.enter_context(self.around.guardian.undo(FolderUndo("tables of the flows", str(folder))))
        folder.mkdir(mode=0o700)
        sizes = sorted({tables.LEAST, *(self._lines(arm) for arm in self.plan.arms)})
        for lines in sizes:
            tables.write_tables(folder / _set(lines), lines)
        for one in dict.fromkeys(self._engine(arm) for arm in self.plan.arms):
            self.around.stopping.check()
            self.around.note(f"starting {one.title}")
            running = self._start(one, folder)
            for lines in sizes:
                self._run_stoppable(partial(running.tables, _set(lines), folder / _set(lines)))
        self._same_answers()
        own = {name: {"version": one.about, "start_ns": one.start_ns} for name, one in self.running.items()}
        run.save(
            flows={
                "engines": own,
                "floor_ns": self.floors,
                "arm_floor_ns": self.arm_floors,
                "rows": {str(n): count for n, count in self.rows.items()},
            }
        )

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Collect the operations of a block, and write them at its end."""
        self.operations, self.done = Operations(self.plan, recorder), 0
        recorder.started_ns = time.time_ns()
        yield
        recorder.ended_ns = time.time_ns()
        self.operations.write()

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns one after the other."""
        for turn in turns:
            name = self.plan.arms[turn.arm].name
            recorder.wait(partial(self._turn, turn), name, lambda: self.done)

    def restore(self) -> None:
        """End the engines and remove their files."""
        for one in self.running.values():
            one.end()
        self.running = {}
        self.held.close()

    def _turn(self, turn: Turn) -> bool:
        """Run one arm's flow repeatedly until the turn's time is over, at least once."""
        arm = self.plan.arms[turn.arm]
        ends_ns = time.monotonic_ns() + (turn.length_ns or 0)
        most, count = turn.transactions, 0
        while not self.around.stopping.asked:
            began_ns, error, said, found = time.time_ns(), None, "", None
            try:
                found = self._carried_out(arm)
            except StopRequested:
                break
            except FlowError as failure:
                error, said = FAILED, failure.message
            elapsed = found.elapsed_ns if found else time.time_ns() - began_ns
            costs = {"user_ns": found.cpu_ns, "system_ns": 0} if found else None
            rows = len(found.rows) if found else 0
            self.operations.add(turn, began_ns, max(0, elapsed), rows=rows, error=error, said=said, costs=costs)
            self.done += 1
            count += 1
            if count >= most if most is not None else time.monotonic_ns() >= ends_ns:
                break
        return True

    def _carried_out(self, arm: Arm, lines: int | None = None) -> FlowResult:
        given = self.plan.parameters_of(arm)
        running = self.running[str(given["engine"])]
        text = self.plan.scripts_of(arm)[0].text
        return running.run(_set(lines or self._lines(arm)), given.get("optimizer") != "off", text)

    def _same_answers(self) -> None:
        """Run every arm on nearly empty tables to find its minimum time, and once on its own tables to compare answers.

        Raises:
            TargetError: Two arms return different answers.
        """
        first: dict[int, Answer] = {}
        each_ns: list[float] = []
        for arm in self.plan.arms:
            self.around.stopping.check()
            self.around.note(f"comparing answers: {arm.name}")
            name, lines = str(self.plan.parameters_of(arm)["engine"]), self._lines(arm)
            for _ in range(self.floor_runs):
                floor = self._run_stoppable(partial(self._carried_out, arm, tables.LEAST)).elapsed_ns
            self.floors[name] = min(floor, self.floors.get(name, floor))
            self.arm_floors[arm.name] = floor
            found = self._run_stoppable(partial(self._carried_out, arm))
            each_ns.append(found.elapsed_ns)
            own = replace(answer(name, True, found.rows), engine=arm.name)
            self.rows[lines] = len(found.rows)
            said = difference(first.setdefault(lines, own), own)
            if said:
                raise TargetError(
                    f"two arms return different rows for {lines:,} lines of input: {said}",
                    where=f"arms {first[lines].engine!r} and {arm.name!r}",
                    next_step="make the flows return the same rows: times of different answers cannot be compared",
                )
        titled = {self.engines[name].title: floor for name, floor in self.floors.items()}
        for title, floor in (self.arm_floors if self.floors_by_arm else titled).items():
            self.around.note(f"{title} takes {floor / 1e6:.3g} ms for the flow over {tables.LEAST} lines")
        self.around.note(f"about {self.ready.seconds(each_ns):.0f} s for all blocks, estimated from the first answers")

    def _run_stoppable(self, work: Callable[[], T]) -> T:
        """Call `work` outside of a block and return its result; a signal ends it."""
        try:
            return work()
        except StopRequested:
            self.around.stopping.check()
            raise

    def _start(self, engine: Engine, folder: Path) -> EngineProcess:
        extra = self.server_of(engine)
        limit_s = (self.plan.statement_timeout_ns or 0) / 1e9 or LIMIT_S
        scratch = folder / f"engine-{engine.name}"
        running = EngineProcess(engine, scratch, extra, lambda: bool(self.around.stopping.asked), limit_s)
        self.running[engine.name] = running
        return running

    def server_of(self, engine: Engine) -> dict[str, str]:
        """Return the environment variable with the address of the engine's server, starting the server if necessary."""
        if not engine.has_server:
            return {engine.at: str(self.plan.dsn)} if engine.at else {}
        from psycopg.conninfo import make_conninfo

        from dbdyno.bench.postgres.embedded import EmbeddedPostgres

        server = self.held.enter_context(EmbeddedPostgres(guardian=self.around.guardian))
        return {DSN: make_conninfo("", **server.conninfo())}

    def _engine(self, arm: Arm) -> Engine:
        found = self.engines[str(self.plan.parameters_of(arm)["engine"])]
        if (gone := found.missing()) is not None:
            raise TargetError(
                f"{found.title} cannot run: {gone}",
                where=f"arm {arm.name!r}",
                next_step="install the engine, or remove this arm",
            )
        return found

    def _lines(self, arm: Arm) -> int:
        return int(str(self.plan.parameters_of(arm)["lines"]))


def _set(lines: int) -> str:
    """Return the name of the set of tables with this number of lines."""
    return f"lines{lines}"


BENCH = FlowBench
