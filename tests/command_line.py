"""`dbdyno` run within the test process: with the arguments that a user types, but without starting an interpreter.

    done = dbdyno("runs", "--format", "json", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "[]\\n")

Tests that need a separate process start one: for a signal, a closed pipe, the imported modules, or a crash.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import pty
import shlex
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO, TypeVar, cast
from unittest import mock

from dbdyno import entry
from dbdyno.base.signals import Listener
from dbdyno.cli import main

Text = TypeVar("Text", str, bytes)


def dbdyno(
    *words: object, cwd: Path | None = None, stdin: str | bytes = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `environment` is added to the existing variables, and output is redirected to files."""
    with contextlib.ExitStack() as stack:
        out, err, given = (stack.enter_context(_file()) for _ in range(3))
        given.buffer.write(stdin.encode() if isinstance(stdin, str) else stdin)
        given.seek(0)
        code = _ending(words, (out, err, given), cwd, environment)
        return subprocess.CompletedProcess(["dbdyno", *words], code, _content(out), _content(err))


def succeeded(*words: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that must end with exit code 0."""
    return checked(dbdyno(*words, cwd=cwd, **environment))


def checked(done: subprocess.CompletedProcess[Text]) -> subprocess.CompletedProcess[Text]:
    """Return the result of a process that must have ended with exit code 0."""
    assert done.returncode == 0, f"{done.stderr!s}{done.stdout!s}"
    return done


def to_a_closed_pipe(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, whose reader has had enough after a line."""
    command = shlex.join([sys.executable, "-m", "dbdyno", *map(str, words)])
    return subprocess.run(f"{command} | head -1", shell=True, text=True, capture_output=True, check=False)


def on_a_terminal(*words: object, cwd: Path | None = None, **environment: str) -> bytes:
    """What a command writes to a terminal, on stdout and stderr."""
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(ours, shown))
    reader.start()
    try:
        with os.fdopen(theirs, "w") as out, Path(os.devnull).open() as given:
            _ending(words, (out, out, given), cwd, {"TERM": "xterm", **environment})
    finally:
        reader.join()
        os.close(ours)
    return b"".join(shown)


def _ending(
    words: tuple[object, ...], streams: tuple[TextIO, TextIO, TextIO], cwd: Path | None, environment: dict[str, str]
) -> int:
    """Run a command and return its exit code; the signal handlers and exit handlers of the test process do not change.

    A command registers its own exit code for the process: without this protection, a repeated run of failed tests,
    which is one process, would end with 0 if its first command did.
    """
    out, err, given = streams
    named = functools.partial(main.cli.main, prog_name="dbdyno")
    with (
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.dict(os.environ, environment),
        mock.patch.multiple(sys, argv=["dbdyno", *map(str, words)], stdout=out, stderr=err, stdin=given),
        mock.patch.object(Listener, "start"),
        mock.patch.object(entry, "end_at_once", lambda: None),
        mock.patch.object(entry, "_codes", []),
        mock.patch.object(main.cli, "main", named),
    ):
        try:
            entry.entry()
        except SystemExit as ending:
            return cast(int, ending.code)
        except Exception:  # `--debug`: what the interpreter does at the end of a process
            traceback.print_exc(file=err)
            return 1


@contextlib.contextmanager
def _file() -> Iterator[io.TextIOWrapper]:
    """Yield a stream to a file without a name."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as stream:
        yield cast(io.TextIOWrapper, stream)


def _content(stream: io.TextIOWrapper) -> str:
    """Return the written text, with line ends as a text reader sees them."""
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read().decode().replace("\r\n", "\n")


def _drain(terminal: int, shown: list[bytes]) -> None:
    """Read until no process has the terminal open any more."""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            shown.append(part)
