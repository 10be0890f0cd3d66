"""Commands on this host as a bench: an operation starts a program and waits for its end.

Each session runs one command after the other, so with `sessions = 4` four commands run at any time. The output of
programs is discarded; if a program fails, its exit code and the last line of its stderr are recorded. No shell is used.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shlex
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dbdyno.base.dsn import named_without_secrets, sql_without_secrets
from dbdyno.base.errors import PlanError, TargetError
from dbdyno.base.files import os_errors_as
from dbdyno.base.processes import child_environment, find_program
from dbdyno.bench.operations import Operations
from dbdyno.bench.passive_bench import PassiveBench, arm_row
from dbdyno.bench.programs.command_line import fill_in_variables, words_of
from dbdyno.bench.programs.generated_files import makers
from dbdyno.bench.programs.processors import Processors
from dbdyno.bench.protocol import BenchContext, EvidenceReading, Facts, RunLayout, Traits
from dbdyno.bench.undo import FolderUndo
from dbdyno.study.plan.schedule import blocks, timing

if TYPE_CHECKING:
    from dbdyno.bench.recorder import Recorder
    from dbdyno.evidence.run import Run
    from dbdyno.study.plan.plan import Arm, Plan
    from dbdyno.study.plan.schedule import Turn


STARTS = 20
"""Number of starts of an empty program that measure the cost of a start."""
SAID_MOST = 300


class ProgramBench(PassiveBench):
    """Bench of the commands of a plan's arms."""

    traits = Traits(grows=True, warms_up_again=True, interrupted="the programs were ended")

    def __init__(self, plan: Plan, around: BenchContext) -> None:
        super().__init__(plan, around)
        self.live: set[subprocess.Popen[bytes]] = set()
        self.held = contextlib.ExitStack()
        self.lock = threading.Lock()
        self.done = 0

    def refusal(self, plan: Plan) -> str | None:
        """Return None if the plan has a command and needs no database engine, otherwise the reason."""
        if plan.workload.command is None:
            return "its workload is not a command"
        if any(plan.rate_of(arm) is not None for arm in plan.arms):
            return "it sets a rate, but commands run one after the other"
        if any(
            arm.settings
            or arm.before_sql
            or arm.after_sql
            or arm.dsn
            or arm.server
            or arm.protocol
            or arm.cold
            or arm.client
            for arm in plan.arms
        ):
            return (
                "an arm sets settings, SQL, a client or an engine; arms with commands may differ only "
                "in variables and sessions"
            )
        return None

    @staticmethod
    def side_effects(plan: Plan, target: str | None) -> list[str]:
        """Return generated files and commands as sentences; variables are filled in, since one may name the program."""
        work = plan.workload
        lines: dict[str, None] = {f"generates files: {name} ({what})": None for name, what in work.files.items()}
        for arm in plan.arms:
            known = _printable_variables(plan, arm)
            for command in filter(None, (work.prepare, plan.command_of(arm))):
                words = fill_in_variables(command, known, f"arm {arm.name!r}")
                lines[f"runs on this host: {shlex.join(words)}"] = None
        return list(lines)

    def prepare(self, seed: int | None = None) -> RunLayout:
        """Find the programs and prepare the run.

        Raises:
            PlanError: A command cannot be started, or a file cannot be generated.
        """
        # Nothing is observed while the programs run, so there is no cost of observation to measure.
        self.plan = plan = replace(self.plan, watch=replace(self.plan.watch, overhead_blocks=0))
        makers(plan.workload.files)
        self.folder = Path(tempfile.gettempdir()).resolve() / f"dbdyno-files-{secrets.token_hex(6)}"
        for number in range(len(plan.arms)):
            self._words(number, 0)
        seed = seed if seed is not None else plan.schedule.seed or secrets.randbits(31)
        how = timing(plan.schedule, "slices" if len(plan.arms) > 1 else "turns")
        self.start_ns = _start_ns()
        note = f"starting a program takes {self.start_ns / 1e6:.2f} ms here; every time includes it"
        reason = "each execution starts the command again" if how.in_slices else "there is one arm"
        self.ready = RunLayout(plan, seed, how, blocks(plan, how, seed), reason, (note,))
        return self.ready

    def describe(self) -> str:
        """Return the description of what a run would do."""
        plan = self.plan
        lines = [f"made first: {name} ({what})" for name, what in plan.workload.files.items()]
        for arm in plan.arms:
            lines.append(f"arm {arm.name!r}: {_command(plan, arm)}; {plan.sessions_of(arm)} at a time")
            before = plan.workload.prepare
            lines += [f"  before each, not timed: {_command(plan, arm, before)}"] if before else []
        turns, each = sum(len(block.turns) for block in self.ready.blocks), self.ready.timing.turn_transactions
        about = f"time: about {self.ready.seconds():.0f} s, and more if a command takes longer than its turn"
        if each is not None:
            about = f"time: {turns * each:,} commands; a run estimates it when each arm has ended once"
        return "\n".join(
            [plan.title, plan.question, "", *lines, "", about, *self.ready.notes, "", "nothing was run", ""]
        )

    def facts(self) -> Facts:
        """Return facts about the machine, and the cost of starting a program."""
        rows = [
            arm_row(
                self.plan,
                arm,
                changes=named_without_secrets(arm.variables),
                description=arm.description or _command(self.plan, arm),
            )
            for arm in self.plan.arms
        ]
        about = {"version": f"{platform.system()} {platform.release()} {platform.machine()}", "settings": []}
        return Facts({"this host": about}, rows, EvidenceReading(), {"start_ns": self.start_ns})

    def begin(self, run: Run, resumed: int) -> None:
        """Create the files of the workload, in a folder that is removed however the run ends.

        Raises:
            TargetError: A file cannot be created.
        """
        files = self.plan.workload.files
        if not files:
            return
        self.held.enter_context(self.around.guardian.undo(FolderUndo("files of the workload", str(self.folder))))
        step = "free disk space there, or name another folder with TMPDIR"
        with os_errors_as(TargetError, "the files of the workload cannot be made", self.folder, step):
            self.folder.mkdir(mode=0o700)
            for name, make in makers(files).items():
                self.around.stopping.check()
                make(self.folder / name)

    def retime(self, ready: RunLayout) -> None:
        """Use the new, longer timing for the turns that follow."""
        self.ready = ready

    @contextlib.contextmanager
    def watch(self, recorder: Recorder) -> Iterator[None]:
        """Collect the operations of a block, and write them at its end."""
        self.operations, self.done = Operations(self.plan, recorder), 0
        recorder.started_ns, before = time.time_ns(), Processors.read()
        yield
        recorder.ended_ns, after = time.time_ns(), Processors.read()
        recorder.own |= before.others_share(after) if before and after else {}
        self.operations.write()

    def run(self, turns: Sequence[Turn], recorder: Recorder) -> None:
        """Run turns one after the other."""
        words = ", ".join(dict.fromkeys(self.plan.arms[turn.arm].name for turn in turns))
        recorder.wait(lambda: self._turns(turns), words, lambda: self.done)

    def stop(self) -> None:
        """Ask the running programs to end."""
        self._signal(signal.SIGTERM)

    def restore(self) -> None:
        """Kill the programs that still run, and remove the files that were made for them."""
        self._signal(signal.SIGKILL)
        self.held.close()

    def _words(self, arm: int, session: int) -> tuple[list[str] | None, list[str]]:
        """Return a session's two commands as words: one to run before each operation (or None), and the operation."""
        plan = self.plan
        work, own, where = plan.workload, plan.arms[arm], f"arm {plan.arms[arm].name!r}"
        made = {name: str(self.folder / name) for name in work.files}
        known = {SESSION: str(session), **work.variables, **own.variables, **made}
        before = words_of(work.prepare, known, where) if work.prepare else None
        return before, words_of(plan.command_of(own), known, where)

    def _turns(self, turns: Sequence[Turn]) -> bool:
        for turn in turns:
            self._turn(turn)
        return True

    def _turn(self, turn: Turn) -> None:
        arm = self.plan.arms[turn.arm]
        sessions = self.plan.sessions_of(arm)
        ends_ns = time.monotonic_ns() + (turn.length_ns or 0)
        most = None if turn.transactions is None else -(-turn.transactions // sessions)
        failures: list[BaseException] = []

        def session(number: int) -> None:
            try:
                self._session(turn, number, ends_ns, most)
            except BaseException as error:
                failures.append(error)

        others = [threading.Thread(target=session, args=(number,), daemon=True) for number in range(1, sessions)]
        for thread in others:
            thread.start()
        session(0)
        for thread in others:
            thread.join()
        if failures:
            raise failures[0]

    def _session(self, turn: Turn, number: int, ends_ns: int, limit: int | None) -> None:
        before, words = self._words(turn.arm, number)
        with tempfile.TemporaryFile() as said:
            count = 0
            while not self.around.stopping.asked:
                if before is not None:
                    _, code, _ = self._run_program(before, said)
                    if code:
                        raise TargetError(
                            f"`prepare`, the command before each operation, failed with {_ending(code, said)}",
                            where=f"arm {self.plan.arms[turn.arm].name!r}: {' '.join(before)}",
                            next_step="run this command manually, and correct it in the plan",
                        )
                began_ns = time.time_ns()
                elapsed_ns, code, costs = self._run_program(words, said)
                if self.around.stopping.asked:
                    return
                error = _code(code)
                with self.lock:
                    self.operations.add(
                        turn,
                        began_ns,
                        elapsed_ns,
                        session=number,
                        error=error,
                        said=_ending(code, said) if code else "",
                        costs=costs,
                    )
                    self.done += 1
                count += 1
                if count >= limit if limit is not None else time.monotonic_ns() >= ends_ns:
                    return

    def _run_program(self, words: list[str], output: IO[bytes]) -> tuple[int, int, dict[str, int]]:
        """Start a program, wait for its end, and return its time in ns, exit code, and CPU time (children included)."""
        output.seek(0)
        output.truncate()
        timeout, late = self.plan.statement_timeout_ns, threading.Event()
        began = time.monotonic_ns()
        try:
            running = subprocess.Popen(
                words,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            raise TargetError(
                f"{words[0]} cannot be started: {error.strerror}",
                next_step="check that the program exists and may be executed",
            ) from error
        with self.lock:
            self.live.add(running)
        with _ended_after(running, timeout, late):
            _, status, used = os.wait4(running.pid, 0)
        elapsed = time.monotonic_ns() - began
        running.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            self.live.discard(running)
        costs = {"user_ns": round(used.ru_utime * 1e9), "system_ns": round(used.ru_stime * 1e9)}
        return elapsed, TIMED_OUT if late.is_set() else running.returncode, costs

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(RuntimeError):  # another thread adds or removes a program: that one ends by itself
            for running in tuple(self.live):
                _kill(running, number)


TIMED_OUT = 1000


SESSION = "session"
"""Name of the variable that holds the number of the session that starts the program, counted from 0."""


def _printable_variables(plan: Plan, arm: Arm) -> dict[str, str]:
    """Return an arm's variables for display: a generated file is represented by its name."""
    made = {name: f"<{name}>" for name in plan.workload.files}
    return {SESSION: "<session>", **plan.workload.variables, **arm.variables, **made}


def _command(plan: Plan, arm: Arm, command: str | None = None) -> str:
    """Return a command of an arm as text, without secrets."""
    words = fill_in_variables(
        command or plan.command_of(arm), named_without_secrets(_printable_variables(plan, arm)), f"arm {arm.name!r}"
    )
    return sql_without_secrets(" ".join(words))


@contextlib.contextmanager
def _ended_after(running: subprocess.Popen[bytes], timeout_ns: int | None, late: threading.Event) -> Iterator[None]:
    """Kill the program if it takes longer than the timeout, and set `late`."""
    if timeout_ns is None:
        yield
        return

    def end() -> None:
        late.set()
        _kill(running, signal.SIGKILL)

    timer = threading.Timer(timeout_ns / 1e9, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill(running: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a program and the processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, number)


def _code(code: int) -> str | None:
    """Return None for exit 0, else five characters like SQLSTATE: `X0001` (exit 1), `S0009` (signal 9) or `TIMED`."""
    if code == 0:
        return None
    return "TIMED" if code == TIMED_OUT else f"X{code:04d}" if code > 0 else f"S{-code:04d}"


def _ending(code: int, output: IO[bytes]) -> str:
    """Return how a program ended, in words."""
    ended = f"exit {code}" if code > 0 else f"signal {-code}"
    ended = "a time-out" if code == TIMED_OUT else ended
    output.seek(0)
    lines = output.read(1 << 16).decode(errors="replace").strip().splitlines()
    return f"{ended}: {lines[-1][:SAID_MOST]}" if lines else ended


def _start_ns() -> float:
    """Return the median time in ns to start a program that does nothing and to wait for it."""
    program = find_program("true")
    if program is None:
        raise PlanError(
            "the program `true` was not found; it is needed to measure the cost of a start",
            next_step="add the folder of `true` to PATH",
        )
    times = []
    for _ in range(STARTS):
        began = time.monotonic_ns()
        subprocess.run([str(program)], env=child_environment(), check=False, stdin=subprocess.DEVNULL)
        times.append(time.monotonic_ns() - began)
    return statistics.median(times)


BENCH = ProgramBench
