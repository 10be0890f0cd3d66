"""Fixtures for live runs: one server that dbdyno did not start, for the entire test session, and small plans for it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from lab_help import TWO_ARMS, Delay
from model_desk import Desk

import short_command
from command_line import dbdyno
from dbdyno.base.decisions import WITHHOLDING

ENVIRONMENT = {"COLUMNS": "120", "NO_COLOR": "1"}

RESTING = "select 1 from pg_sleep(0.001);"
"""Load that leaves the processors to other tests, because most tests of runs need only a few transactions."""


class Lab:
    """Run `dbdyno` as a user would, in its own folder."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.dsn = dsn

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, short_command.__file__, *arguments]

    def __call__(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command and check its exit code; 1 is also accepted from `compare` (an arm is slower), and from `run`
        if other load on this machine disturbed it."""
        done = dbdyno(*arguments, cwd=self.folder, **ENVIRONMENT)
        allowed = {code}
        if code == 0 and (arguments[0] == "compare" or (arguments[0] == "run" and self.was_unsteady())):
            allowed = {0, 1}
        assert done.returncode in allowed, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    def was_unsteady(self) -> bool:
        """Return True if all gates that withhold a run's verdict are due to the machine, whose speed changed."""
        analyses = sorted((self.folder / "runs").glob("*/analysis.json"))
        if not analyses:
            return False
        gates = json.loads(analyses[-1].read_text())["gates"]
        failed = {gate["code"] for gate in gates if gate["ok"] is False} & set(WITHHOLDING)
        return bool(failed) and failed <= {"level", "difference"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command and do not wait for it."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **ENVIRONMENT},
        )

    def plan(
        self,
        arms: str,
        *,
        blocks: int = 3,
        more: str = "",
        name: str = "plan.toml",
        script: str = RESTING,
    ) -> str:
        """Write a small plan for the lab's server; return its name."""
        text = f"""title = "small"
[target]
dsn = "{self.dsn}"
[workload]
scripts = [{{name = "s", text = '''{script}'''}}]
{more}
[load]
sessions = 2
[schedule]
blocks = {blocks}
warmup_blocks = 1
turn = "60ms"
slice = "20ms"
settle = "50ms"
[watch]
overhead_blocks = 0
{arms}
"""
        (self.folder / name).write_text(text)
        return name


@pytest.fixture
def lab(tmp_path: Path, dsn: str) -> Lab:
    """Return a laboratory in an empty folder."""
    return Lab(tmp_path, dsn)


@pytest.fixture(scope="session")
def lab_in(
    tmp_path_factory: pytest.TempPathFactory, dsn: str
) -> Callable[[str], contextlib.AbstractContextManager[Lab]]:
    """Return a function that makes a laboratory for several tests; while it is open, its state folder is its own."""

    @contextlib.contextmanager
    def make(name: str) -> Iterator[Lab]:
        lab = Lab(tmp_path_factory.mktemp(name), dsn)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DBDYNO_STATE", str(lab.folder / "state"))
            patch.setenv("DBDYNO_CONFIG", str(lab.folder / "config.toml"))
            yield lab

    return make


@pytest.fixture(scope="session")
def shared_run(lab_in) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run the small plan of two arms once, with its page; return its folder, which stays as it is, and what it
    printed."""
    with lab_in("shared_run") as lab:
        return lab.folder / "runs", lab("run", lab.plan(TWO_ARMS), "--seed", "7")


@pytest.fixture
def lab_with_run(lab: Lab, shared_run: tuple[Path, subprocess.CompletedProcess[str]]) -> Lab:
    """Return a laboratory with a copy of the shared run, which the test may change."""
    shutil.copytree(shared_run[0], lab.folder / "runs")
    return lab


@pytest.fixture
def delay(dsn: str) -> Iterator[Delay]:
    """Return a function that reads the setting that `reloading` varies."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield Delay(conn)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a desk for runs on models, in an empty folder."""
    return Desk(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 2 MB (needs root and mount)."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
