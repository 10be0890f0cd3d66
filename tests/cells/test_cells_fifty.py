"""Fifty cells at once over real sockets, a dozen of them dead, slow, broken or lying: the others'
columns are right, only the bad ones are marked, the exit code is 2, and it does not take long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest
from click.testing import CliRunner, Result
from ssh_server import Behaviour, Rig, breaks_off, hangs, servers

from dbdyno.cli.cells.record import command as record
from dbdyno.cli.cells.run import command as run
from dbdyno.cli.cells.show import command as show
from dbdyno.cli.cells.watch import command as watch
from dbdyno.evidence.run import Run

GOOD = 38
TIMEOUT_S = 3
ROW = (
    "<metric><name>FL_IO_W</name><metricObjectName>FLASHLOG</metricObjectName>"
    "<metricValue>{}</metricValue><collectionTime>{}</collectionTime></metric>\n"
)
HEAD = '<?xml version="1.0"?>\n<cli-output>\n<context ossStartTimestamp="{}"/>\n'
"""Start of an answer without the cell's name, so that the cell keeps the address by which the test knows it."""
MINUTE_MS = 60_000


def healthy(number: int) -> Behaviour:
    """Return a cell that collects anew before each question and adds `number` writes each time."""
    asked = 0

    def behave(process: asyncssh.SSHServerProcess) -> None:
        nonlocal asked
        asked += 1
        if "metriccurrent" in str(process.command):
            at = 1_431_455_744_000 + asked * MINUTE_MS
            text = HEAD.format(7) + ROW.format(1000 + number * asked, at) + "</cli-output>\n"
        else:
            text = f"cel{number:02} online\n"
        process.stdout.write(text.encode())
        process.exit(0)

    return behave


def says(text: str, code: int = 0) -> Behaviour:
    """Return a cell that gives this answer to every command."""

    def behave(process: asyncssh.SSHServerProcess) -> None:
        process.stdout.write(text.encode("utf-8", "surrogateescape"))
        process.exit(code)

    return behave


async def spouts(process: asyncssh.SSHServerProcess) -> None:
    """Write output without end."""
    with contextlib.suppress(Exception):
        while True:
            process.stdout.write(b"FL_IO_W FLASHLOG 7 IO requests\n" * 1000)
            await process.stdout.drain()
            await asyncio.sleep(0.1)  # as fast as it can, it would cost a core


BAD: dict[str, Behaviour | None] = {
    "no answer within": hangs(),
    "no answer within 3": hangs(HEAD.format(7) + ROW.format(99, 1)),
    "no answer within 3 s": spouts,
    "the connection": breaks_off(HEAD.format(7) + ROW.format(99, 1)),
    "CELL-01509: the cell service is down": says("CELL-01509: the cell service is down.\n"),
    "1 line not understood": says(HEAD.format(7) + ROW.format(99, 1) + "<metric><na"),
    "lines not understood": says("\udcff\udcfe\x1b[2J\nlp0 on fire\n" * 20),
    "no metrics (exit 0)": says(""),
    "no metrics (exit 127)": says("", 127),
    "exit 127": says("bash: cellcli: command not found\n", 127),
    "its host key differs": healthy(99),  # another key than the one that is known
    "cannot be reached": None,  # nobody listens
}


@dataclass
class Rack:
    """The running cells: `hosts` lists the good ones first, then the bad ones in the order of BAD."""

    rig: Rig
    hosts: list[str]

    def asked(self, command, *options: str) -> Result:
        return CliRunner().invoke(command, self.rig.reach(",".join(self.hosts), *options, timeout_s=TIMEOUT_S))


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rack]:
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    behaviours = [healthy(at + 1) for at in range(GOOD)]
    behaviours += [one for one in BAD.values() if one]
    with socket.socket() as closed, servers(tmp_path, behaviours) as rig:
        closed.bind(("127.0.0.1", 0))
        ports = [*rig.ports, closed.getsockname()[1]]
        other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
        name = f"[127.0.0.1]:{rig.ports[-1]} "
        known = [
            f"{name}{other}" if line.startswith(name) else line for line in rig.known_hosts.read_text().splitlines()
        ]
        rig.known_hosts.write_text("\n".join(known) + "\n")
        yield Rack(rig, [f"127.0.0.1:{port}" for port in ports])


def told(found: Result) -> dict[str, str]:
    """Return the message on stderr for each cell."""
    lines = [line for line in found.stderr.splitlines() if line.startswith("dbdyno: 127.")]
    return {line.split(": ")[1]: line.split(": ", 2)[2] for line in lines}


def check_bad(rack: Rack, problems: dict[str, str]) -> None:
    """Check that each bad cell has its own reason, and no other cell has one."""
    assert set(problems) == set(rack.hosts[GOOD:])
    for host, words in zip(rack.hosts[GOOD:], BAD, strict=True):
        assert words.rstrip("s 3").strip() in problems[host], problems[host]


def test_show_marks_only_the_columns_of_the_bad_cells(rack: Rack):
    began = time.monotonic()
    found = rack.asked(show, "-m", "FL_IO_W", "--format", "json")
    took = time.monotonic() - began
    assert found.exit_code == 2, found.output
    assert took < TIMEOUT_S + 60  # those that hang do so for longer
    check_bad(rack, told(found))
    page = json.loads(found.stdout)
    marked = {cell["name"] for cell in page["cells"] if cell["problem"]}
    assert marked == set(rack.hosts[GOOD:])
    values = page["rows"][0]["values"]
    for number, host in enumerate(rack.hosts[:GOOD], 1):
        assert values[host] == 1000 + number
    # Half a listing stays beside its mark, and counts: the sum is of what is shown.
    assert page["rows"][0]["all"] == sum(values.values())
    table = rack.asked(show, "-m", "FL_IO_W", "--cells")
    assert table.exit_code == 2
    assert table.stdout.count("!") == len(BAD)


@pytest.mark.soak
def test_run_puts_equal_answers_together_and_names_who_failed(rack: Rack):
    found = rack.asked(run, "list cell", "--format", "json")
    assert found.exit_code == 2
    rows = {row["cell"]: row for row in json.loads(found.stdout)}
    for number, host in enumerate(rack.hosts[:GOOD], 1):
        assert rows[host]["output"] == f"cel{number:02} online\n"
        assert rows[host]["problem"] is None
    text = rack.asked(run, "list cell")
    assert text.exit_code == 2
    assert "\x1b" not in text.stdout
    assert "no answer within 3 s" in text.stderr


def test_watch_has_the_differences_of_the_good_ones(rack: Rack):
    found = rack.asked(watch, "--every", "9s", "--for", "9s", "-m", "FL_IO_W", "--by", "cell")
    assert found.exit_code == 2, found.output
    check_bad(rack, told(found))
    for host in rack.hosts[:GOOD]:
        assert host in found.stdout


@pytest.mark.soak
def test_record_keeps_what_the_good_ones_said_and_why_the_others_did_not(rack: Rack, tmp_path: Path):
    out = tmp_path / "rec"
    found = rack.asked(record, "--every", "9s", "--for", "9s", "--out", str(out))
    assert found.exit_code == 2, found.output
    check_bad(rack, told(found))
    blocks = Run.open(out).blocks()
    assert len(blocks) == 2
    for block in blocks:
        cells = block.report["cells"]
        assert {name for name, cell in cells.items() if cell["problem"]} == set(rack.hosts[GOOD:])
        assert all(cells[host]["readings"] == 1 for host in rack.hosts[:GOOD])
