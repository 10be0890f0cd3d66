"""Inject one fault into one run and report the outcome: the parts of the soak of faults.

A `Bench` has its own server behind a network that can fail, and a folder for runs. `inject` starts a run that alters a
setting of that server, disturbs it at a random moment, waits until the run and its guardian have ended, and returns the
outcome. It raises `BrokenError` for what must never happen:

    hung                  nothing has happened for `HUNG_S`, but the run has not ended
    an internal error     a traceback, or the request to report it
    a setting left        changed, without a record for which the next run refuses to start
    evidence lost         a complete block that cannot be read, or that occurs twice
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psycopg
from faulty_network import FaultyNetwork
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.evidence.run import list_runs
from dbdyno.study.analysis.measured.measures import measure

PATIENCE_S = 120.0
HUNG_S = 600.0
"""Longer than a busy machine takes to analyse a run and draw its report, with no other sign of progress [s]."""

SETTING = "wal_writer_delay"
PLAN = """title = "faults"
[target]
dsn = "{dsn}"
alter_system = true
[workload]
setup = ["create table if not exists soak_{mark} (n int)"]
teardown = ["drop table if exists soak_{mark}"]
scripts = [{{name = "s", text = "insert into soak_{mark} values (1);"}}]
[load]
sessions = 2
[schedule]
blocks = 2
warmup_blocks = 1
turn = "150ms"
settle = "20ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "base"
[[arm]]
name = "slow writer"
settings = {{wal_writer_delay = "500ms"}}
"""


class BrokenError(AssertionError):
    """A documented promise was broken."""


class Bench:
    """A server, a network to it, and a folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dice = random.Random(0)
        self.number = 0
        self.engine = EmbeddedPostgres()

    def __enter__(self) -> Self:
        self.engine.__enter__()
        self.network = FaultyNetwork(int(self.engine.tcp_conninfo()["port"]))
        self.network.__enter__()
        return self

    def __exit__(self, *ending: object) -> None:
        self.network.__exit__()
        self.engine.__exit__(None, None, None)

    @property
    def direct(self) -> str:
        return make_conninfo("", **self.engine.tcp_conninfo())

    @property
    def through(self) -> str:
        return make_conninfo("", **{**self.engine.tcp_conninfo(), "host": "127.0.0.1", "port": str(self.network.port)})

    def inject(self, fault: Callable[[Bench, Injection], str | None], seed: str) -> str:
        """Run with one fault, drawn from the seed; return the outcome in words, or raise `BrokenError`."""
        self.dice = random.Random(seed)
        self.number += 1
        case = Injection(self, self.folder / f"case{self.number}")
        try:
            return case.carry_out(fault)
        finally:
            case.clean()

    def setting(self) -> tuple[str, int]:
        """Return the value in effect, and the number of its lines in postgresql.auto.conf."""
        with psycopg.connect(self.direct, connect_timeout=20) as conn:
            value = conn.execute(f"show {SETTING}").fetchone()
            entries = conn.execute("select count(*) from pg_file_settings where name = %s", [SETTING]).fetchone()
        assert value and entries
        return str(value[0]), int(entries[0])


