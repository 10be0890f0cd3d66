"""Data folders of servers: made by `initdb` or `mariadb-install-db` once per run of tests, then copied.

The programs of servers are asked for their versions once per process: at each start that took as long as a copy.

Creating a folder takes three quarters of a second of processor time, and copying it a tenth of that; the tests start
some hundred servers. Folders of stopped servers are reused (`folders_again.py`). A copy has the system identifier of
its template. A test that must distinguish two servers by it uses `made_anew`, and its folders are created, not copied.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

import folders_again
import mariadb_server
from dbdyno.bench.engine import embedded_server
from dbdyno.bench.engine.os_user import Account
from dbdyno.bench.mariadb import embedded as mariadb
from dbdyno.bench.postgres import binaries
from dbdyno.bench.postgres import embedded as postgres

Run = Callable[..., subprocess.CompletedProcess[str]]

_anew = [False]
"""True if the current test needs newly created folders."""


@pytest.fixture
def made_anew() -> Iterator[None]:
    """Give each server that is started in this test its own system identifier."""
    _anew[:] = [True]
    yield
    _anew[:] = [False]


@pytest.fixture(autouse=True, scope="session")
def folders_copied(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """Keep one template of each kind of folder for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    templates = (base if worker_id == "master" else base.parent) / "data-folders"
    templates.mkdir(exist_ok=True)
    run = copying(postgres.run_as, templates, worker_id)
    with (
        mock.patch.object(postgres, "run_as", run),
        mock.patch.object(mariadb, "run_as", run),
        mock.patch.object(mariadb_server, "run_as", run),
        mock.patch.object(embedded_server, "shutil", SimpleNamespace(rmtree=folders_again.remove)),
        mock.patch.object(binaries, "version_of", asked_once(binaries.version_of)),
    ):
        yield


def asked_once(version_of: Callable[[Path], str | None]) -> Callable[[Path], str | None]:
    """Return a `version_of` that runs a program again only after its file has changed."""

    @functools.cache
    def ask(program: Path, _changed_ns: int, _length: int) -> str | None:
        return version_of(program)

    def instead(program: Path) -> str | None:
        facts = program.stat()
        return ask(program, facts.st_mtime_ns, facts.st_size)

    return instead


def copying(run: Run, templates: Path, worker: str) -> Run:
    """Return a `run_as` that copies a data folder if an identical one was created before."""

    def instead(account: Account, command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
        data = data_folder(command)
        if data is None or _anew[0] or (data.exists() and any(data.iterdir())):
            return run(account, command, **options)
        template = templates / _key(account, command, data)
        if template.exists():
            if not folders_again.take(template, data):
                _copy(template, data)
            folders_again.note(data, template)
            return subprocess.CompletedProcess(command, 0, stdout=f"copied from {template}\n")
        done = run(account, command, **options)
        if done.returncode == 0:
            aside = template.with_suffix(f".{worker}.{threading.get_ident()}")
            _copy(data, aside, "--sparse=always")
            with contextlib.suppress(OSError):  # another process or thread was first
                aside.rename(template)
            folders_again.note(data, template)
        return done

    return instead


def data_folder(command: Sequence[str | Path]) -> Path | None:
    """Return the folder that this command fills, or None if it does not fill one."""
    program, *words = (str(word) for word in command)
    if Path(program).name == "initdb" and "-D" in words:
        return Path(words[words.index("-D") + 1])
    if Path(program).name == "mariadb-install-db":
        return Path(next(word.removeprefix("--datadir=") for word in words if word.startswith("--datadir=")))
    return None


def _key(account: Account, command: Sequence[str | Path], data: Path) -> str:
    """Return a key that is equal for equal programs, options and users, wherever the programs and the folder are."""
    program = Path(command[0])
    words = [str(word).replace(str(data.parent), "") for word in command[1:]]
    sizes = [path.stat().st_size for name in (program.name, "postgres") if (path := program.with_name(name)).exists()]
    return hashlib.sha256(repr([program.name, sizes, words, account.uid]).encode()).hexdigest()[:16]


def _copy(source: Path, to: Path, *options: str) -> None:
    subprocess.run(["cp", "-a", *(options if sys.platform == "linux" else ()), f"{source}/.", to], check=True)
