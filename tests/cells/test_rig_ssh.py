"""Modelled cells behind SSH, queried by the same code as real cells and by nothing else."""

from __future__ import annotations

import asyncio
import os
import random
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rig_help import access, cell, passing, rack, serving

from command_line import dbdyno
from dbdyno.base.errors import CellsError
from dbdyno.cells.collect import collect_once
from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.rates import changes
from dbdyno.cells.ssh import Access, run_everywhere
from dbdyno_rig.cell import Cell
from dbdyno_rig.serve import Servers
from dbdyno_rig.shell import shell


def test_cells_show_reads_modelled_cells_as_it_reads_real_ones(tmp_path: Path):
    made = rack(seconds=61)
    cells = [Cell(made, number) for number in range(3)]
    with serving(cells, tmp_path) as served:
        hosts = hosts_of([served.hosts], user="celladmin")
        first = collect_once(hosts, access(served), describe=True)
        made.advance(60 * 10**9)
        second = collect_once(hosts, access(served))
    assert first.failed == second.failed == []
    assert first.descriptions["FL_IO_W"].startswith("redo writes that the flash log served")
    for number, column in enumerate(second.columns):
        sample = made.samples[number][-1]
        assert len(column.readings) == len(sample.rows)
        assert {r.at_ns for r in column.readings} == {sample.at_ns}
        assert column.started_ns == made.began_ns
    rates = [c.per_s for c in changes(first.readings, second.readings) if c.name == "FL_RQ_W"]
    assert len(rates) == 3
    assert all(rate is not None and rate > 10 for rate in rates)


def test_each_cell_has_a_host_key_of_its_own_and_lets_only_its_key_in(tmp_path: Path):
    import asyncssh

    made = rack()
    with serving([Cell(made, 0), Cell(made, 1)], tmp_path) as served:
        keys = [line.split()[-1] for line in served.known_hosts.read_text().splitlines()]
        assert len(set(keys)) == 2
        assert served.key is not None
        assert served.key.stat().st_mode & 0o777 == 0o600
        other = tmp_path / "other"
        asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(other))
        (found, _) = run_everywhere(
            hosts_of([served.hosts], user="celladmin"),
            Access((other,), served.known_hosts, config=False, timeout_s=10.0),
            "hostname",
        )
    assert found.problem == "it refused the key"


def test_the_users_own_keys_are_let_in(tmp_path: Path):
    import asyncssh

    own = tmp_path / "own"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(own))
    asyncssh.read_private_key(str(own)).write_public_key(f"{own}.pub")
    with serving([Cell(rack(), 0)], tmp_path, keys=Path(f"{own}.pub")) as served:
        assert served.key is None
        (found,) = run_everywhere(
            hosts_of([served.hosts]),
            Access((own,), served.known_hosts, config=False, timeout_s=10.0),
            "hostname",
        )
    assert (found.output, found.code) == ("cell01\n", 0)


def test_a_port_that_is_taken_is_told(tmp_path: Path):
    made = rack()
    with serving([Cell(made, 0)], tmp_path) as served:

        async def again() -> None:
            async with Servers([Cell(made, 1)], tmp_path, port=served.ports[0]):
                pass

        with pytest.raises(CellsError, match="no cell can be served at this address"):
            asyncio.run(again())


