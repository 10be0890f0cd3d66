"""Cells behind jump hosts: reached over one connection, and failures are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from ssh_server import answers, hangs, servers

from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.ssh import Access, run_everywhere
from dbdyno.cli.cells.run import command
from dbdyno.cli.cells.setup_keys import command as setup_keys

BEHIND = ["exa1cel01", "exa1cel02", "exa1cel03"]


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    behaviours = [answers("one is online\n"), answers("two is online\n"), hangs()]
    with servers(tmp_path, behaviours, behind=BEHIND) as found:
        yield found


def reach(rig, jump: str, cells: str = "exa1cel[01-02]") -> list[str]:
    return rig.reach(cells, "--jump", jump)


def test_cells_that_only_the_host_in_between_knows_are_reached_by_one_connection(rig):
    found = CliRunner().invoke(command, ["list cell", *reach(rig, f"gate@127.0.0.1:{rig.jump_port}")])
    assert found.exit_code == 0, found.output
    assert "one" in found.stdout
    assert "two" in found.stdout
    assert rig.logins == ["gate"]
    assert sorted(rig.jumped_to) == BEHIND[:2]


def test_a_cell_that_hangs_or_is_not_known_behind_it_costs_only_itself(rig):
    cells = "exa1cel01,exa1cel03,exa1cel99"
    found = CliRunner().invoke(
        command, ["list cell", *reach(rig, f"127.0.0.1:{rig.jump_port}", cells), "--timeout", "2"]
    )
    assert found.exit_code == 2
    assert "one" in found.stdout
    assert "exa1cel03: no answer within 2 s" in found.stderr
    assert "exa1cel99: " in found.stderr


def test_a_host_in_between_that_is_not_there_is_named(rig):
    closed = rig.ports[0]  # lets nobody through
    for jump, words in (("127.0.0.1:1", "cannot be reached"), (f"127.0.0.1:{closed}", "")):
        found = CliRunner().invoke(command, ["list cell", *reach(rig, jump)])
        assert found.exit_code == 2
        assert words in found.stderr
        assert "one" not in found.stdout
    found = CliRunner().invoke(command, ["list cell", *reach(rig, "127.0.0.1:1")])
    assert found.stderr.count("the jump host 127.0.0.1: cannot be reached") == 1  # told once for both


def test_an_unknown_host_key_in_between_is_a_refusal(rig):
    lines = rig.known_hosts.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(f"[127.0.0.1]:{rig.jump_port}")]
    rig.known_hosts.write_text("\n".join(kept) + "\n")
    found = CliRunner().invoke(command, ["list cell", *reach(rig, f"127.0.0.1:{rig.jump_port}")])
    assert found.exit_code == 2
    assert "the jump host 127.0.0.1: its host key is not known" in found.stderr
    assert rig.jumped_to == []


def test_a_user_for_each_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []

    def who(process):
        seen.append(process.get_extra_info("username"))
        process.exit(0)

    with servers(tmp_path, [who, who]) as rig:
        hosts = hosts_of([f"root@127.0.0.1:{rig.ports[0]},127.0.0.1:{rig.ports[1]}"], user="mon")
        access = Access(keys=(rig.key,), known_hosts=rig.known_hosts, config=False)
        run_everywhere(hosts, access, "x", serial=True)
    assert seen == ["root", "mon"]


def test_setup_keys_goes_the_same_way(rig, tmp_path: Path):
    found = CliRunner().invoke(
        setup_keys,
        [*reach(rig, f"127.0.0.1:{rig.jump_port}"), "--new-key", str(rig.key), "--yes"],
    )
    assert found.exit_code == 0, found.output
    assert found.stdout.count("the key is there") == 2
    assert "exa1cel01: known" in found.stdout
    assert set(rig.jumped_to) == set(BEHIND[:2])


def test_the_agents_keys_are_taken_and_so_is_the_users_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import subprocess

    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    with servers(tmp_path, [answers("by agent\n")]) as rig:
        (home / ".ssh" / "config").write_text(
            f"Host mycell\n HostName 127.0.0.1\n Port {rig.ports[0]}\n User celladmin\n"
            f" UserKnownHostsFile {rig.known_hosts}\n"
        )
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL)
        try:
            monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
            add = ["ssh-add", "-q", str(rig.key)]
            for _ in range(50):
                if not subprocess.run(add, check=False, capture_output=True).returncode:
                    break
            found = CliRunner().invoke(command, ["list cell", "-H", "mycell", "--timeout", "5"])
        finally:
            agent.terminate()
            agent.wait(5)
    assert found.exit_code == 0, found.output
    assert "by agent" in found.stdout
