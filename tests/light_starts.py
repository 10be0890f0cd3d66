"""Engines of tests that run as another user: started through `setpriv`, so that no process copies the test process.

Python starts a program as another user only by `fork`. A worker of the test run is up to a gigabyte large: to copy its
page tables, and to unshare the pages that it uses afterwards, took up to a tenth of a second of processor time for each
start of a server and for each folder that a server's user tries to enter. `setpriv` changes the user after `vfork`,
which copies nothing.

A program that not every user can reach is started as before, because then the error of the start is what a test needs.
"""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest


@pytest.fixture(autouse=True, scope="session")
def light_starts() -> Iterator[None]:
    """Start the engines of the test process through `setpriv` where it is installed."""
    from dbdyno.bench.engine import embedded_server, os_user

    program = shutil.which("setpriv")
    if program is None:
        yield
        return
    run, popen = (through(program, start) for start in (subprocess.run, subprocess.Popen))
    starts = SimpleNamespace(**{**vars(subprocess), "run": run, "Popen": popen})
    with mock.patch.object(os_user, "subprocess", starts), mock.patch.object(embedded_server, "subprocess", starts):
        yield


def through(setpriv: str, start: Callable[..., Any]) -> Callable[..., Any]:
    """Return a start of programs in which `setpriv` changes the user."""

    def instead(
        command: Sequence[str | Path],
        *,
        user: int | None = None,
        group: int | None = None,
        extra_groups: Sequence[int] | None = None,
        **options: Any,
    ) -> Any:
        if user is None or extra_groups or not for_all_users(Path(command[0])):
            return start(command, user=user, group=group, extra_groups=extra_groups, **options)
        return start([setpriv, f"--reuid={user}", f"--regid={group}", "--clear-groups", "--", *command], **options)

    return instead


def for_all_users(program: Path) -> bool:
    """Return True if the modes of the program and its folders let every user run it."""
    return program.is_absolute() and all(
        path.exists() and path.stat().st_mode & stat.S_IXOTH for path in (program, *program.resolve().parents)
    )
