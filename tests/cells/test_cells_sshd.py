"""Cells behind a real OpenSSH server: tests with the real sshd, and not only with a model of it.

A login by password is not tested: sshd accepts only passwords of the machine's accounts, and the tests change none of
these.
"""

from __future__ import annotations

import json
import pwd
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openssh import PATIENCE_S, USER, Sshd, Then, agent, make_key, modelled, openssh
from rig_help import rack

from dbdyno.cli.cells.record import command as record
from dbdyno.cli.cells.run import command as run
from dbdyno.cli.cells.script import command as script
from dbdyno.cli.cells.setup_keys import command as setup_keys
from dbdyno.cli.cells.show import command as show
from dbdyno.evidence.run import Run
from dbdyno_rig.cell import Cell
from soaked import first

ONLINE = "\t <cell>\t online\n"


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    """Three modelled cells after a minute."""
    made = rack(seconds=61)
    return [Cell(made, number) for number in range(3)]


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user an empty home folder without keys, agent or configuration; return it."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "sshd"
    made.mkdir()
    (made / "banner").write_text("<metric> AUTHORISED USE ONLY\n" * 30)
    return made


@pytest.fixture
def sshd(folder: Path, cells: list[Cell]) -> Iterator[Sshd]:
    """Yield a server with a banner and these cells."""
    with openssh(folder, [modelled(cell) for cell in cells], f"Banner {folder}/banner") as server:
        yield server


def asked(command, *words: object) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words])


def by_config(config: Path, hosts: str = "cel[01-03]") -> list[str]:
    return ["-H", hosts, "--ssh-config", str(config), "--timeout", str(PATIENCE_S)]


def next_step(found: Result) -> list[str]:
    """Return the command that a message recommends as the next step."""
    line = next(line for line in found.stderr.splitlines() if line.startswith("  next: "))
    return shlex.split(line.rsplit(": ", 1)[1])


# Answers


def test_show_gives_what_the_modelled_cells_collected(sshd: Sshd, cells: list[Cell]):
    found = asked(show, *sshd.reach(), "--by", "both", "--format", "json")
    assert found.exit_code == 0, found.output
    page = json.loads(found.stdout)
    rows = {(row["metric"], row["object"]): row["values"] for row in page["rows"]}
    for number, cell in enumerate(cells):
        name = cell.name
        sample = cells[number].rack.samples[number][-1].rows
        assert len(sample) > 1000
        for _, item, metric, value, *_ in sample:
            known = item if metric.startswith("CL_") else item.replace(name, "<cell>")
            assert rows[metric, known][name] == value, (metric, item)


def test_a_script_is_one_connection_to_each_cell(sshd: Sshd, tmp_path: Path):
    file = tmp_path / "look.scl"
    file.write_text("list cell\nlist cell detail\nlist flashcache detail\n")
    found = asked(script, file, *sshd.reach())
    assert found.exit_code == 0, found.output
    assert ONLINE.strip() in found.stdout
    assert sshd.logins == 3


def test_a_server_with_one_session_a_connection_is_asked_by_another(folder: Path, cells: list[Cell], tmp_path: Path):
    # It counts a session until it has buried the command, which is after the session's end.
    file = tmp_path / "look.scl"
    file.write_text("list cell\n" * 10)
    with openssh(folder, [modelled(cells[0])], "MaxSessions 1") as sshd:
        found = asked(script, file, *sshd.reach())
    assert found.exit_code == 0, found.output


def test_errors_and_exit_codes_cost_only_their_own_cells(sshd: Sshd):
    sshd.cells[0] = lambda line: Then("\nCELL-01509: the cell service is down.\n", 1)
    sshd.cells[1] = lambda line: Then("", 127, "bash: cellcli: command not found\n")
    found = asked(run, "list cell", *sshd.reach(), "--format", "json")
    assert found.exit_code == 2
    rows = json.loads(found.stdout)
    assert [row["exit"] for row in rows] == [1, 127, 0]
    assert [row["problem"] for row in rows] == [
        "CELL-01509: the cell service is down.",
        "exit 127: bash: cellcli: command not found",
        None,
    ]


def test_a_command_that_hangs_is_given_up_after_the_time_out(sshd: Sshd):
    # sshd confirms the end of a session only when its command has ended: not to be waited for.
    sshd.cells[1] = lambda line: Then("half an answer\n", then="hang")
    found = asked(run, "list cell", *sshd.reach(), "--timeout", "6", "--format", "json")
    assert found.exit_code == 2
    good, hung, other = json.loads(found.stdout)
    assert (good["output"], other["output"]) == ("\t cell01\t online\n", "\t cell03\t online\n")
    assert hung["problem"] == "no answer within 6 s"
    assert hung["seconds"] < PATIENCE_S


