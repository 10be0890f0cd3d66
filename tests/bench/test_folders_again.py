"""Data folders of servers in tests: created once, reused, and equal to a newly created folder each time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import data_folders
import folders_again
from dbdyno.bench.engine.os_user import engine_account


@pytest.fixture
def template(tmp_path: Path) -> Path:
    made = tmp_path / "template"
    (made / "base" / "1").mkdir(parents=True)
    (made / "base" / "1" / "1259").write_bytes(b"pages")
    (made / "wal").write_bytes(b"x" * 8192)
    os.truncate(made / "wal", 1 << 20)
    (made / "link").symlink_to("wal")
    (made / "empty").touch()
    made.chmod(0o700)
    return made


def content(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {".": folder.stat().st_mode}
    for path in folder.rglob("*"):
        stat = path.lstat()
        if path.is_symlink():
            inside: object = path.readlink()
        else:
            inside = (stat.st_mtime_ns, path.read_bytes()) if path.is_file() else None
        found[str(path.relative_to(folder))] = (stat.st_mode, stat.st_uid, inside)
    return found


def copied(template: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", f"{template}/.", to], check=True)
    return to


def test_whatever_a_server_did_its_folder_is_as_it_was_made(template: Path, tmp_path: Path) -> None:
    used = copied(template, tmp_path / "data")
    (used / "wal").write_bytes(b"y" * (2 << 20))
    (used / "base" / "1" / "1259").unlink()
    (used / "base" / "5").mkdir()
    (used / "base" / "5" / "1259").write_bytes(b"another database")
    (used / "postmaster.pid").write_text("1")
    (used / "link").unlink()
    (used / "link").mkdir()
    (used / "empty").chmod(0o444)
    used.chmod(0o755)
    assert content(used) != content(template)
    folders_again.make_equal(template, used)
    assert content(used) == content(template)
    assert (used / "wal").stat().st_blocks * 512 < 1 << 19, "holes stay holes"


def test_a_change_that_leaves_the_size_is_seen(template: Path, tmp_path: Path) -> None:
    used = copied(template, tmp_path / "data")
    (used / "base" / "1" / "1259").write_bytes(b"PAGES")
    folders_again.make_equal(template, used)
    assert (used / "base" / "1" / "1259").read_bytes() == b"pages"


def test_what_did_not_change_is_not_written_again(template: Path, tmp_path: Path) -> None:
    used = copied(template, tmp_path / "data")
    before = {path: path.stat().st_ctime_ns for path in used.rglob("*") if path.is_file()}
    folders_again.make_equal(template, used)
    assert {path: path.stat().st_ctime_ns for path in before} == before


def test_a_folder_that_was_left_is_given_to_one_server(template: Path, tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.mkdir()
    data = copied(template, server / "data")
    folders_again.note(data, template)
    (data / "left").touch()
    folders_again.remove(server)
    assert not server.exists()
    first, second = tmp_path / "first", tmp_path / "second"
    assert folders_again.take(template, first)
    assert not folders_again.take(template, second)
    assert content(first) == content(template)


def test_a_folder_of_unknown_making_is_removed(tmp_path: Path) -> None:
    (tmp_path / "server" / "data").mkdir(parents=True)
    folders_again.remove(tmp_path / "server")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("program", ["initdb", "mariadb-install-db"])
def test_servers_of_a_kind_have_one_template_wherever_their_folders_lie(program: str, tmp_path: Path) -> None:
    made = []

    def run(account: object, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        data = data_folders.data_folder(command)
        assert data is not None
        made.append(data)
        data.mkdir(parents=True, exist_ok=True)
        (data / "file").touch()
        return subprocess.CompletedProcess(command, 0, stdout="")

    instead = data_folders.copying(run, tmp_path, "gw0")
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        words = ["-D", f"{folder}/data"] if program == "initdb" else [f"--datadir={folder}/data", f"--tmpdir={folder}"]
        instead(engine_account(), [program, *words])
        assert (folder / "data" / "file").exists()
    assert made == [tmp_path / "one" / "data"]
