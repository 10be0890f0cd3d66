"""TLS on both sides of the proxy, with SCRAM through it; and many idle sessions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from proxy_help import proxied, through
from record_help import session

from certificates import Signer, make
from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

IDLE = 2000
MEMORY_MOST_KB = 100 << 10


def written(signer: Signer, folder: Path) -> tuple[Path, Path]:
    """Write a certificate and its key to files."""
    folder.mkdir()
    certificate, key = folder / "one.crt", folder / "one.key"
    certificate.write_bytes(signer.pem())
    key.write_bytes(signer.key_pem())
    return certificate, key


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return make("root", authority=True)


@pytest.fixture(scope="module")
def root(authority: Signer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("root") / "root.crt"
    path.write_bytes(authority.pem())
    return path


@pytest.fixture(scope="module")
def own(authority: Signer, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The server's certificate and key."""
    return written(make("server", authority), tmp_path_factory.mktemp("own") / "server")


@pytest.fixture(scope="module")
def engine(own: tuple[Path, Path]) -> Iterator[EmbeddedPostgres]:
    """Yield a server with TLS that requires a password by SCRAM."""
    with EmbeddedPostgres() as running:
        owner = running.data_dir.stat()
        for path, name in zip(own, ("server.crt", "server.key"), strict=True):
            put = running.data_dir / name
            put.write_bytes(path.read_bytes())
            put.chmod(0o600)
            os.chown(put, owner.st_uid, owner.st_gid)
        with session(running) as connection:
            connection.execute("alter system set ssl = on")
            connection.execute("select pg_reload_conf()")
            while connection.execute("show ssl").fetchone() != ("on",):
                pass
        yield running


def test_clients_may_have_tls_where_the_server_has_none(
    engine: EmbeddedPostgres, own: tuple[Path, Path], root: Path, tmp_path: Path
) -> None:
    with proxied(engine, tmp_path / "run", tls_cert=own[0], tls_key=own[1]) as it:
        with through(engine, it, sslmode="verify-full", sslrootcert=str(root)) as connection:
            assert connection.pgconn.ssl_in_use
            asked = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
            assert connection.execute(asked).fetchall() == [(False,)]
            assert len(connection.execute("select repeat('z', 1000000)").fetchall()[0][0]) == 1_000_000
        with through(engine, it, sslmode="disable") as plain:
            assert not plain.pgconn.ssl_in_use


def test_the_server_may_have_tls_where_clients_have_none(engine: EmbeddedPostgres, root: Path, tmp_path: Path) -> None:
    with (
        proxied(engine, tmp_path / "run", server_tls="verify-full", server_ca=root) as it,
        through(engine, it) as connection,
    ):
        asked = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
        assert connection.execute(asked).fetchall() == [(True,)]
        assert len(connection.execute("select repeat('z', 1000000)").fetchall()[0][0]) == 1_000_000
        with connection.cursor().copy("copy (select generate_series(1, 20000)) to stdout") as copy:
            assert sum(1 for _ in copy.rows()) == 20_000


def test_a_login_bound_to_the_certificate_passes_where_it_is_the_servers_own(
    engine: EmbeddedPostgres, own: tuple[Path, Path], authority: Signer, tmp_path: Path
) -> None:
    bound = {"sslmode": "require", "channel_binding": "require"}
    same = {"server_tls": "require", "tls_cert": own[0], "tls_key": own[1]}
    with proxied(engine, tmp_path / "a", **same) as it, through(engine, it, **bound) as connection:
        assert connection.execute("select 1").fetchall() == [(1,)]
    other = written(make("other", authority), tmp_path / "other")
    with proxied(engine, tmp_path / "b", server_tls="require", tls_cert=other[0], tls_key=other[1]) as it:
        with pytest.raises(psycopg.OperationalError, match="channel binding"):
            through(engine, it, **bound)
        with through(engine, it, sslmode="require", channel_binding="disable") as connection:
            assert connection.execute("select 1").fetchall() == [(1,)]


def test_a_server_with_a_foreign_certificate_gets_no_password(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger.crt"
    stranger.write_bytes(make("stranger", authority=True).pem())
    refused = pytest.raises(psycopg.OperationalError, match=r"cannot be reached: .*certificate")
    with proxied(engine, tmp_path / "run", server_tls="verify-ca", server_ca=stranger) as it, refused:
        through(engine, it)


def test_what_is_missing_for_tls_is_told(tmp_path: Path, own: tuple[Path, Path]) -> None:
    words = ("trace", "proxy", "--target", "localhost", "--out", tmp_path / "run")
    alone = dbdyno(*words, "--tls-cert", own[0])
    assert (alone.returncode, "are named together" in alone.stderr) == (2, True), alone.stderr
    swapped = dbdyno(*words, "--tls-cert", own[1], "--tls-key", own[0])
    assert (swapped.returncode, "PEM files" in swapped.stderr) == (2, True), swapped.stderr
    unrooted = dbdyno(*words, "--server-tls", "verify-full")
    assert (unrooted.returncode, "--server-ca" in unrooted.stderr) == (2, True), unrooted.stderr


@pytest.mark.soak
def test_two_thousand_sessions_that_do_nothing_take_less_than_100_mb(tmp_path: Path) -> None:
    with EmbeddedPostgres(settings={"max_connections": IDLE + 50, "shared_buffers": "16MB"}) as engine:
        to = f"{engine.socket_dir}:{engine.port}"
        words = ["trace", "proxy", "--listen", "127.0.0.1:0", "--target", to, "--out", str(tmp_path / "run")]
        with subprocess.Popen(
            [sys.executable, "-m", "dbdyno", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            port = process.stderr.readline().split("connect to ")[1].split(";")[0].rpartition(":")[2]
            where = {**engine.conninfo(), "host": "127.0.0.1", "port": port, "sslmode": "disable"}
            held = [psycopg.connect(**where, autocommit=True) for _ in range(IDLE)]  # type: ignore[arg-type]
            assert held[-1].execute("select count(*) > 2000 from pg_stat_activity").fetchall() == [(True,)]
            status = Path(f"/proc/{process.pid}/status").read_text()
            resident_kb = int(status.split("VmRSS:")[1].split()[0])
            for connection in held:
                connection.close()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate()
        assert f"of {IDLE} sessions" in out
        assert resident_kb < MEMORY_MOST_KB, f"{resident_kb} kB"