def test_a_command_that_a_signal_ended_is_told_so(sshd: Sshd):
    sshd.cells[0] = lambda line: Then("half an answer\n", then="killed")
    found = asked(run, "list cell", *sshd.reach())
    assert found.exit_code == 2
    assert "the command was ended by the signal KILL" in found.stderr


def test_a_cell_whose_sshd_dies_in_the_middle_costs_only_its_own_column(sshd: Sshd, cells: list[Cell]):
    whole = sshd.cells[0]("cellcli -xml -e 'list metriccurrent'").output
    sshd.cells[0] = lambda line: Then(whole[: len(whole) // 2], then="cut")
    found = asked(show, *sshd.reach(), "-m", "FL_IO_W", "--format", "json")
    assert found.exit_code == 2
    page = json.loads(found.stdout)
    assert [bool(cell["problem"]) for cell in page["cells"]] == [True, False, False]
    assert "the connection was lost" in found.stderr
    assert all(page["rows"][0]["values"][cell.name] is not None for cell in cells[1:])


def test_a_recording_goes_on_over_a_connection_that_was_cut(sshd: Sshd, cells: list[Cell], tmp_path: Path):
    say, cut = sshd.cells[0], iter([True])

    def once(line: str) -> Then:
        return Then(then="cut") if "metriccurrent" in line and next(cut, False) else say(line)

    sshd.cells[0] = once
    out = tmp_path / "recording"
    found = asked(record, *sshd.reach(*sshd.hosts[:2]), "--every", "3s", "--for", "4s", "--out", out)
    assert found.exit_code == 2
    first, *others = [
        block.report["cells"].get(sshd.hosts[0]) or block.report["cells"][cells[0].name]
        for block in Run.open(out).blocks()
    ]
    assert "the connection was lost" in first["problem"]
    assert others
    assert all(cell["problem"] is None and cell["readings"] > 1000 for cell in others)


@pytest.mark.skipif(Path(pwd.getpwnam(USER).pw_shell).name != "bash", reason="only bash reads .bashrc for sshd")
def test_what_a_login_file_prints_before_an_answer_is_listed_and_the_answer_read(sshd: Sshd, cells: list[Cell]):
    (sshd.home / ".bashrc").write_text("echo Welcome to the cell\n")
    found = asked(show, *sshd.reach(), "-m", "FL_IO_W", "--format", "json")
    assert found.exit_code == 2
    assert found.stderr.count("1 line not understood, the first is line 1: 'Welcome to") == 3
    assert all(json.loads(found.stdout)["rows"][0]["values"][cell.name] is not None for cell in cells)


@pytest.mark.parametrize("limit", first("10:30:100", "4:100:4"))
def test_twenty_logins_at_once_all_come_through(folder: Path, cells: list[Cell], limit: str):
    # Beyond the first number of logins under way sshd drops new ones, by chance or all of them.
    with openssh(folder, [modelled(cells[0])], f"MaxStartups {limit}") as sshd:
        found = asked(run, "list cell", *by_config(sshd.config(Port=sshd.ports[0]), "cel[01-20]"))
        keys = ["--new-key", sshd.key, "--dry-run"]
        seen = asked(setup_keys, *by_config(sshd.config(Port=sshd.ports[0]), "cel[01-20]"), *keys)
        dropped = sshd.log.count("MaxStartups")
    assert found.exit_code == 0, found.output
    assert "(20 of 20)" in found.stdout
    assert seen.stdout.count(": known") == 20
    assert dropped or limit == "10:30:100"


# Host keys


def test_an_unknown_host_key_is_refused_and_the_next_step_adds_it(sshd: Sshd, tmp_path: Path):
    known = tmp_path / "known_hosts"
    known.write_text("# nobody yet\nan odd line\n@\n")
    words = [*sshd.reach(sshd.hosts[0]), "--known-hosts", known]
    found = asked(run, "list cell", *words)
    assert found.exit_code == 2
    assert "its host key is not known\n" in found.stderr
    assert sshd.asked == []
    scan = subprocess.run(next_step(found), capture_output=True, text=True, check=True)
    with known.open("a") as file:
        file.write(scan.stdout)
    assert asked(run, "list cell", *words).exit_code == 0


@pytest.mark.parametrize("kind", first("ed25519", "ecdsa", "rsa"))
def test_a_changed_host_key_is_refused_and_the_next_step_forgets_it(sshd: Sshd, tmp_path: Path, kind: str):
    other = make_key(tmp_path / "other", "-t", kind).with_suffix(".pub").read_text()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.ports[0]} {other}")
    found = asked(run, "list cell", *sshd.reach(sshd.hosts[0]))
    assert found.exit_code == 2
    assert "its host key differs from the known key" in found.stderr
    assert sshd.asked == []
    seen = asked(setup_keys, *sshd.reach(sshd.hosts[0]), "--new-key", sshd.key, "--yes")
    assert seen.exit_code == 2
    assert "CHANGED" in seen.stdout
    assert next_step(seen) == next_step(found)
    subprocess.run(next_step(found), check=True, capture_output=True)
    assert sshd.known_hosts.read_text() == ""


def test_a_server_with_several_host_keys_is_known_by_any_of_them(folder: Path, cells: list[Cell]):
    second = make_key(folder / "second", "-t", "ecdsa")
    with openssh(folder, [modelled(cells[0])], f"HostKey {second}") as sshd:
        name = f"[127.0.0.1]:{sshd.ports[0]}"
        for key in (second, folder / "host_key"):
            sshd.known_hosts.write_text(f"{name} {key.with_suffix('.pub').read_text()}")
            assert asked(run, "list cell", *sshd.reach()).exit_code == 0
            seen = asked(setup_keys, *sshd.reach(), "--new-key", sshd.key, "--dry-run")
            assert "127.0.0.1: known" in seen.stdout


def test_known_hosts_none_is_no_leave_to_take_any_key(sshd: Sshd):
    config = sshd.config(UserKnownHostsFile="none", StrictHostKeyChecking="no")
    found = asked(run, "list cell", *by_config(config))
    assert found.exit_code == 2
    assert "its host key is not known" in found.stderr
    assert sshd.asked == []


def test_the_machines_known_hosts_count_beside_the_users(sshd: Sshd, monkeypatch):
    monkeypatch.setattr("dbdyno.cells.access.ALL_KNOWN_HOSTS", (str(sshd.known_hosts),))
    words = ["-H", sshd.hosts[0], "-l", USER, "--key", sshd.key]
    assert asked(run, "list cell", *words).exit_code == 0


# The SSH configuration


def test_the_ssh_configuration_is_read_as_ssh_reads_it(sshd: Sshd, user: Path):
    host_key = (sshd.folder / "host_key.pub").read_text()
    (user / "known").write_text(f"rack {host_key}")
    config = sshd.config(
        IdentityFile="~/.ssh/is_not_there",
        UserKnownHostsFile="~/neither ~/known",
        HostKeyAlias="rack",
        RequestTTY="force",
    )
    found = asked(run, "list cell", *by_config(config), "--format", "json")
    assert found.exit_code == 0, found.output
    assert [(row["cell"], row["output"]) for row in json.loads(found.stdout)] == [
        (f"cell{at:02}", f"\t cell{at:02}\t online\n") for at in (1, 2, 3)
    ]
    config.write_text("Match fullmoon yes\n")
    found = asked(run, "list cell", *by_config(config))
    assert found.exit_code == 2
    assert "the SSH configuration cannot be read" in found.stderr


def test_setup_keys_follows_the_users_own_configuration(sshd: Sshd, user: Path):
    (user / ".ssh" / "config").write_bytes(sshd.config().read_bytes())
    new = user / ".ssh" / "new"
    found = asked(setup_keys, "-H", "cel01", "--new-key", new, "--yes")
    assert found.exit_code == 0, found.output
    assert "cel01: known" in found.stdout  # by the address, port and file of the configuration
    assert sorted(path.name for path in new.parent.iterdir()) == ["config", "new", "new.pub"]


@pytest.mark.parametrize("whose", ["cel01 cel02", "*"])
def test_a_proxy_jump_is_one_connection_for_all_cells(sshd: Sshd, whose: str):
    config = sshd.config()
    gate = f"Host gate\n  Port {sshd.ports[2]}\nHost {whose}\n  ProxyJump gate\n"
    config.write_text(gate + config.read_text())
    found = asked(run, "list cell", *by_config(config, "cel[01-02]"))
    assert found.exit_code == 0, found.output
    assert "(2 of 2)" in found.stdout
    assert sshd.logins == 3  # the gate, and each cell


def test_a_jump_host_that_forwards_nothing_is_told(folder: Path, cells: list[Cell]):
    with openssh(folder, [modelled(cells[0])], "AllowTcpForwarding no") as sshd:
        gate = f"{USER}@{sshd.hosts[0]}"
        found = asked(run, "list cell", *sshd.reach("exa1cel01"), "--jump", gate)
    assert found.exit_code == 2
    assert "SSH failed: open failed" in found.stderr


# Keys


def test_a_key_of_the_agent_lets_in(sshd: Sshd, tmp_path: Path, monkeypatch):
    words = ["-H", ",".join(sshd.hosts), "-l", USER, "--known-hosts", sshd.known_hosts]
    assert "it refused the key" in asked(run, "list cell", *words).stderr
    with agent(tmp_path) as add:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        add(sshd.key)
        assert asked(run, "list cell", *words).exit_code == 0


def test_a_key_with_a_passphrase_is_the_agents_to_offer(sshd: Sshd, tmp_path: Path, monkeypatch):
    locked = make_key(tmp_path / "locked", "-N", "a secret")
    sshd.let_in(locked)
    named = [*sshd.reach(), "--key", locked]
    named.remove(str(sshd.key))
    named.remove("--key")
    configured = by_config(sshd.config(IdentityFile=str(locked)))
    (sshd.folder / "ssh_config").write_text(
        (sshd.folder / "ssh_config").read_text().replace(str(sshd.key), str(locked))
    )
    for words in (named, configured):
        found = asked(run, "list cell", *words)
        assert found.exit_code == 2
        assert f"{locked} has a passphrase, so only an agent can offer it" in found.stderr
        assert f"next: run `ssh-add {locked}`" in found.stderr
    with agent(tmp_path) as add:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        add(locked, "a secret")
        for words in (named, configured):
            assert asked(run, "list cell", *words).exit_code == 0


def test_a_named_key_comes_before_all_that_the_agent_holds(sshd: Sshd, tmp_path: Path, monkeypatch):
    # sshd hangs up after six keys (MaxAuthTries).
    with agent(tmp_path) as add:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        for number in range(7):
            add(make_key(tmp_path / f"other{number}"))
        named = asked(run, "list cell", *sshd.reach())
        found = asked(run, "list cell", *by_config(sshd.config()))
    assert named.exit_code == 0, named.output
    assert found.exit_code == 2
    assert "Too many authentication failures" in found.stderr
    assert "name the right key with --key" in found.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.soak
def test_setup_keys_puts_a_new_key_there_once(sshd: Sshd, user: Path):
    sshd.authorized_keys.chmod(0o666)
    sshd.authorized_keys.parent.chmod(0o777)
    sshd.authorized_keys.write_text(sshd.authorized_keys.read_text().rstrip())  # no end of line
    new = user / ".ssh" / "new"
    words = ["--new-key", new, "--yes"]
    # One of the three: they share a home, which cells do not.
    found = asked(setup_keys, *by_config(sshd.config(), "cel01"), *words)
    assert found.exit_code == 0, found.output
    assert "may ask for the password" not in found.stderr
    lines = sshd.authorized_keys.read_text().splitlines()
    assert lines == [Path(f"{key}.pub").read_text().strip() for key in (sshd.key, new)]
    assert (mode(sshd.authorized_keys.parent), mode(sshd.authorized_keys)) == (0o700, 0o600)
    assert asked(show, *sshd.reach(), "--key", new, "-m", "FL_IO_W").exit_code == 0
    again = asked(setup_keys, *by_config(sshd.config()), *words)
    assert again.exit_code == 0, again.output
    assert again.stdout.count("the key is there") == 3
    assert sshd.authorized_keys.read_text().splitlines() == lines


def test_setup_keys_tells_where_the_key_is_there_and_lets_nobody_in(folder: Path, cells: list[Cell], user: Path):
    elsewhere = folder / "elsewhere"
    with openssh(folder, [modelled(cells[0])], f"AuthorizedKeysFile {elsewhere}") as sshd:
        elsewhere.write_bytes(sshd.authorized_keys.read_bytes())
        new = user / ".ssh" / "new"
        found = asked(setup_keys, *by_config(sshd.config(), "cel01"), "--new-key", new, "--yes")
    assert found.exit_code == 2
    assert "cel01: the key is there, but: it refused the key" in found.stderr
    assert "StrictModes" in found.stderr
