"""A man in the middle of any of our connections to MariaDB gets neither a password nor a file."""

from __future__ import annotations

import itertools
import ssl
from pathlib import Path

import pytest
from hostile_mariadb import ASKS, HostileMariaDB
from sha2_server import Sha2Server

from certificates import make
from command_line import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.address import address
from dbdyno.bench.mariadb.safe_connection import safe_connection_class
from dbdyno.bench.mariadb.server import MariaDB

PASSWORD = "geheimnis"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates of the server and of an attacker, and option files."""
    folder, root = tmp_path_factory.mktemp("guard"), make("root", authority=True)
    for name, signer in {"server": make("server", root, names=("elsewhere",)), "evil": make("evil")}.items():
        (folder / f"{name}.pem").write_bytes(signer.pem())
        (folder / f"{name}.key").write_bytes(signer.key_pem())
    (folder / "ca.pem").write_bytes(root.pem())
    (folder / "my.cnf").write_text(f"[client]\nssl_ca = '{folder}/ca.pem'\n")
    return folder


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    monkeypatch.chdir(tmp_path)


def evil(files: Path) -> tuple[Path, Path]:
    return files / "evil.pem", files / "evil.key"


@pytest.mark.parametrize(("ask", "tls"), list(itertools.product(ASKS, (False, True))))
def test_no_way_of_asking_gets_the_password_from_doctor_or_snap(files: Path, ask: str, tls: bool) -> None:
    """Also under TLS: it proves nothing where no ssl_ca is named."""
    with HostileMariaDB(PASSWORD.encode(), ask, evil(files) if tls else None) as server:
        dsn = f"mariadb://u@127.0.0.1:{server.port}/d"
        for words in (("doctor", "--target", dsn), ("snap", "take", "--target", dsn)):
            done = dbdyno(*words)
            assert "internal error" not in done.stderr
            assert PASSWORD not in done.stdout + done.stderr
            assert server.given == []
            if ask in ("clear", "old", "dialog", "sha256", "sha2"):
                assert done.returncode == 2 and "asks for the password" in done.stderr


def test_where_no_authority_is_named_none_is_loaded(files: Path) -> None:
    """Each connection loaded all of the machine's authorities, in 20 ms of processor time, and checked none."""
    first, second = (safe_connection_class()(defer_connect=True).ctx for _ in range(2))
    assert first is second and first.verify_mode == ssl.CERT_NONE and not first.get_ca_certs()
    checked = safe_connection_class()(defer_connect=True, ssl_ca=str(files / "ca.pem"), ssl_verify_cert=True).ctx
    assert checked.verify_mode == ssl.CERT_REQUIRED and len(checked.get_ca_certs()) == 1


@pytest.mark.parametrize("option", ["ssl_ca={}/ca.pem", "read_default_file={}/my.cnf"])
def test_where_an_authority_is_named_no_other_server_gets_as_far_as_asking(files: Path, option: str) -> None:
    for tls in (None, evil(files)):
        with HostileMariaDB(PASSWORD.encode(), "clear", tls) as server:
            dsn = f"mariadb://u@127.0.0.1:{server.port}/d?{option.format(files)}"
            for words in (("doctor", "--target", dsn), ("snap", "take", "--target", dsn)):
                done = dbdyno(*words)
                assert done.returncode == 2
                assert ("the server offers none" if tls is None else "certificate verify failed") in done.stderr
            assert server.given == []


def test_what_a_file_of_options_says_of_tls_holds_for_the_load_too(files: Path) -> None:
    with Sha2Server(PASSWORD.encode(), (files / "server.pem", files / "server.key")) as server:
        target = MariaDB.open(f"mariadb://u@localhost:{server.port}/d?read_default_file={files}/my.cnf")
        assert server.given == ["password under TLS"]
    held = target.load_connection("load")
    assert (held["sslmode"], held["sslrootcert"]) == ("verify-ca", f"{files}/ca.pem")


def test_a_name_is_checked_where_that_is_asked_for(files: Path) -> None:
    """The certificate is of 127.0.0.1 and elsewhere, and the server is called localhost."""
    (files / "name.cnf").write_text(f"[client]\nssl-ca={files}/ca.pem\nssl-verify-server-cert\n")
    with Sha2Server(PASSWORD.encode(), (files / "server.pem", files / "server.key")) as server:
        for option in (f"ssl_ca={files}/ca.pem&ssl_verify_identity=1", f"read_default_file={files}/name.cnf"):
            with pytest.raises(TargetError, match="certificate verify failed"):
                MariaDB.open(f"mariadb://u@localhost:{server.port}/d?{option}")
            target = MariaDB.open(f"mariadb://u@127.0.0.1:{server.port}/d?{option}")
            assert target.load_connection("load")["sslmode"] == "verify-full"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("ssl-capath=/etc", "ssl-capath is not supported"),
        ("tls_version=TLSv1.3", "tls-version is not supported"),
        ("ssl", "ssl is not supported"),
        ("ssl-crl=/x.pem", "ssl-crl is not supported"),
        ("ssl-verify-server-cert", "ssl_ca is missing"),
        ("[[", "cannot be read"),
    ],
)
def test_an_option_of_a_file_that_nobody_would_heed_ends_it_before_anything_is_sent(
    tmp_path: Path, lines: str, words: str
) -> None:
    path = tmp_path / "my.cnf"
    path.write_text(f"{'[client]' if lines != '[[' else ''}\n{lines}\n")
    with pytest.raises(TargetError, match=words):
        address(f"mariadb://u@h/d?read_default_file={path}")


def test_a_file_of_options_that_others_can_write_or_that_is_not_there_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    with pytest.raises(TargetError, match="No such file"):
        address(f"mariadb://u@h/d?read_default_file={path}")
    path.write_text("[client]\nuser=u\nssl=0\n")
    assert "ssl_ca" not in address(f"mariadb://u@h/d?read_default_file={path}").parameters
    path.chmod(0o666)
    with pytest.raises(TargetError, match="every user can write to it"):
        address(f"mariadb://u@h/d?read_default_file={path}")
