"""The server that is started: the forced one, the newest installed one, or the one from the wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.binaries import (
    PROGRAMS,
    WHEEL_PACKAGE,
    fetched_folders,
    find_binaries,
    inspect,
    installed_folders,
    newest,
)
from server_binaries import binaries_of


def fake_server(bindir: Path, version: str) -> Path:
    bindir.mkdir(parents=True)
    for name in PROGRAMS:
        program = bindir / name
        program.write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version} (Some OS)'\n")
        program.chmod(0o755)
    return bindir


def test_the_newest_installed_server_is_chosen(tmp_path: Path) -> None:
    for version in ("9.6.24", "15.4", "16.10", "16.9"):
        fake_server(tmp_path / f"usr/lib/postgresql/{version}/bin", version)
    found = find_binaries({}, root=tmp_path)
    assert (found.version, found.major, found.source) == ("16.10", 16, "installed")
    assert found.program("initdb") == tmp_path / "usr/lib/postgresql/16.10/bin/initdb"


def test_a_server_on_path_counts_as_installed(tmp_path: Path) -> None:
    folder = fake_server(tmp_path / "tools", "17beta2")
    found = find_binaries({"PATH": f"/nowhere:{folder}"}, root=tmp_path)
    assert (found.bindir, found.version, found.major) == (folder, "17beta2", 17)


def test_pg_config_tells_where_a_server_is(tmp_path: Path) -> None:
    folder = fake_server(tmp_path / "elsewhere", "14.2")
    script = tmp_path / "bin" / "pg_config"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho {folder}\n")
    script.chmod(0o755)
    assert folder in list(installed_folders({"PATH": str(script.parent)}, tmp_path))


def test_servers_fetched_into_the_clone_are_found(tmp_path: Path) -> None:
    folder = fake_server(tmp_path / "target/matrix/17.11.0/bin", "17.11")
    assert [one.version for one in inspect(fetched_folders(tmp_path), "fetched")] == ["17.11"]
    assert list(fetched_folders(tmp_path)) == [folder]


def test_folders_that_hold_no_whole_or_no_running_server_are_passed_over(tmp_path: Path) -> None:
    client_only = fake_server(tmp_path / "client", "15.1")
    (client_only / "postgres").unlink()
    broken = fake_server(tmp_path / "broken", "15.2")
    (broken / "postgres").write_text("#!/nowhere/sh\n")
    silent = fake_server(tmp_path / "silent", "15.3")
    (silent / "postgres").write_text("#!/bin/sh\necho hello\n")
    assert newest(inspect([client_only, broken, silent, tmp_path / "none"], "installed")) is None


def test_a_forced_folder_is_taken_or_refused_never_replaced(tmp_path: Path) -> None:
    folder = fake_server(tmp_path / "mine", "13.1")
    assert find_binaries({"DBDYNO_PG_BIN": str(folder)}).source == "DBDYNO_PG_BIN"
    with pytest.raises(TargetError, match="does not contain a working PostgreSQL server"):
        find_binaries({"DBDYNO_PG_BIN": str(tmp_path)})


def test_an_unknown_kind_of_engine_is_refused() -> None:
    with pytest.raises(TargetError, match="expected 'installed' or 'wheel'"):
        find_binaries({"DBDYNO_ENGINE": "docker"})


def test_no_server_at_all_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="no PostgreSQL server binaries") as raised:
        find_binaries({"DBDYNO_ENGINE": "installed"}, root=tmp_path)
    assert "DBDYNO_PG_BIN" in (raised.value.next_step or "")


def test_the_wheel_gives_its_newest_server_without_being_imported() -> None:
    found = binaries_of("wheel")
    assert found.source == "wheel"
    assert found.major >= 18
    assert WHEEL_PACKAGE not in sys.modules
