"""Cells behind a real OpenSSH server: what sshd does, and not only what a model of it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openssh import PATIENCE_S, Sshd, Then, modelled, openssh
from rig_help import rack

from dbdyno.cli.cells_run import command as run
from dbdyno.cli.cells_show import command as show
from dbdyno.rig.cell import Cell


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    """Three modelled cells after a minute."""
    made = rack(seconds=61)
    return [Cell(made, number) for number in range(3)]


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without keys, agent or configuration."""
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return home


@pytest.fixture
def sshd(tmp_path: Path, cells: list[Cell]) -> Iterator[Sshd]:
    folder = tmp_path / "sshd"
    folder.mkdir()
    with openssh(folder, [modelled(cell) for cell in cells]) as server:
        yield server


def asked(command, *words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_show_gives_what_the_modelled_cells_collected(sshd: Sshd, cells: list[Cell]):
    found = asked(show, *sshd.reach(), "--by", "both", "--format", "json")
    assert found.exit_code == 0, found.output
    rows = {
        (row["metric"], row["object"]): row["values"] for row in json.loads(found.stdout)["rows"]
    }
    for number, port in enumerate(sshd.ports):
        name = cells[number].name
        sample = cells[number].rack.samples[number][-1].rows
        assert len(sample) > 1000
        for _, item, metric, value, *_ in sample:
            known = item if metric.startswith("CL_") else item.replace(name, "<cell>")
            assert rows[metric, known][f"127.0.0.1:{port}"] == value, (metric, item)


def test_a_command_that_hangs_is_given_up_after_the_time_out(sshd: Sshd):
    sshd.cells[1] = lambda line: Then("half an answer\n", then="hang")
    found = asked(run, "list cell", *sshd.reach(), "--timeout", "4", "--format", "json")
    assert found.exit_code == 2
    good, hung, other = json.loads(found.stdout)
    assert (good["output"], other["output"]) == ("\t cell01\t online\n", "\t cell03\t online\n")
    assert hung["problem"] == "no answer within 4 s"
    # A time-out that sshd could hold up would still be waiting.
    assert hung["seconds"] < PATIENCE_S


def test_a_command_that_a_signal_ended_is_told_so(sshd: Sshd):
    sshd.cells[0] = lambda line: Then("half an answer\n", then="killed")
    found = asked(run, "list cell", *sshd.reach())
    assert found.exit_code == 2
    assert "the command was ended by the signal KILL" in found.stderr
