"""A Dask cluster on this machine, and a folder in which `dbdyno` runs."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from cluster import Cluster, cluster

from command_line import dbdyno
from dbdyno.base.errors import Error
from dbdyno.hosts.workers import load_distributed
from mariadb_server import running_server
from mock_plans import DISK_AND_FLASH, model_plan
from skipped import skipped_on


class Desk:
    """Runner of `dbdyno` in its own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int = 0) -> str:
        done = dbdyno(*arguments, cwd=self.folder, COLUMNS="120", NO_COLOR="1")
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def plan(self, blocks: int = 5, transactions: int = 300) -> str:
        again = '[[arm]]\nname = "disk again"\nsettings = {"storage.redo" = "log_sas"}\n'
        text = model_plan(DISK_AND_FLASH + again, blocks=blocks, transactions=transactions)
        (self.folder / "p.toml").write_text(text)
        return "p.toml"

    def run(self, runs: str) -> Path:
        (run,) = (self.folder / runs).iterdir()
        return run

    def parts(self, runs: str) -> dict[str, bytes]:
        run = self.run(runs)
        return {file.relative_to(run).as_posix(): file.read_bytes() for file in sorted(run.rglob("*.parquet"))}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(autouse=True, scope="session")
def needs_distributed() -> None:
    with skipped_on(Error):
        load_distributed()


_running: list[Cluster] = []
_held = contextlib.ExitStack()


@pytest.fixture
def two(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """Return a cluster of two workers, which runs until tests of another folder follow: idle, it takes a twentieth of
    a core.
    """
    if not _running:
        _running.append(_held.enter_context(cluster(tmp_path_factory.mktemp("workers"), 2)))
    return _running[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the cluster after the last test of this folder."""
    if nextitem is None or nextitem.path.parent != item.path.parent:
        _running.clear()
        _held.close()


maria = pytest.fixture(scope="session")(running_server)
