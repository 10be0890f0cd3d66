"""Runs behind pgbouncer: dbdyno detects whether prepared statements survive, and if not, does not prepare them."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.pooler import keeps_prepared_statements
from dbdyno.bench.postgres.prepare import prepare
from dbdyno.bench.postgres.server import Postgres
from dbdyno.study.plan.plan import Arm, Plan, Script, Workload

BOUNCER = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
pytestmark = pytest.mark.skipif(not Path(BOUNCER).exists(), reason="pgbouncer is not installed: make setup-test")


def _bouncer(engine: EmbeddedPostgres, folder: Path, mode: str) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    behind = engine.tcp_conninfo()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "users").write_text(f'"{behind["user"]}" "{behind["password"]}"\n')
    (folder / "bouncer.ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={behind['port']}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder}/users\n"
        f"pool_mode = {mode}\nignore_startup_parameters = options,extra_float_digits\n"
    )
    root = os.geteuid() == 0
    if root:
        nobody = pwd.getpwnam("nobody")
        for path in (folder, *folder.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    command = [BOUNCER, *(["-u", "nobody"] if root else []), str(folder / "bouncer.ini")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")
    given = {**behind, "host": "127.0.0.1", "port": str(port)}
    for _ in range(200):
        try:
            psycopg.connect(make_conninfo("", **given), connect_timeout=2).close()
            return process, given
        except psycopg.OperationalError:
            time.sleep(0.05)
    process.terminate()
    process.wait()
    raise AssertionError("pgbouncer did not come up")


@pytest.fixture(params=["transaction", "session"])
def pooled(request: pytest.FixtureRequest, engine: EmbeddedPostgres) -> Iterator[tuple[str, Postgres]]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        process, given = _bouncer(engine, Path(name), request.param)
        try:
            yield request.param, Postgres.open(make_conninfo("", **given))
        finally:
            process.terminate()
            process.wait()


def test_prepared_statements_of_a_transaction_pooler_are_sent_extended(pooled: tuple[str, Postgres]) -> None:
    mode, target = pooled
    assert target.pooled
    assert keeps_prepared_statements(target) == (mode == "session")
    script = Script("s", "select 1;")
    plan = Plan(title="pooled", workload=Workload(scripts=[script]), arms=[Arm("a"), Arm("b")])
    ready = prepare(plan, [target, target], 1)
    expected = "extended" if mode == "transaction" else "prepared"
    assert {arm.protocol for arm in ready.arms} == {expected}
    assert bool(ready.notes) == (mode == "transaction")
    assert all(arm["pooled"] for arm in ready.load_spec()["arms"])


def test_sessions_that_share_a_servers_process_get_their_own_answers(pooled: tuple[str, Postgres]) -> None:
    """Psycopg prepares what is asked for the sixth time, under names that both sessions count alike: counters of the
    server were then lost in a run, or those of another statement."""
    _, target = pooled
    with closing(target.connect()) as one, closing(target.connect()) as two:
        for number in range(12):
            assert one.execute("select 1 as first").fetchall() == [(1,)]
            cursor = two.execute("select 2 as second, %s::int as given", [number])
            assert [column.name for column in cursor.description or ()] == ["second", "given"]
            assert cursor.fetchall() == [(2, number)]
