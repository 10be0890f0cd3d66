"""Key set-up: file modes, idempotence, and host keys that somebody verified."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import asyncssh
import pytest
from click.testing import CliRunner
from ssh_server import Rig, answers, servers

from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.keys import install_command, install_with_ssh, key_steps, make_key, read_host_keys, trust
from dbdyno.cells.ssh import Access, run_everywhere
from dbdyno.cli.cells.setup_keys import command


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_made_once_with_the_right_modes(tmp_path: Path):
    key = tmp_path / "ssh" / "id"
    assert not any(key_steps(key).values())
    make_key(key, "test")
    first = key.read_bytes()
    assert (mode(key.parent), mode(key), mode(Path(f"{key}.pub"))) == (0o700, 0o600, 0o644)
    assert asyncssh.read_private_key(str(key)).get_algorithm() == "ssh-ed25519"
    key.chmod(0o644)
    make_key(key, "test")
    assert (key.read_bytes(), mode(key)) == (first, 0o600)
    assert all(key_steps(key).values())


def shell(process):
    """Run the command in a shell with the cell's own home folder."""
    done = subprocess.run(
        ["sh", "-c", process.command],
        env={"HOME": shell.home, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
    )
    process.stdout.write(done.stdout)
    process.stderr.write(done.stderr)
    process.exit(done.returncode)


def test_the_key_is_added_once_and_modes_are_narrow(tmp_path: Path):
    home = tmp_path / "cell"
    home.mkdir()
    public = "ssh-ed25519 AAAA'; touch x; ' me"
    for _ in range(2):
        subprocess.run(
            ["sh", "-c", install_command(public)], env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True
        )
    assert (home / ".ssh" / "authorized_keys").read_text() == public + "\n"
    assert (mode(home / ".ssh"), mode(home / ".ssh/authorized_keys")) == (0o700, 0o600)


def test_the_key_has_a_line_of_its_own_behind_one_that_does_not_end(tmp_path: Path):
    file = tmp_path / ".ssh" / "authorized_keys"
    file.parent.mkdir()
    file.write_text("ssh-ed25519 AAAA first")
    add = ["sh", "-c", install_command("ssh-ed25519 BBBB second\n")]
    for _ in range(2):
        subprocess.run(add, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, check=True)
    assert file.read_text() == "ssh-ed25519 AAAA first\nssh-ed25519 BBBB second\n"


def test_host_keys_are_known_new_or_changed(tmp_path: Path):
    with servers(tmp_path, [shell]) as rig:
        hosts = hosts_of([f"127.0.0.1:{rig.ports[0]}"])
        assert [key.known for key in read_host_keys(hosts, rig.known_hosts)] == ["yes"]
        new = tmp_path / "new_known_hosts"
        (shown,) = read_host_keys(hosts, new)
        assert shown.known == "no"
        assert shown.fingerprint.startswith("SHA256:")
        assert trust([shown], new) == 1
        assert [key.known for key in read_host_keys(hosts, new)] == ["yes"]
        assert mode(new) == 0o600
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
        new.write_text(f"[127.0.0.1]:{rig.ports[0]} {other}\n")
        (shown,) = read_host_keys(hosts, new)
        assert shown.known == "changed"
        assert trust([shown], new) == 0


def new_key(rig: Rig, *more: str) -> list[str]:
    """The options that give the first server a new key."""
    known = ("--known-hosts", str(rig.known_hosts))
    return ["-H", f"127.0.0.1:{rig.ports[0]}", *known, "--new-key", str(rig.key), "--yes", *more]


def test_the_command_twice_changes_nothing_the_second_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "cell"
    home.mkdir()
    monkeypatch.setattr(shell, "home", str(home), raising=False)
    with servers(tmp_path, [shell]) as rig:
        asked = new_key(rig, "-l", "x")
        first = CliRunner().invoke(command, asked)
        assert first.exit_code == 0, first.output
        before = (home / ".ssh" / "authorized_keys").read_text()
        second = CliRunner().invoke(command, asked)
        assert second.exit_code == 0
        assert (home / ".ssh" / "authorized_keys").read_text() == before
        dry = CliRunner().invoke(command, [*asked, "--dry-run"])
        assert "on each cell: umask 077" in dry.stdout


def test_a_cell_that_lets_in_and_keeps_no_key_says_why_and_asks_for_no_password(tmp_path: Path):
    """The reason was lost, and the system's ssh asked for a password, as if the key did not fit."""
    with servers(tmp_path, [answers("", code=1)]) as rig:
        found = CliRunner().invoke(command, new_key(rig, "-l", "x"))
    assert found.exit_code == 2
    assert "login works, but it stores no key: exit 1" in found.stderr
    assert "password" not in found.stderr


def test_a_changed_host_key_ends_it_for_that_cell(tmp_path: Path):
    with servers(tmp_path, [shell]) as rig:
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
        rig.known_hosts.write_text(f"[127.0.0.1]:{rig.ports[0]} {other}\n")
        found = CliRunner().invoke(command, new_key(rig, "--accept-new"))
    assert found.exit_code == 2
    assert "CHANGED" in found.stdout
    assert other in rig.known_hosts.read_text()


def test_a_cell_of_the_ssh_configuration_is_known_by_its_address_and_port(tmp_path: Path):
    with servers(tmp_path, [answers("here\n")]) as rig:
        config = tmp_path / "ssh_config"
        config.write_text(f"Host exa1cel01\n HostName 127.0.0.1\n Port {rig.ports[0]}\n")
        hosts = hosts_of(["exa1cel01"])
        access = Access(config=config, timeout_s=5.0)
        assert [key.known for key in read_host_keys(hosts, rig.known_hosts, access)] == ["yes"]
        new = tmp_path / "new_known_hosts"
        (shown,) = read_host_keys(hosts, new, access)
        assert shown.line.startswith(f"[127.0.0.1]:{rig.ports[0]} ")
        trust([shown], new)
        found = Access(keys=(rig.key,), known_hosts=new, config=config, timeout_s=5.0)
        (answer,) = run_everywhere(hosts, found, "echo here")
        assert (answer.output, answer.problem) == ("here\n", None)
    visit = install_with_ssh(hosts[0], "key", new, Access(jump="gate", config=config))
    assert visit[visit.index("-J") + 1] == "gate"
    assert visit[visit.index("-F") + 1] == str(config)
