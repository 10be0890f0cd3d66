"""A second process that puts everything back when the first one dies, however it dies.

    first process                         guardian (own session, deaf to Ctrl-C, SIGTERM, hang-up)
      push(undo) ------ JSON line ------>   remembers it
      <----------- acknowledged ----------
      makes the change
      carries out the undo itself
      discard(id) ------------------------> forgets it
      close() ----------- done -----------> ends
      (killed: the pipe ends without done)  carries out what it remembers, last first, and ends

An undo is acknowledged before its change is made, so there is no instant at which a change stands
alone. Secrets travel over the pipe only, never in arguments or files. What the guardian did is
appended to a journal if one is named. It holds the lock of a server's settings, too (`claim`), and
goes on for hours where the server cannot be reached (`put_back`).

Limits: if both processes are killed at once (a container is removed, the machine stops), nobody is
left to put anything back; a change of an engine's settings then stays in its postgresql.auto.conf.
The record of what is owed (`owed`) stays as well: the next run and the doctor see it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dbdyno.base.errors import TargetError
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.restoration import Claims, error_record, put_back_all, undo_lasts
from dbdyno.bench.undo import SqlUndo, Undo, from_wire, to_wire

ACKNOWLEDGE_S = 20.0
"""How long the guardian may take to acknowledge (its first answer includes the start of Python)."""

CLAIM_S = 60.0
"""How long it may take to reach the server and to take the lock of its settings."""

CLOSE_S = 20.0
"""How long the end of a run waits for a guardian that puts something back."""

PARENT_POLL_S = 1.0

_STILL_AT_WORK: list[subprocess.Popen[bytes]] = []
"""Guardians that go on after their run: no longer waited for."""


class ThereBeforeError(TargetError):
    """Something that a set-up would have made was there before. It is not ours, and no teardown may meet it: `undo` is
    dropped, and what the set-up had made until then is left."""

    def __init__(self, refused: TargetError, undo: Undo) -> None:
        step = (
            "it is another run's, or yours; the teardown was not run, so that nothing of yours is dropped: remove by"
            " hand what the set-up made before it, or give its objects other names"
        )
        super().__init__(refused.message, where=refused.where, next_step=step)
        self.undo = undo


class Guardian:
    """The first process's end. Started with the first `push`; safe for use from several threads."""

    def __init__(self, journal: Path | None = None) -> None:
        self._journal = journal
        self._process: subprocess.Popen[bytes] | None = None
        self._pending: dict[int, Undo] = {}
        self._next_id = 1
        self._sequence = 0
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The guardian's process number, None before the first `push`."""
        return self._process.pid if self._process else None

    @property
    def pending(self) -> tuple[Undo, ...]:
        """The undos that are registered now, oldest first."""
        return tuple(self._pending.values())

    def push(self, undo: Undo) -> int:
        """Register an undo; when this returns, the guardian holds it.

        Raises `TargetError` if it cannot.
        """
        with self._lock:
            number = self._next_id
            self._next_id += 1
            self._tell({"op": "push", "id": number, "undo": to_wire(undo)})
            self._pending[number] = undo
            return number

    def discard(self, number: int) -> None:
        """Forget an undo that has been carried out.

        An unknown number, or a guardian that is gone, is no error.
        """
        with self._lock:
            if self._pending.pop(number, None) is not None:
                with contextlib.suppress(TargetError):
                    self._tell({"op": "discard", "id": number})

    def claim(self, connection: Mapping[str, Any], run: str = "") -> None:
        """Take the lock of a server's settings, or see that it is still held; it lasts until the
        guardian ends. Raises `TargetError` where another run has it, or nobody answers.
        """
        with self._lock:
            message = {"op": "claim", "connection": dict(connection), "run": run}
            answer = self._ask(message, CLAIM_S)
            if answer is None or answer["problem"]:
                known = answer or {"problem": "the guardian process does not answer"}
                raise TargetError(
                    f"{known['problem']}; no setting was changed",
                    where=known.get("where"),
                    next_step=known.get("next_step") or "see that the server can be reached, then run again",
                )

    def goes_on(self, undo: Undo) -> str:
        """What happens to an undo that failed: for the next step of an error."""
        if undo_lasts(undo) and self.pid is not None:
            return (
                f"the guardian (process {self.pid}) tries again for 24 h;"
                " `dbdyno doctor --target DSN` shows whether it is done"
            )
        return "put it back by hand; the guardian tries once more when dbdyno ends"

    @contextlib.contextmanager
    def undo(self, undo: Undo) -> Iterator[None]:
        """Carry the undo out when the block ends, in whatever way but one: a `ThereBeforeError` of this undo.

        Raises `TargetError` if that fails.
        """
        number = self.push(undo)
        left = False
        try:
            yield
        except ThereBeforeError as error:
            left = error.undo is undo
            raise
        finally:
            problems = () if left else undo.carry_out()
            if problems:
                raise TargetError(
                    "not everything could be put back: " + "; ".join(problems),
                    next_step=self.goes_on(undo),
                )
            self.discard(number)

    def close(self) -> None:
        """End the guardian.

        Undos still registered are carried out by it first; this waits `CLOSE_S` for them. A guardian
        that needs longer goes on by itself.
        """
        with self._lock:
            process, self._process = self._process, None
            if process is None:
                return
            assert process.stdin is not None and process.stdout is not None
            if not self._pending:
                with contextlib.suppress(OSError):
                    _write_all(process.stdin.fileno(), b'\n{"op": "done"}\n')
            process.stdin.close()
            try:
                process.wait(timeout=CLOSE_S)
            except subprocess.TimeoutExpired:
                _STILL_AT_WORK.append(process)
            process.stdout.close()
            if process.returncode is not None and process.returncode < 0:  # it was killed
                for undo in reversed(self._pending.values()):
                    undo.carry_out()
            self._pending.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _tell(self, message: dict[str, object]) -> None:
        """Send, and wait until it is acknowledged."""
        answer = self._ask(message, ACKNOWLEDGE_S)
        detail = "no answer" if answer is None else answer["problem"]
        if detail:
            raise TargetError(
                f"the guardian process does not hold the undo ({detail}); the change was not made",
                next_step="run again; if this repeats, look for what ends processes here",
            )

    def _ask(self, message: dict[str, Any], patience_s: float) -> dict[str, Any] | None:
        """Send, and return the answer, or None; answers to messages given up are passed over."""
        process = self._process = self._process or _spawn(self._journal)
        assert process.stdin is not None and process.stdout is not None
        self._sequence += 1
        message = {**message, "sequence": self._sequence}
        with contextlib.suppress(OSError):
            _write_all(process.stdin.fileno(), b"\n" + json.dumps(message).encode() + b"\n")
            while line := _read_line(process.stdout.fileno(), patience_s):
                answer: dict[str, Any] = json.loads(line)
                if answer["sequence"] == self._sequence:
                    return answer
        return None


