"""A second process that undoes all changes when the first process dies, for whatever reason.

    first process                         guardian (own session, ignores Ctrl-C, SIGTERM, SIGHUP)
      push(undo) ------ JSON line ------>   stores it
      <----------- acknowledged ----------
      makes the change
      carries out the undo itself
      discard(id) ------------------------> forgets it
      close() ----------- done -----------> exits
      (killed: the pipe ends without done)  carries out the stored undos, last first, and exits

An undo is acknowledged before its change is made, so no change exists at any instant without a registered undo. Secrets
are sent over the pipe only, never in arguments or files. If a journal is named, the guardian appends to it what it did.
The guardian also holds the lock of a server's settings (`claim`) and retries for hours if the server cannot be reached
(`dbdyno.bench.restoration`).

Limits: if both processes are killed at the same time (a container is removed, the machine stops), nothing is undone; a
changed engine setting then stays in the server's postgresql.auto.conf. The record of settings to be restored
(`dbdyno.bench.engine.unrestored_settings`) remains as well, so the next run and the doctor report it.
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
from typing import Any

from dbdyno.base.closeable import Closeable
from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.processes import python_command, python_environment
from dbdyno.bench.restoration import Claims, error_record, execute_undos, is_retried
from dbdyno.bench.silent_servers import is_unanswered
from dbdyno.bench.undo import SqlUndo, Undo, from_wire, to_wire

ACKNOWLEDGE_S = 20.0
"""Seconds that the guardian may take to acknowledge a message (the first one includes the start of Python)."""

CLAIM_S = 60.0
"""Seconds that the guardian may take to reach the server and take the lock of its settings."""

CLOSE_S = 20.0
"""Seconds that the end of a run waits for a guardian that is still undoing changes."""

PARENT_POLL_S = 1.0

_STILL_AT_WORK: list[subprocess.Popen[bytes]] = []
"""Guardians that continue after their run; nothing waits for them any more."""


class ObjectExistsError(TargetError):
    """Error for an object that already existed when the set-up was to create it.

    The object belongs to someone else, so the teardown `undo` is dropped and never run; what the set-up had created
    until then is left in place.
    """

    def __init__(self, refused: TargetError, undo: Undo) -> None:
        step = (
            "manually remove what the set-up created before this object, or rename its objects; the teardown was not "
            "run, so that no object of yours or of another run is dropped"
        )
        super().__init__(refused.message, where=refused.where, next_step=step)
        self.undo = undo


class Guardian(Closeable):
    """The first process's handle on its guardian process.

    The guardian process is started by the first `push` or `claim`. All methods can be called from several threads.
    """

    def __init__(self, journal: Path | None = None) -> None:
        self._journal = journal
        self._process: subprocess.Popen[bytes] | None = None
        self._pending: dict[int, Undo] = {}
        self._next_id = 1
        self._sequence = 0
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Return the guardian's process ID, or None while it is not running."""
        return self._process.pid if self._process else None

    @property
    def pending(self) -> tuple[Undo, ...]:
        """Return the undos that are currently registered, oldest first."""
        return tuple(self._pending.values())

    def push(self, undo: Undo) -> int:
        """Register an undo and return its number; the guardian has stored it when this returns.

        Raises:
            TargetError: The guardian cannot store the undo.
        """
        with self._lock:
            number = self._next_id
            self._next_id += 1
            self._tell({"op": "push", "id": number, "undo": to_wire(undo)})
            self._pending[number] = undo
            return number

    def discard(self, number: int) -> None:
        """Remove an undo that has been carried out.

        It is no error if the number is unknown or the guardian has exited.
        """
        with self._lock:
            if self._pending.pop(number, None) is not None:
                with contextlib.suppress(TargetError):
                    self._tell({"op": "discard", "id": number})

    def claim(self, connection: Mapping[str, Any], run: str = "") -> None:
        """Take the lock of a server's settings, or confirm that it is still held; the guardian holds it until it exits.

        Raises:
            TargetError: Another run holds the lock, or the server or the guardian does not answer.
        """
        with self._lock:
            message = {"op": "claim", "connection": dict(connection), "run": run}
            answer = self._ask(message, CLAIM_S)
            if answer is None or answer["problem"]:
                known = answer or {"problem": "the guardian process does not answer"}
                raise TargetError(
                    f"{known['problem']}; no setting was changed",
                    where=known.get("where"),
                    next_step=known.get("next_step")
                    or "check that the server can be reached, then run the command again",
                )

    def retry_sentence(self, undo: Undo) -> str:
        """Return a sentence on how a failed undo will be retried, for the next step of an error."""
        if is_retried(undo) and self.pid is not None:
            return (
                f"the guardian (process {self.pid}) tries again for 24 h;"
                " `dbdyno doctor --target DSN` shows whether it is done"
            )
        return "restore it manually; the guardian tries once more when dbdyno ends"

    @contextlib.contextmanager
    def undo(self, undo: Undo) -> Iterator[None]:
        """Carry out the undo when the context ends, unless it ends with an `ObjectExistsError` for this very undo.

        Raises:
            TargetError: The undo could not be registered or carried out.
        """
        number = self.push(undo)
        left = False
        try:
            yield
        except ObjectExistsError as error:
            left = error.undo is undo
            raise
        finally:
            problems = () if left else undo.execute()
            if problems:
                raise TargetError(
                    "not everything could be restored: " + "; ".join(problems),
                    next_step=self.retry_sentence(undo),
                )
            self.discard(number)

    def close(self) -> None:
        """Stop the guardian; it first carries out the undos that are still registered.

        This waits at most `CLOSE_S` for the undos, and not at all for a server that does not answer. A guardian that
        needs longer continues by itself. If the guardian was killed, this process carries out the undos.
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
            silent = any(is_unanswered(getattr(undo, "connection", {})) for undo in self._pending.values())
            try:
                process.wait(timeout=0 if silent else CLOSE_S)
            except subprocess.TimeoutExpired:
                _STILL_AT_WORK.append(process)
            process.stdout.close()
            if process.returncode is not None and process.returncode < 0:  # it was killed
                for undo in reversed(self._pending.values()):
                    undo.execute()
            self._pending.clear()

    def _tell(self, message: dict[str, object]) -> None:
        """Send a message and raise `TargetError` unless the guardian acknowledges it."""
        answer = self._ask(message, ACKNOWLEDGE_S)
        detail = "no answer" if answer is None else answer["problem"]
        if detail:
            raise TargetError(
                f"the guardian process has not stored how to undo the change ({detail}); the change was not made",
                next_step="run the command again; if the error repeats, check what ends processes on this machine",
            )

    def _ask(self, message: JsonObject, patience_s: float) -> JsonObject | None:
        """Send a message and return its answer, or None on timeout; late answers to earlier messages are skipped."""
        process = self._process = self._process or _spawn(self._journal)
        assert process.stdin is not None and process.stdout is not None
        self._sequence += 1
        message = {**message, "sequence": self._sequence}
        with contextlib.suppress(OSError):
            _write_all(process.stdin.fileno(), b"\n" + json.dumps(message).encode() + b"\n")
            while line := _read_line(process.stdout.fileno(), patience_s):
                answer: JsonObject = json.loads(line)
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


def _remember(message: JsonObject, held: dict[int, Undo], claims: Claims) -> None:
    """Apply one message from the parent to the stored undos and claims."""
    if message["op"] == "claim":
        claims.claim_for(message["connection"]).acquire(message["run"])
        return
    number = int(message["id"])
    if message["op"] == "discard":
        held.pop(number, None)
    else:
        undo = from_wire(message["undo"])
        if isinstance(undo, SqlUndo):
            import psycopg  # noqa: F401  # an import error must occur before the change, not after
        elif type(undo).__name__ == "MariaUndo":
            import pymysql  # noqa: F401
        elif type(undo).__name__ == "PlanUndo":
            import asyncssh  # noqa: F401
        held[number] = undo


def _listen(parent: int, held: dict[int, Undo], claims: Claims) -> None:
    """Store undos until `done` arrives, which clears them, or until the parent is gone."""
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
            except ValueError:  # the rest of an interrupted message
                continue
            if message["op"] == "done":
                held.clear()
                return
            answer: dict[str, object] = {"sequence": message["sequence"], "problem": ""}
            try:
                _remember(message, held, claims)
            except Exception as error:  # the parent gets the reason; the guardian continues
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
    """Redirect stderr to /dev/null if it is a pipe or socket, so that its reader does not wait for this process.

    A reader such as `tee` or a build's log waits for the end of the pipe, but the guardian may run for hours.
    """
    with contextlib.suppress(OSError):
        kind = os.fstat(2).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            os.write(2, b"guardian: goes on without a word here; `dbdyno doctor` shows what is left\n")
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)


def main(arguments: list[str]) -> int:
    """Run the guardian: listen to the parent, then carry out the undos that the parent left.

    Returns:
        0 if everything was undone, 1 if something failed.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    journal = Path(arguments[1]) if len(arguments) > 1 else None
    held: dict[int, Undo] = {}
    claims = Claims()
    with contextlib.suppress(Exception):  # stored undos must be carried out whatever happens to the pipe
        _listen(int(arguments[0]), held, claims)
    undos = list(reversed(held.values()))
    return 1 if execute_undos(undos, claims, lambda text: _tell_outcome(journal, text), before_long=_let_go) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
