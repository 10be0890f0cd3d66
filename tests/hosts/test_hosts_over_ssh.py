"""Workers started over SSH: a real OpenSSH server, whose host is this one."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from test_load_on_hosts import LOAD, sessions_of

import dbdyno as package
from command_line import dbdyno
from conftest import Desk
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from waiting import until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
CONFIG = """\
{ports}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
PidFile none
UsePAM no
PermitRootLogin yes
SetEnv PYTHONPATH={path}
"""


@pytest.fixture
def ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Yield the ports of a server that lets the user who runs the tests log in, as three hosts."""
    if SSHD is None:
        pytest.skip("OpenSSH's server is not here; make setup-test")
    with contextlib.ExitStack() as probes:
        numbers = [free_port(probes.enter_context(socket.socket())) for _ in range(3)]
    home = tmp_path / "home" / ".ssh"
    home.mkdir(parents=True, mode=0o700)
    for key in (tmp_path / "host", home / "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shutil.copy(home / "id_ed25519.pub", tmp_path / "user.pub")
    key_text = (tmp_path / "host.pub").read_text()
    (home / "known_hosts").write_text("".join(f"[127.0.0.1]:{number} {key_text}" for number in numbers))
    path = ":".join([str(Path(package.__file__).parents[1]), *filter(None, sys.path)])
    lines = "\n".join(f"Port {number}" for number in numbers)
    (tmp_path / "config").write_text(CONFIG.format(ports=lines, folder=tmp_path, path=path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    server = subprocess.Popen([SSHD, "-D", "-f", str(tmp_path / "config"), "-E", str(tmp_path / "log")])
    until(lambda: all(map(listens, numbers)), 20)
    yield numbers
    server.terminate()
    server.wait(10)


@pytest.fixture
def port(ports: list[int]) -> int:
    return ports[0]


def free_port(probe: socket.socket) -> int:
    probe.bind(("127.0.0.1", 0))
    return int(probe.getsockname()[1])


def listens(number: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", number)) == 0


def dask_processes() -> set[int]:
    return {process.pid for process in psutil.process_iter() if "dask_spec" in " ".join(_words(process))}


def _words(process: psutil.Process) -> list[str]:
    try:
        words: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return words


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_hosts_over_ssh_work_and_nothing_is_left_on_them(port: int, desk: Desk) -> None:
    before = dask_processes()
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    desk("run", desk.plan(), "--seed", "7", "--out", "here")
    desk("run", desk.plan(), "--seed", "7", "--out", "there", "--hosts", f"{user}@127.0.0.1:{port}")
    plan = desk.plan()
    hosts = f'[load]\nhosts = ["{user}@127.0.0.1:{port}"]\n[schedule]'
    (desk.folder / plan).write_text((desk.folder / plan).read_text().replace("[schedule]", hosts))
    desk("run", plan, "--seed", "7", "--out", "planned")
    assert desk.parts("here") == desk.parts("there") == desk.parts("planned")
    assert until(lambda: not dask_processes() - before, 30), "a process of Dask is left"


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_hosts_of_a_plan_share_a_load_over_ssh_and_nothing_is_left_on_them(ports: list[int], desk: Desk) -> None:
    before = dask_processes()
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    hosts = ", ".join(f'"{user}@127.0.0.1:{port}"' for port in ports)
    with EmbeddedPostgres() as server:
        dsn = make_conninfo("", **server.tcp_conninfo())
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create table counted (n int)")
            (desk.folder / "l.toml").write_text(LOAD % (dsn, 7, f"hosts = [{hosts}]", 2))
            done = dbdyno("run", "l.toml", "--out", "runs", cwd=desk.folder)
            assert done.returncode in (0, 1), done.stderr
            counted = conn.execute("select count(*) from counted").fetchone()
            assert sessions_of(conn) == 0
    calls = f"read_parquet('{desk.run('runs')}/calls/*.parquet')"
    query = f"select count(*), count(distinct host), count(distinct session) from {calls} where kind = 'transaction'"
    assert counted is not None
    assert duckdb.connect().execute(query).fetchone() == (counted[0], 3, 7)
    assert until(lambda: not dask_processes() - before, 30), "a process of Dask is left"


@pytest.mark.soak
def test_a_host_that_cannot_be_reached_is_told(port: int, desk: Desk) -> None:
    del port
    done = dbdyno("run", desk.plan(), "--hosts", "127.0.0.1:1", cwd=desk.folder)
    assert done.returncode == 2
    assert "workers cannot be started over SSH" in done.stderr
