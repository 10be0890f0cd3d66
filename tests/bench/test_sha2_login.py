"""`caching_sha2_password`: proof, password under TLS, password sealed for a named key; never in the clear."""

from __future__ import annotations

from pathlib import Path

import pytest
from sha2_server import Sha2Server, SigningServer, new_key, public_pem

from certificates import make
from dbdyno import _core
from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.server import MariaDB

PASSWORD = "gehéim"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A root, a server's certificate and key, and public keys."""
    folder, root = tmp_path_factory.mktemp("sha2"), make("root", authority=True)
    server = make("server", root)
    key = new_key()
    texts = {
        "ca": root.pem(),
        "certificate": server.pem(),
        "key": server.key_pem(),
        "public": public_pem(key),
        "other": public_pem(new_key()),
        "nonsense": b"nothing",
    }
    found = {name: folder / f"{name}.pem" for name in texts}
    for name, text in texts.items():
        found[name].write_bytes(text)
    KEYS[found["public"]] = key
    return found


KEYS = {}


def load(server: Sha2Server, password: str = PASSWORD, **more: str) -> None:
    """Log in as the load does."""
    connection = {
        "engine": "mariadb",
        "host": "localhost",
        "hostaddr": "127.0.0.1",
        "port": server.port,
        "user": "u",
        "password": password,
        "dbname": "d",
        "sslmode": "verify-ca" if "sslrootcert" in more else "disable",
        **more,
    }
    arm = {"name": "a", "sessions": 1, "connection": connection, "scripts": [{"name": "s", "text": "select 1;"}]}
    _core.Load({"seed": 1, "arms": [arm]}).try_connect()


def control(server: Sha2Server, options: str = "") -> None:
    """Log in as the control session does."""
    MariaDB.open(f"mariadb://u@127.0.0.1:{server.port}/d{options}")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)


def test_under_tls_the_password_is_told_once_and_proved_from_then_on(files: dict[str, Path]) -> None:
    with Sha2Server(PASSWORD.encode(), (files["certificate"], files["key"])) as server:
        load(server, sslrootcert=str(files["ca"]))
        load(server, sslrootcert=str(files["ca"]))
        control(server, f"?ssl_ca={files['ca']}")
        assert server.given == ["password under TLS", "proof", "proof"]


def test_without_tls_it_is_sealed_for_the_key_that_the_user_names(files: dict[str, Path]) -> None:
    named = str(files["public"])
    with Sha2Server(PASSWORD.encode(), key=KEYS[files["public"]]) as server:
        load(server, server_public_key=named)
        load(server, server_public_key=named)
        load(server)
        assert server.given == ["password sealed", "proof", "proof"]
        server.kept = None
        control(server, f"?server_public_key={named}")
        control(server)
        assert server.given[3:] == ["password sealed", "proof"]


@pytest.mark.parametrize("stranger", [False, True])
def test_without_tls_and_key_nothing_but_a_proof_leaves_the_machine(stranger: bool) -> None:
    with Sha2Server(PASSWORD.encode(), stranger=stranger) as server:
        for log_in in (load, control):
            with pytest.raises(TargetError, match="neither TLS nor a server_public_key") as caught:
                log_in(server)
            assert "server_public_key" in str(caught.value.next_step) or log_in is load
        assert server.given == [], "no key is asked for over the wire: whoever stands between would send his own"


def test_what_is_sealed_for_another_key_is_read_by_nobody_here(files: dict[str, Path]) -> None:
    with Sha2Server(PASSWORD.encode()) as server, pytest.raises(TargetError):
        load(server, server_public_key=str(files["other"]))
    assert server.given == ["password sealed"] and server.kept is None


def test_a_wrong_password_is_refused_however_it_is_told(files: dict[str, Path]) -> None:
    with Sha2Server(PASSWORD.encode(), key=KEYS[files["public"]]) as server:
        for _ in range(2):
            with pytest.raises(TargetError, match="1045"):
                load(server, "other", server_public_key=str(files["public"]))
        load(server, server_public_key=str(files["public"]))
        with pytest.raises(TargetError, match="1045"):
            load(server, "other", server_public_key=str(files["public"]))
        assert server.given == ["password sealed"] * 4, "a proof that does not hold is followed by the question"


@pytest.mark.parametrize(("name", "words"), [("nonsense", "no PEM file"), ("missing", "No such file")])
def test_a_key_that_cannot_be_read_is_said_before_anything_is_sent(
    files: dict[str, Path], name: str, words: str
) -> None:
    path = str(files.get(name, "/nowhere/key.pem"))
    with Sha2Server(PASSWORD.encode()) as server, pytest.raises(TargetError, match=words):
        load(server, server_public_key=path)
    assert server.given == []


def test_a_challenge_is_signed_by_the_load_and_by_what_watches_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What watches asked a package for it that is not installed, and spoke of TLS."""
    password = "thirty-two bytes of one password"
    monkeypatch.setenv("MYSQL_PWD", password)
    with SigningServer(password.encode()) as server:
        load(server, password)
        control(server)
        assert server.given == ["signature", "signature"]
        monkeypatch.setenv("MYSQL_PWD", "thirty-two bytes of two password")
        with pytest.raises(TargetError, match="Access denied"):
            control(server)
