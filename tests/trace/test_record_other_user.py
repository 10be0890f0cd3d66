"""Recordings by a user who neither is root nor owns the server: what two capabilities allow, and the error without."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from record_help import rows, session

from dbdyno import _core
from dbdyno.base.errors import TraceError
from dbdyno.bench.engine.os_user import engine_account
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from skipped import skipped_on

PTRACE, ADMIN = 19, 21
"""Numbers of CAP_SYS_PTRACE and CAP_SYS_ADMIN."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two other users")


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        with skipped_on(TraceError):
            _core.read_cost(running.pid)
        yield running


@pytest.fixture(scope="module")
def stranger() -> pwd.struct_passwd:
    """Return a user who is neither root nor the server's."""
    return next(one for one in pwd.getpwall() if one.pw_uid not in (0, engine_account().uid))


def record(
    stranger: pwd.struct_passwd, folder: Path, engine: EmbeddedPostgres, *words: str, with_: tuple[int, ...]
) -> subprocess.CompletedProcess[str]:
    """Record a second of the server as that user with these capabilities; the run is `run` in the folder."""
    program = Path(__file__).parent / "as_server.py"
    user = (str(stranger.pw_uid), str(stranger.pw_gid), ",".join(map(str, with_)) or "none")
    command = ["trace", "record", "--pid", str(engine.pid), "--for", "1s", "--out", "run", *words]
    os.chown(folder, stranger.pw_uid, stranger.pw_gid)
    return subprocess.run(
        [sys.executable, str(program), *user, *command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that any user can enter."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_the_right_to_trace_processes_is_enough_to_read_the_server(
    engine: EmbeddedPostgres, stranger: pwd.struct_passwd, folder: Path
) -> None:
    with session(engine):
        done = record(stranger, folder, engine, with_=(PTRACE,))
    assert done.returncode == 0, done.stderr
    names = [name for (name,) in rows(folder / "run", "select name from sessions")]
    assert {"client", "checkpointer", "walwriter"} <= {name.partition(" ")[0] for name in names}


@pytest.mark.soak
def test_probes_of_another_user_find_the_sessions(
    engine: EmbeddedPostgres, stranger: pwd.struct_passwd, folder: Path
) -> None:
    """The end takes long: that user may not define probes that share one event, and the kernel closes each by itself.

    Those who could not open `/proc/PID/mem` had "no session to record".
    """
    with skipped_on(TraceError):
        _core.trap_cost_ns()
    with session(engine):
        done = record(stranger, folder, engine, "--mode", "sites", "--cost-limit", "0", with_=(ADMIN, PTRACE))
    assert done.returncode == 0, done.stderr
    assert int(re.findall(r"waits of (\d+) sessions", done.stdout)[0]) >= 5


@pytest.mark.parametrize("capabilities", [(), (ADMIN,)])
def test_without_it_the_error_names_the_server_its_user_and_the_command(
    engine: EmbeddedPostgres, stranger: pwd.struct_passwd, folder: Path, capabilities: tuple[int, ...]
) -> None:
    done = record(stranger, folder, engine, with_=capabilities)
    owner = engine_account().name
    assert done.returncode == 2
    said, step = done.stderr.splitlines()
    assert said.startswith(f"dbdyno: process {engine.pid}: the server (")
    assert "/postgres" in said and said.endswith(f"belongs to user {owner}, but dbdyno runs as {stranger.pw_name}")
    assert f"(sudo -u {owner} dbdyno ...)" in step and f"`ps -fp {engine.pid}` shows the process" in step
