"""One command on every cell: host keys are checked, and a cell that fails affects only its own answer."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import asyncssh
import pytest
from ssh_server import answers, breaks_off, hangs, repeats_the_command, servers

from dbdyno.base.errors import CellsError
from dbdyno.cells.hosts import Host, hosts_of
from dbdyno.cells.ssh import Access, run_everywhere


def hosts(ports: list[int]) -> list[Host]:
    return hosts_of([f"127.0.0.1:{port}" for port in ports], user="celladmin")


def access(rig, **changes) -> Access:
    given = {"keys": (rig.key,), "known_hosts": rig.known_hosts, "config": False, "timeout_s": 5.0}
    return Access(**{**given, **changes})


def test_every_cell_answers_the_same_command(tmp_path: Path):
    with servers(tmp_path, [repeats_the_command] * 3) as rig:
        found = run_everywhere(hosts(rig.ports), access(rig), "cellcli -e list cell")
    assert [(a.output, a.code, a.problem) for a in found] == [("cellcli -e list cell", 3, None)] * 3
    assert [a.host.port for a in found] == rig.ports


def test_one_that_hangs_and_one_that_is_dead_cost_only_their_own_answers(tmp_path: Path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: refuses
        with servers(tmp_path, [answers("yes"), hangs("half")]) as rig:
            dead = closed.getsockname()[1]
            began = time.monotonic()
            found = run_everywhere(hosts([rig.ports[0], rig.ports[1], dead]), access(rig, timeout_s=4.0), "x")
            took = time.monotonic() - began
    good, slow, refused = found
    assert (good.output, good.problem) == ("yes", None)
    assert slow.problem == "no answer within 4 s"
    assert refused.problem is not None
    assert refused.problem.startswith("cannot be reached")
    assert took < 60  # the server hangs for 600 s


def test_a_connection_that_ends_in_the_middle_is_told(tmp_path: Path):
    with servers(tmp_path, [breaks_off("FL_IO_W FLASH"), answers("ok")]) as rig:
        broken, good = run_everywhere(hosts(rig.ports), access(rig), "x")
    assert broken.problem
    assert good.output == "ok"


def test_an_unknown_host_key_is_a_refusal_and_no_question(tmp_path: Path):
    with servers(tmp_path, [answers("secret")], known=False) as rig:
        (found,) = run_everywhere(hosts(rig.ports), access(rig), "x")
    assert found.output == ""
    assert found.problem is not None
    assert "host key" in found.problem


def test_a_wrong_key_is_told_with_the_next_step(tmp_path: Path):
    import asyncssh

    other = tmp_path / "other"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(other))
    with servers(tmp_path, [answers("x")]) as rig:
        (found,) = run_everywhere(hosts(rig.ports), access(rig, keys=(other,)), "x")
    assert found.problem == "it refused the key"
    assert "setup-keys" in (found.next_step or "")


def test_fifty_cells_are_asked_at_once(tmp_path: Path):
    async def late(process):
        import asyncio

        await asyncio.sleep(2)
        process.stdout.write(b"late")
        process.exit(0)

    with servers(tmp_path, [late] * 50) as rig:
        began = time.monotonic()
        found = run_everywhere(hosts(rig.ports), access(rig, timeout_s=60.0), "x")
        took = time.monotonic() - began
    assert {a.output for a in found} == {"late"}
    assert took < 80  # one after the other it would be as long by sleeping alone


def test_serial_asks_one_after_the_other_and_tells_as_it_goes(tmp_path: Path):
    told: list[int | None] = []
    with servers(tmp_path, [answers("a"), answers("b")]) as rig:
        run_everywhere(hosts(rig.ports), access(rig), "x", serial=True, on_answer=lambda a: told.append(a.host.port))
    assert told == rig.ports


def test_names_groups_rows_users_and_ports(tmp_path: Path):
    group = tmp_path / "cell_group"
    group.write_text("# the rack\nexa1cel03\nroot@exa1cel04:2222  # spare\n\n")
    found = hosts_of(["exa1cel[01-02],exa1cel01", f"@{group}"], user="celladmin")
    assert [(h.name, h.port, h.user) for h in found] == [
        ("exa1cel01", None, "celladmin"),
        ("exa1cel02", None, "celladmin"),
        ("exa1cel03", None, "celladmin"),
        ("exa1cel04", 2222, "root"),
    ]
    assert [h.name for h in hosts_of(["a:1,a:2"])] == ["a:1", "a:2"]
    assert hosts_of(["[::1]:2200"])[0].address == "::1"


@pytest.mark.parametrize("text", ["bad host", "a:99999", "-oProxyCommand=x", "c[5-1]", ""])
def test_what_is_no_host_is_refused_with_what_would_be(text: str):
    with pytest.raises(CellsError) as told:
        hosts_of([text])
    assert told.value.next_step


def test_a_group_file_that_is_not_there_names_the_file(tmp_path: Path):
    with pytest.raises(CellsError, match="group file"):
        hosts_of([f"@{tmp_path}/none"])


def test_a_command_that_ends_before_its_input_says_itself_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A copy into no folder: "cannot be reached: Channel not open for sending", as if the cell were down."""

    def ended(*_: object) -> None:
        raise BrokenPipeError("Channel not open for sending")

    monkeypatch.setattr(asyncssh.SSHWriter, "write_eof", ended)
    with servers(tmp_path, [answers("no such folder", code=1)]) as rig:
        (found,) = run_everywhere(hosts(rig.ports), access(rig), "x")
    assert (found.code, found.output, found.problem) == (1, "no such folder", None)
