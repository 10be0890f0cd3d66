"""Commands on every cell: reading needs no permission, changing does; equal answers are shown together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ssh_server import answers, repeats_the_command, servers

from dbdyno.base.errors import CellsError
from dbdyno.cells.commands import command_of, group_answers, script_of
from dbdyno.cells.hosts import Host
from dbdyno.cells.ssh import Answer
from dbdyno.cli.cells.run import command, script


def reach(rig) -> list[str]:
    return rig.reach(",".join(f"127.0.0.1:{port}" for port in rig.ports))


def run_script(folder: Path, text: str, answer: str, *options: str) -> Result:
    """Run a script on one cell that gives this answer to each command."""
    file = folder / "two.scl"
    file.write_text(text)
    with servers(folder, [answers(answer)]) as rig:
        return CliRunner().invoke(script, [str(file), *reach(rig), *options])


def test_equal_answers_stand_together_but_for_the_cells_own_name():
    said = [
        ("cel01", "cel01_FLASHCACHE normal"),
        ("cel02", "cel02_FLASHCACHE normal"),
        ("cel03", "cel03_FLASHCACHE critical"),
    ]
    groups = group_answers(Answer(Host(name, name), output=text, code=0) for name, text in said)
    assert [(g.cells, g.output) for g in groups] == [
        (["cel01", "cel02"], "<cell>_FLASHCACHE normal"),
        (["cel03"], "cel03_FLASHCACHE critical"),
    ]


def test_a_command_reaches_the_cell_as_one_word_whatever_stands_in_it(tmp_path: Path):
    with servers(tmp_path, [repeats_the_command]) as rig:
        text = "list metriccurrent where name = 'x'; rm -rf /tmp/none $(id) `id`"
        found = CliRunner().invoke(command, [text, *reach(rig), "--apart"])
    quoted = text.replace("'", "'\"'\"'")
    assert f"cellcli -e '{quoted}'" in found.stdout


def test_looking_asks_nothing_and_changing_asks_first(tmp_path: Path):
    with servers(tmp_path, [answers("done")]) as rig:
        looked = CliRunner().invoke(command, ["LIST cell", *reach(rig)])
        asked = CliRunner().invoke(command, ["drop flashcache", *reach(rig)], input="n\n")
        told = CliRunner().invoke(command, ["drop flashcache", *reach(rig), "--yes"])
    assert (looked.exit_code, told.exit_code, asked.exit_code) == (0, 0, 2)
    assert "done" in looked.stdout
    assert "done" not in asked.stdout
    assert "drop flashcache" in asked.stderr


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(tmp_path: Path):
    text = "-- before the test\nlist flashcache\nalter flashcache -\n  all flush\n"
    found = run_script(tmp_path, text, "sent", "--dry-run")
    assert found.exit_code == 0
    assert "looks   cellcli -e 'list flashcache'" in found.stdout
    assert "CHANGES cellcli -e 'alter flashcache all flush'" in found.stdout
    assert "sent" not in found.stdout


def test_a_script_ends_where_a_command_fails(tmp_path: Path):
    found = run_script(tmp_path, "list cell\nlist griddisk\n", "CELL-01504: Invalid command syntax.\n")
    assert found.exit_code == 2
    assert "> list griddisk" not in found.stdout
    assert "two.scl:1: failed; the remaining commands were not sent" in found.stderr


def test_exit_two_when_any_cell_failed(tmp_path: Path):
    with servers(tmp_path, [answers("ok"), answers("", code=1)]) as rig:
        found = CliRunner().invoke(command, ["list cell", *reach(rig)])
    assert found.exit_code == 2
    assert "exit 1" in found.stderr


@pytest.mark.parametrize("text", ["rm -rf /", "", "list \x07cell"])
def test_what_is_no_command_of_cellcli_is_refused(text: str):
    with pytest.raises(CellsError):
        command_of(text)


def test_a_script_names_the_line_of_what_is_no_command(tmp_path: Path):
    file = tmp_path / "bad.scl"
    file.write_text("REM fine\nlist cell\nformat c:\n")
    with pytest.raises(CellsError) as told:
        script_of(file)
    assert told.value.where == f"{file}:3"


def named(name: str):
    """Return a cell that reports another name than the one by which it is reached."""

    def behave(process):
        end = ".example.com" if process.command == "hostname" else "_FLASHCACHE normal"
        process.stdout.write(f"{name}{end}\n".encode())
        process.exit(0)

    return behave


def test_equal_answers_of_cells_reached_by_address_stand_together(tmp_path: Path):
    with servers(tmp_path, [named("exa1cel01"), named("exa1cel02")]) as rig:
        found = CliRunner().invoke(command, ["list flashcache", *reach(rig)])
    assert found.stdout == "exa1cel01, exa1cel02 (2 of 2)\n<cell>_FLASHCACHE normal\n"


def test_cells_are_called_by_their_own_names_in_every_form(tmp_path: Path):
    """They were called by the addresses by which they were reached."""
    with servers(tmp_path, [named("exa1cel01"), named("exa1cel02"), answers("", code=1)]) as rig:
        apart = CliRunner().invoke(command, ["list flashcache", *reach(rig), "--apart"])
        rows = json.loads(CliRunner().invoke(command, ["list flashcache", *reach(rig), "--format", "json"]).stdout)
        less = CliRunner().invoke(command, ["list flashcache", *reach(rig), "-r", "exa1cel02"])
    silent = f"127.0.0.1:{rig.ports[2]}"
    assert apart.stdout.splitlines()[:2] == [
        "exa1cel01: exa1cel01_FLASHCACHE normal",
        "exa1cel02: exa1cel02_FLASHCACHE normal",
    ]
    assert f"dbdyno: {silent}: exit 1" in apart.stderr, "a cell that does not say its name keeps its address"
    assert [row["cell"] for row in rows] == ["exa1cel01", "exa1cel02", silent]
    assert [row["address"] for row in rows] == [f"127.0.0.1:{port}" for port in rig.ports]
    assert "exa1cel02: 1 line(s) of exa1cel02 (1 of 3) left out" in less.stderr


def test_two_addresses_that_say_one_name_are_told_apart(tmp_path: Path):
    with servers(tmp_path, [named("exa1cel01"), named("exa1cel01")]) as rig:
        found = CliRunner().invoke(command, ["list flashcache", *reach(rig)])
    one, two = (f"exa1cel01 (127.0.0.1:{port})" for port in rig.ports)
    assert found.stdout == f"{one}, {two} (2 of 2)\n<cell>_FLASHCACHE normal\n"


def test_without_a_terminal_nobody_can_answer_and_nothing_is_sent(tmp_path: Path):
    with servers(tmp_path, [answers("sent")]) as rig:
        found = CliRunner().invoke(command, ["drop flashcache", *reach(rig)], input="")
    assert found.exit_code == 2
    assert "sent" not in found.stdout
    assert "--yes answers" in found.stderr


def test_json_of_a_script_is_one_document(tmp_path: Path):
    found = run_script(tmp_path, "list cell\nlist griddisk\n", "ok\n", "--format", "json")
    first, second = json.loads(found.stdout)
    assert (first["command"], second["command"]) == ("list cell", "list griddisk")
    assert first["answers"][0]["output"] == "ok\n"


def test_an_error_code_in_the_words_of_an_alert_is_no_failure(tmp_path: Path):
    text = '\t 1_1 \t "Logical drive lost. CELL-04559: see the manual"\n'
    with servers(tmp_path, [answers(text)]) as rig:
        found = CliRunner().invoke(command, ["list alerthistory", *reach(rig)])
    assert found.exit_code == 0, found.output


def test_what_an_answer_holds_cannot_command_the_terminal(tmp_path: Path):
    with servers(tmp_path, [answers("\x1b[2J\x1b]0;title\x07done\n")]) as rig:
        for option in ("--apart", "--serial"):
            found = CliRunner().invoke(command, ["list cell", *reach(rig), option])
            assert "done" in found.stdout
            assert "\x1b" not in found.output
