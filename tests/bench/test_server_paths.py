"""The socket of an embedded server: in the folder of its files, unless that folder cannot hold sockets."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import NoReturn

import pytest

from dbdyno.bench.engine.server_paths import socket_folder


def test_the_socket_is_with_the_servers_files(tmp_path: Path):
    assert socket_folder(tmp_path) == tmp_path / "s"
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_sockets_has_the_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # A server on a mounted device did not start: "could not create any Unix-domain sockets".
    class Refused(socket.socket):
        def bind(self, address: object) -> NoReturn:
            raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("dbdyno.bench.engine.server_paths.socket.socket", Refused)
    assert socket_folder(tmp_path) == Path("/tmp") / tmp_path.name


def test_a_folder_that_is_not_there_yet_or_any_more_keeps_its_place(tmp_path: Path):
    assert socket_folder(tmp_path / "gone") == tmp_path / "gone" / "s"


def test_a_path_that_is_too_long_for_a_socket_is_not_used(tmp_path: Path):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    assert socket_folder(long) == Path("/tmp") / long.name