@pytest.mark.parametrize(
    ("line", "output", "errors", "code"),
    [
        ("hostname", "cell01\n", "", 0),
        ("whoami", "celladmin\n", "", 0),
        ("", "", "", 0),
        ("cellcli -e list cell", "\t cell01\t online\n", "", 0),
        ("cellcli -n -e 'list cell'", "\t cell01\t online\n", "", 0),
        ("""cellcli -e "list cell where name = 'cell01'" """, "\t cell01\t online\n", "", 0),
        ("cellcli -e list table", "\nCELL-01504: Invalid command syntax.\n", "", 1),
        ("ls -la", "", "-bash: ls: command not found\n", 127),
        ("/bin/sh -c id", "", "-bash: /bin/sh: command not found\n", 127),
        ("cellcli -e list cell > /etc/x", "", "-bash: `>' is not understood by this modelled cell\n", 2),
        ("hostname 'open", "", "-bash: unexpected EOF while looking for matching `''\n", 2),
        ("cellcli -f", "", "cellcli: unknown option -f\n", 1),
    ],
)
def test_a_line_of_the_shell(line: str, output: str, errors: str, code: int):
    assert shell(Cell(rack(), 0), line) == (output, errors, code)


@pytest.mark.soak
def test_several_users_at_once_get_whole_answers_while_time_passes():
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    made = rack()
    asked = Cell(made, 0)
    texts = [
        "list metriccurrent",
        "list metrichistory FL_RQ_W",
        "list alerthistory",
        "list griddisk",
        "create griddisk all flashdisk prefix=G size=16M",
        "drop griddisk all prefix=G",
        "drop flashcache",
        "create flashcache all size=1G",
        "alter cell restart services all",
        "create threshold FL_RQ_W comparison='>', warning=1",
        "drop threshold all",
        "alter iormplan dbplan=((name=ORCL, flashLog=off))",
        "alter iormplan dbplan=''",
    ]

    def user(number: int) -> list[int]:
        dice = random.Random(seed + number)
        return [asked.answer(dice.choice(texts))[1] for _ in range(60)]

    with passing(made), ThreadPoolExecutor(6) as pool:
        codes = [code for found in pool.map(user, range(6)) for code in found]
    assert set(codes) <= {0, 1}
    assert codes.count(0) > len(codes) / 4
    disks = [line.split()[0] for line in asked.answer("list griddisk")[0].splitlines()]
    assert len(disks) == len(set(disks))


def test_uptime_and_date_are_those_of_the_cells_clock():
    asked = Cell(rack(seconds=125), 0)
    assert " 0:02," in shell(asked, "uptime")[0]
    assert shell(asked, "date")[0].endswith(f" {time.gmtime(asked.rack.clock_ns() // 10**9)[0]}\n")


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path):
    words = [
        sys.executable,
        "-m",
        "dbdyno",
        "model",
        "cells",
        "--cells",
        "2",
        "--speed",
        "600",
        "--folder",
        str(tmp_path),
    ]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = dbdyno(*shlex.split(line)[1:], "--format", "jsonl")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert found.returncode == 0, found.stderr
    assert re.search(r'"metric": ?"FL_IO_W"', found.stdout)
    assert process.returncode == 0
    assert "2 cells of" in errors
    assert "Traceback" not in errors


def test_a_machine_without_cells_or_a_wrong_workload_is_an_error():
    for words in (["--model", "nvme-server"], ["--workload", "dance"], ["--workload", "sort,x"]):
        found = dbdyno("model", "cells", *words)
        assert found.returncode == 2
        assert "fault in dbdyno" not in found.stderr


def test_the_key_of_modelled_cells_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Made with its mode, and not through a link that waits in its place."""
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    folder = tmp_path / "rig"
    folder.mkdir()
    (folder / "id_ed25519").symlink_to(target)
    opened = []
    real = os.open

    def watched(path, flags, mode=0o777, **more):
        opened.append((str(path), flags, mode))
        return real(path, flags, mode, **more)

    monkeypatch.setattr(os, "open", watched)
    previous = os.umask(0)
    try:
        with serving([cell()], folder) as served:
            assert served.key is not None
            assert stat.S_IMODE(served.key.lstat().st_mode) == 0o600
    finally:
        os.umask(previous)
    flags, mode = next((flags, mode) for path, flags, mode in opened if path.endswith("id_ed25519"))
    assert mode == 0o600
    assert flags & os.O_EXCL
    assert target.read_text() == "mine"
