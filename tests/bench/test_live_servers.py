"""A server that the user's configuration names as live is read, but never written to."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.base.errors import TargetError
from dbdyno.base.live_servers import configuration_file, refuse_live
from dbdyno.bench.postgres.embedded import EmbeddedPostgres


def configured(text: str) -> Path:
    """Write the configuration of this test."""
    file = Path(os.environ["DBDYNO_CONFIG"])
    file.write_text(text)
    return file


def test_the_configuration_is_in_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DBDYNO_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert configuration_file() == tmp_path / "dbdyno" / "config.toml"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert configuration_file() == tmp_path / ".config" / "dbdyno" / "config.toml"


def test_without_a_configuration_no_server_is_live() -> None:
    refuse_live("127.0.0.1", 5432, "here")


NAMED = {
    "a host": ("127.0.0.1", "127.0.0.1", 6000),
    "a host by another name": ("localhost", "127.0.0.1", 6000),
    "its socket": ("localhost", "/run/postgresql", 6000),
    "a host and a port": ("127.0.0.1:6000", "127.0.0.1", 6000),
    "a connection string": ("postgresql://app:secret@127.0.0.1:6000/shop", "localhost", 6000),
    "another case": ("DB.example", "db.EXAMPLE", 6000),
    "an IPv6 address": ("::1", "localhost", 6000),
    "an IPv6 address and a port": ("[::1]:6000", "::1", 6000),
}


@pytest.mark.parametrize("entry, host, port", NAMED.values(), ids=NAMED)
def test_a_live_server_is_recognised_by(entry: str, host: str, port: int) -> None:
    configured(f'live = ["other.invalid", "{entry}"]')
    with pytest.raises(TargetError, match="named as live in"):
        refuse_live(host, port, "here")


def test_the_password_of_an_entry_is_not_shown() -> None:
    configured('live = ["postgresql://app:tiger@127.0.0.1/shop"]')
    with pytest.raises(TargetError) as refused:
        refuse_live("127.0.0.1", 5432, "here")
    assert "tiger" not in str(refused.value)


OTHERS = {
    "another port": ("127.0.0.1:6001", "127.0.0.1", 6000),
    "another host": ("192.0.2.1", "127.0.0.1", 6000),
    "a name without an address": ("db.invalid", "127.0.0.1", 6000),
    "a longer name": ("db.example", "db.example.org", 6000),
}


@pytest.mark.parametrize("entry, host, port", OTHERS.values(), ids=OTHERS)
def test_other_servers_are_not_refused(entry: str, host: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(name: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if name[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, 0))]
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    configured(f'live = ["{entry}"]')
    refuse_live(host, port, "here")


WRONG = {
    "no TOML": ("live = [", "the configuration cannot be read"),
    "no list": ('live = "db"', "expected a list of servers, found live = 'db'"),
    "no text": ("live = [1]", r"expected a list of servers, found live = \[1\]"),
    "an unknown key": ('alive = ["db"]', "found unknown key 'alive'"),
    "no host": ('live = [":5432"]', "expected HOST or HOST:PORT, found ':5432'"),
    "settings": ('live = ["host=db port=5432"]', "expected HOST or HOST:PORT, found 'host=db port=5432'"),
    "no port": ('live = ["db:x"]', "expected HOST or HOST:PORT, found 'db:x'"),
}


@pytest.mark.parametrize("text, message", WRONG.values(), ids=WRONG)
def test_a_wrong_configuration_refuses_every_server(text: str, message: str) -> None:
    file = configured(text)
    with pytest.raises(TargetError, match=message) as refused:
        refuse_live("127.0.0.1", 5432, "here")
    assert str(file) in str(refused.value)


def test_every_command_that_writes_refuses_a_live_server(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """And nothing is changed there; what only reads goes on."""
    given = engine.tcp_conninfo()
    dsn = make_conninfo("", **given)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("drop table if exists kept; create table kept (a int); insert into kept values (1)")
    configured(f'live = ["localhost:{given["port"]}"]')
    (tmp_path / "rows.csv").write_text("a\n2\n")
    refused = [
        ["rehearse", dsn, "--change", "set work_mem = '8MB'", "--load", "statements"],
        ["run", "redo-size", "--target", dsn, "--quick", "--out", str(tmp_path / "runs")],
        ["move", str(tmp_path / "rows.csv"), dsn, "--table", "kept"],
        ["move", dsn, make_conninfo(dsn, dbname="template1"), "--database", "--job", str(tmp_path / "job")],
    ]
    for words in refused:
        began = time.monotonic()
        done = dbdyno(*words)
        assert done.returncode == 2, (words, done.stdout, done.stderr)
        assert "named as live in" in done.stderr, (words, done.stderr)
        assert time.monotonic() - began < 20
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select a from kept").fetchall() == [(1,)]
        assert conn.execute("select count(*) from pg_namespace where nspname like 'dbdyno%'").fetchone() == (0,)
        conn.execute("drop table kept")  # other tests of this server make one of that name
    assert dbdyno("snap", "take", "--target", dsn, "--store", str(tmp_path / "snaps")).returncode == 0