class Injection:
    """One run and the fault injected into it."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.prefix: list[str] = []
        self.more: dict[str, str] = {}
        folder.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "DBDYNO_STATE": str(self.folder / "state"), "NO_COLOR": "1", **self.more}

    def start(self, name: str = "plan") -> subprocess.Popen[str]:
        plan = self.folder / f"{name}.toml"
        plan.write_text(PLAN.format(dsn=self.bench.through, mark=f"{self.bench.number}_{name}"))
        with (self.folder / f"{name}.err").open("w") as errors:
            return subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "dbdyno", "run", plan.name, "--out", "runs"],
                cwd=self.folder,
                text=True,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=self.environment(),
            )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dbdyno", *arguments],
            cwd=self.folder,
            text=True,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            env={**os.environ, "DBDYNO_STATE": str(self.folder / "state")},
        )

    def carry_out(self, fault: Callable[[Bench, Injection], str | None]) -> str:
        self.before = self.bench.setting()
        prepare = getattr(fault, "prepare", None)
        if prepare:
            prepare(self)
        self.running = self.start()
        self.await_moment()
        kind = fault(self.bench, self)
        code = self.await_end()
        if self.bench.network.mode != "pass":
            self.bench.network.heal()
        self.check_words()
        outcome = kind or {0: "complete", 1: "complete", 2: "ended with an error", 130: "interrupted"}.get(code)
        if outcome is None:
            outcome = f"killed ({code})" if code < 0 else f"exit {code}"
        self.check_evidence()
        return outcome + self.settle()

    def await_end(self) -> int:
        """Return the run's exit code; fail if nothing at all has happened for `HUNG_S`, which a slow machine does not
        cause.
        """
        seen, since = "", time.monotonic()
        while (code := self.running.poll()) is None:
            now = self.errors() + str(sorted(path.name for path in self.folder.glob("runs/*/*/*")))
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > HUNG_S:
                raise BrokenError(f"hung\n{self.errors()}")
            time.sleep(0.05)
        return code

    def await_moment(self) -> None:
        """Wait for a random moment: while connecting, in a turn, or between turns."""
        if self.bench.dice.random() < 0.2:
            time.sleep(self.bench.dice.uniform(0.3, 1.5))
            return
        until(lambda: list(self.folder.glob("runs/*/blocks/b*.json")) or self.running.poll() is not None, 60)
        time.sleep(self.bench.dice.uniform(0, 1.0))

    def guardian(self) -> int | None:
        return next(iter(guardians(self.running.pid)), None)

    def errors(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.err")))

    def check_words(self) -> None:
        said = self.errors()
        if "Traceback" in said or "a fault in dbdyno" in said or "internal error" in said:
            raise BrokenError(f"an internal error\n{said}")

    def check_evidence(self) -> None:
        for run in list_runs(self.folder / "runs"):
            blocks = run.blocks()
            if len({block.index for block in blocks}) != len(blocks):
                raise BrokenError("evidence lost: a block is there twice")
            if run.measured_blocks() and measure(run).broken:
                raise BrokenError(f"evidence lost: {measure(run).broken}")

    def settle(self) -> str:
        """Check that all settings are restored, or refused by the next run and restored then."""
        pid = self.running.pid
        until(lambda: not guardians(pid), PATIENCE_S)
        if until(lambda: self.bench.setting() == self.before, 3):
            return ""
        said = self.command("run", "plan.toml", "--out", "next").stderr
        if "was killed together with its guardian, and left" not in said:
            raise BrokenError(f"a setting left: {self.bench.setting()}\n{said}\n{self.errors()}")
        restored = self.command("restore", "--all", "--target", self.bench.direct, "--yes")
        if self.bench.setting() != self.before:
            raise BrokenError(f"a setting not restored\n{restored.stderr}")
        return "; the next run refused what was left, `restore` put it back"

    def clean(self) -> None:
        """Restore the server for the next injection, whatever this one did."""
        with contextlib.suppress(AttributeError, OSError):
            for pid in (*guardians(self.running.pid), self.running.pid):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(AttributeError):
            self.running.wait()
        self.bench.network.heal()
        if not self.bench.engine.running:
            self.bench.engine.start()
        with psycopg.connect(self.bench.direct, autocommit=True) as conn:
            conn.execute(f"alter system reset {SETTING}")
            conn.execute("select pg_reload_conf()")
        shutil.rmtree(self.folder, ignore_errors=True)


def guardians(parent: int) -> list[int]:
    """Return the guardians of a process, found by their arguments."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if any("guardian" in word for word in words) and str(parent) in words:
                found.append(int(path.parent.name))
    return found


def until(condition: Callable[[], object], seconds: float) -> bool:
    """Return True if the condition becomes true in time; an unreachable server counts as False."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(psycopg.OperationalError):
            if condition():
                return True
        time.sleep(0.05)
    return False
