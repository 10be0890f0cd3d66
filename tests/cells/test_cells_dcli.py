"""Features of dcli in dbdyno: file copies, shell scripts, omitted lines, removal of keys; and the cells' history."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from openssh import PATIENCE_S, Sshd, modelled, openssh
from rig_help import rack, serving

from dbdyno.base.errors import CellsError
from dbdyno.cells.commands import group_answers, remove_lines, shell_script_of
from dbdyno.cells.copying import copies_of
from dbdyno.cells.hosts import Host
from dbdyno.cells.keys import remove_command
from dbdyno.cells.ssh import Answer
from dbdyno.cli.cells.run import script as script_command
from dbdyno.cli.main import cli
from dbdyno_rig.cell import Cell
from soaked import first


@pytest.fixture
def cells() -> list[Cell]:
    made = rack(seconds=305, cells__disks="2", cells__modules="2")
    return [Cell(made, number) for number in range(2)]


@pytest.fixture
def sshd(tmp_path: Path, cells: list[Cell], monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    home = tmp_path / "user"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "sshd").mkdir()
    with openssh(tmp_path / "sshd", [modelled(cell) for cell in cells]) as server:
        yield server


def asked(*words: object) -> Result:
    return CliRunner().invoke(cli, ["cells", *(str(word) for word in words)])


def by_config(sshd: Sshd, hosts: str = "cel01") -> list[str]:
    return ["-H", hosts, "--ssh-config", str(sshd.config()), "--timeout", str(PATIENCE_S)]


def served_way(served) -> list[str]:
    return ["-H", served.hosts, "-l", "celladmin", "--known-hosts", str(served.known_hosts), "--key", str(served.key)]


def answer(name: str, text: str) -> Answer:
    return Answer(Host(name, name), output=text, code=0)


def test_answers_that_differ_in_counters_alone_stand_together():
    groups = group_answers(
        [answer("cel01", "cel01 hits 1,500\n"), answer("cel02", "cel02 hits 20\n"), answer("cel03", "cel03 down 20\n")]
    )
    assert [(g.cells, g.output) for g in groups] == [
        (["cel01", "cel02"], "<cell> hits 20..1,500"),
        (["cel03"], "cel03 down 20"),
    ]


@pytest.mark.parametrize(("one", "other"), [("disk CD_01", "disk CD_02"), ("12.1.2.3", "12.1.2.4"), ("10:15", "10:16")])
def test_numbers_within_names_versions_and_times_are_no_counters(one: str, other: str):
    assert len(group_answers([answer("cel01", one), answer("cel02", other)])) == 2


def test_lines_that_match_are_left_out_and_counted():
    answers = [answer("cel01", "CD_00 normal\nCD_01 failed\n"), answer("cel02", "CD_00 normal\n")]
    assert remove_lines(re.compile("normal"), answers) == {"cel01": 1, "cel02": 1}
    assert [one.output for one in answers] == ["CD_01 failed\n", ""]


def test_a_script_for_the_shell_is_read_line_by_line(tmp_path: Path):
    file = tmp_path / "checks.sh"
    file.write_text("# a comment\nuptime\n\necho one \\\n  two\n")
    assert [one.text for one in shell_script_of(file)] == ["uptime", "echo one   two"]
    file.write_text("# nothing\n")
    with pytest.raises(CellsError):
        shell_script_of(file)


def test_a_script_for_the_shell_runs_on_modelled_cells(tmp_path: Path, cells: list[Cell]):
    file = tmp_path / "checks.sh"
    file.write_text("hostname\necho whole\n")
    (tmp_path / "rig").mkdir()
    with serving(cells, tmp_path / "rig") as served:
        words = [str(file), *served_way(served), "--shell", "--yes", "-r", "whole"]
        found = CliRunner().invoke(script_command, words)
    assert found.exit_code == 0, found.output
    assert "<cell>" in found.stdout
    assert "whole: 2 line(s) of" in found.stderr


def test_a_copy_is_whole_with_its_mode_and_leaves_nothing_aside(sshd: Sshd, tmp_path: Path):
    file = tmp_path / "it's a file.sh"
    file.write_bytes(bytes(range(256)) * 1000)
    file.chmod(0o750)
    (sshd.home / "there").mkdir()
    asking = asked("copy", file, *by_config(sshd), "--directory", "there")
    assert (asking.exit_code, list((sshd.home / "there").iterdir())) == (2, [])
    found = asked("copy", file, *by_config(sshd), "--directory", "there", "--yes")
    assert found.exit_code == 0, found.output
    (made,) = (sshd.home / "there").iterdir()
    assert made.read_bytes() == file.read_bytes()
    assert (made.name, stat.S_IMODE(made.stat().st_mode)) == (file.name, 0o750)
    own = asked("run", "hostname", *by_config(sshd), "--shell", "--yes", "--apart").stdout.split()[-1].split(".")[0]
    assert found.stdout == f"{own}: {file.name} is there\n", "the cell's own name, not the address"


def test_a_copy_into_no_folder_fails_and_says_so(sshd: Sshd, tmp_path: Path):
    (tmp_path / "f").write_text("x")
    found = asked("copy", tmp_path / "f", *by_config(sshd), "--directory", "nowhere", "--yes")
    assert found.exit_code == 2
    assert "No such file" in found.stderr


def test_a_modelled_cell_refuses_a_copy_by_name(tmp_path: Path, cells: list[Cell]):
    (tmp_path / "f").write_text("x")
    (tmp_path / "rig").mkdir()
    with serving(cells, tmp_path / "rig") as served:
        found = asked("copy", tmp_path / "f", *served_way(served), "--yes")
    assert found.exit_code == 2
    assert "not understood by this modelled cell" in found.stderr


def test_two_files_of_one_name_are_not_copied_over_each_other(tmp_path: Path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(folder)
    with pytest.raises(CellsError, match="has the same name as"):
        copies_of([tmp_path / "a" / "f", tmp_path / "b" / "f"], "/tmp")


def test_setup_keys_takes_a_key_away_and_leaves_the_others(sshd: Sshd):
    new = sshd.folder / "new"
    assert asked("setup-keys", *by_config(sshd), "--new-key", new, "--yes").exit_code == 0
    assert len(sshd.authorized_keys.read_text().splitlines()) == 2
    own = sshd.authorized_keys.read_text().splitlines()[0]
    shown = asked("setup-keys", *by_config(sshd), "--new-key", new, "--remove", "--dry-run")
    assert "grep -vF" in shown.stderr
    assert len(sshd.authorized_keys.read_text().splitlines()) == 2
    found = asked("setup-keys", *by_config(sshd), "--new-key", new, "--remove", "--yes")
    assert found.exit_code == 0, found.output
    assert sshd.authorized_keys.read_text().splitlines() == [own]
    assert stat.S_IMODE(sshd.authorized_keys.stat().st_mode) == 0o600
    again = asked("setup-keys", *by_config(sshd), "--new-key", new, "--key", sshd.key, "--remove", "--yes")
    assert again.exit_code == 0, again.output


def test_a_key_is_taken_away_whatever_its_comment():
    assert "AAAA" in remove_command("ssh-ed25519 AAAA someone@somewhere")
    assert "someone" not in remove_command("ssh-ed25519 AAAA someone@somewhere")


@pytest.mark.parametrize("server", first("modelled", "sshd"))
def test_history_is_a_recording_of_what_nobody_watched(server: str, tmp_path: Path, cells: list[Cell], request):
    out = tmp_path / "lunch"
    if server == "sshd":
        sshd = request.getfixturevalue("sshd")
        found = asked("history", *by_config(sshd, "cel[01-02]"), "--last", "20min", "--out", out)
    else:
        (tmp_path / "rig").mkdir()
        with serving(cells, tmp_path / "rig") as served:
            found = asked("history", *served_way(served), "--last", "20min", "--out", out)
    assert found.exit_code == 0, found.output
    names = [cell.name for cell in cells]
    page = CliRunner().invoke(cli, ["report", str(out), "--format", "json"])
    assert page.exit_code == 0, page.output
    from dbdyno.cells.record import all_rounds
    from dbdyno.evidence.run import find_run

    run = find_run(str(out), tmp_path)
    assert run.manifest.cells == names
    rounds = all_rounds(run)
    assert len(rounds) >= 5
    assert {c.host.name for c in rounds[1].columns} == set(names)


def test_history_of_no_length_is_refused(tmp_path: Path):
    found = asked("history", "-H", "cel01", "--last", "5s", "--out", tmp_path / "x")
    assert "is outside the allowed range" in str(found.exception)
