"""The process of an engine, which receives lines of text and must answer each within a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import python_environment
from dbdyno.bench.flows.engines import Engine
from dbdyno.bench.flows.worker import decode_word, encode_word

START_S = 120.0
STEP_S = 0.2
END_S = 5.0
SAID_MOST = 300


class FlowError(TargetError):
    """Error for a flow that its engine cannot run; the engine continues."""


class StopRequested(Exception):  # noqa: N818
    """Error for a flow that was cancelled because the user or the system asked to stop."""


@dataclass(frozen=True)
class FlowResult:
    """Result of a flow: the time and CPU time that the engine's process reports [ns], and the rows."""

    elapsed_ns: int
    cpu_ns: int
    rows: list[list[Any]]


class EngineProcess:
    """A running engine; the constructor raises `TargetError` if it does not start."""

    def __init__(
        self, engine: Engine, scratch: Path, extra: Mapping[str, str], stopped: Callable[[], bool], limit_s: float
    ) -> None:
        self.engine, self.stopped, self.limit_s = engine, stopped, limit_s
        self.left = b""
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - it is needed as long as the process
        scratch.mkdir(mode=0o700)
        began = time.monotonic_ns()
        self.process = subprocess.Popen(
            engine.command(scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env={**python_environment(), **extra},
            cwd=scratch,
            start_new_session=True,
        )
        try:
            words = self._line(START_S)
            if words[0] != "hello":
                raise self._error(f"cannot be started: {decode_word(words[1])}")
        except BaseException:
            self.end()
            raise
        self.about = decode_word(words[1])
        self.start_ns = time.monotonic_ns() - began

    def tables(self, name: str, folder: Path) -> None:
        """Let the engine load a set of tables.

        Raises:
            TargetError: The engine does not accept them, or does not answer.
        """
        self._ask("tables", name, encode_word(str(folder)))

    def run(self, name: str, optimizer: bool, text: str) -> FlowResult:
        """Run a flow on a set of tables.

        Raises:
            FlowError: The engine refuses the flow; the message comes from the engine.
            TargetError: The engine does not answer.
        """
        words = self._ask("run", name, "on" if optimizer else "off", encode_word(text))
        return FlowResult(int(words[1]), int(words[2]), json.loads(decode_word(words[3])))

    def _ask(self, *words: str) -> list[str]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("\t".join(words).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ConnectionResetError):
            raise self._end_error() from None
        answer = self._line(self.limit_s)
        if answer[0] != "ok":
            raise self._error(f"reports: {decode_word(answer[1])}", FlowError)
        return answer

    def _line(self, patience_s: float) -> list[str]:
        """Return the next line that the engine writes, split at tabs."""
        assert self.process.stdout is not None
        fileno, deadline = self.process.stdout.fileno(), time.monotonic() + patience_s
        while b"\n" not in self.left:
            if self.stopped():
                raise StopRequested
            ready, _, _ = select.select([fileno], [], [], STEP_S)
            if ready:
                data = os.read(fileno, 1 << 16)
                if not data:
                    raise self._end_error()
                self.left += data
            elif time.monotonic() > deadline:
                raise self._error(f"hangs: it has not answered for {patience_s:g} s")
        line, _, self.left = self.left.partition(b"\n")
        return line.decode().split("\t")

    def _end_error(self) -> TargetError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        code = self.process.poll()
        how = "closed its stdout" if code is None else f"died of signal {-code}" if code < 0 else f"ended, exit {code}"
        self.said.seek(0)
        lines = [line for line in self.said.read().decode(errors="replace").splitlines() if line.strip()]
        return self._error(f"{how}{f': {lines[-1].strip()[:SAID_MOST]}' if lines else ''}")

    def _error(self, message: str, kind: type[TargetError] = TargetError) -> TargetError:
        shown = " ".join("".join(char if char.isprintable() else " " for char in message).split())
        return kind(f"{self.engine.title} {shown[: 2 * SAID_MOST]}", where=f"engine {self.engine.name}")

    def end(self) -> None:
        """End the process and the processes that it started."""
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S if not self.stopped() else 0.2)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.said.close()