def _spawn(journal: Path | None) -> subprocess.Popen[bytes]:
    kept = [] if journal is None else [str(journal.resolve())]
    return subprocess.Popen(
        python_command("dbdyno.bench.guardian", str(os.getpid()), *kept),
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=python_environment(),
        start_new_session=True,
    )


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _read_line(descriptor: int, patience_s: float) -> bytes:
    line = b""
    deadline = time.monotonic() + patience_s
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        chunk = os.read(descriptor, 1) if ready else b""
        if not chunk:
            return b""
        line += chunk
    return line


def _remember(message: dict[str, Any], held: dict[int, Undo], claims: Claims) -> None:
    """Apply one message to what is held."""
    if message["op"] == "claim":
        claims.of(message["connection"]).hold(message["run"])
        return
    number = int(message["id"])
    if message["op"] == "discard":
        held.pop(number, None)
    else:
        undo = from_wire(message["undo"])
        if isinstance(undo, SqlUndo):
            import psycopg  # noqa: F401  # fail before the change, not after
        elif type(undo).__name__ == "MariaUndo":
            import pymysql  # noqa: F401
        elif type(undo).__name__ == "PlanUndo":
            import asyncssh  # noqa: F401
        held[number] = undo


def _listen(parent: int, held: dict[int, Undo], claims: Claims) -> None:
    """Hold undos until `done`, which leaves none, or until the parent is gone."""
    rest = b""
    while True:
        ready, _, _ = select.select([0], [], [], PARENT_POLL_S)
        chunk = os.read(0, 65536) if ready else None
        if chunk == b"" or (chunk is None and os.getppid() != parent):
            return
        *lines, rest = (rest + (chunk or b"")).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:  # what was left of a message that was interrupted
                continue
            if message["op"] == "done":
                held.clear()
                return
            answer: dict[str, object] = {"sequence": message["sequence"], "problem": ""}
            try:
                _remember(message, held, claims)
            except Exception as error:  # the parent hears why; the guardian lives on
                answer |= error_record(error)
            with contextlib.suppress(OSError):
                _write_all(1, json.dumps(answer).encode() + b"\n")


def _tell_outcome(journal: Path | None, text: str) -> None:
    line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} guardian: {text}\n"
    with contextlib.suppress(OSError):
        if journal is not None:
            with journal.open("a") as out:
                out.write(line)
        else:
            os.write(2, line.encode(errors="replace"))


def _let_go() -> None:
    """Gives a pipe on stderr back: who reads it (`| tee`, a build's log) waits for its end, and this may take hours."""
    with contextlib.suppress(OSError):
        kind = os.fstat(2).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            os.write(2, b"guardian: goes on without a word here; `dbdyno doctor` shows what is left\n")
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)


def main(arguments: list[str]) -> int:
    """The guardian's life: listen, and put back what the parent could not.

    0: all done; 1: something failed.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    journal = Path(arguments[1]) if len(arguments) > 1 else None
    held: dict[int, Undo] = {}
    claims = Claims()
    with contextlib.suppress(Exception):  # whatever happens to the pipe, what is held is done
        _listen(int(arguments[0]), held, claims)
    undos = list(reversed(held.values()))
    return 1 if put_back_all(undos, claims, lambda text: _tell_outcome(journal, text), before_long=_let_go) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
