"""The shell and the CellCLI prompt of a modelled cell, as a user types commands in them."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from rig_help import access, cell, rack, serving

from dbdyno.cells.hosts import hosts_of
from dbdyno.cells.ssh import run_everywhere
from dbdyno_rig.cell import Cell
from dbdyno_rig.cellcli import Conversation, cellcli, parse_options
from dbdyno_rig.serve import RackAccess
from dbdyno_rig.shell import shell, words_of
from fresh_dice import fresh_dice


@pytest.fixture(scope="module")
def asked() -> Cell:
    return cell(seconds=61)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a b", ["a", "b"]),
        ("a  'b c' \"d e\"", ["a", "b c", "d e"]),
        (r"name like \'FL_.*\'", ["name", "like", "'FL_.*'"]),
        ("a''b \"\" ''", ["ab", "", ""]),
        ("a'|'b", ["a|b"]),
        ('"a \\" \\\\ \\n $ x"', ['a " \\ \\n $ x']),
        ("cost$ $", ["cost$", "$"]),
        ("one \\\ntwo", ["one", "two"]),
    ],
)
def test_a_line_is_cut_as_a_posix_shell_cuts_it(line: str, words: list[str]):
    assert [word.text for word in words_of(line)] == words
    assert not any(word.joins for word in words_of(line))


@pytest.mark.parametrize(
    ("line", "output", "code"),
    [
        ("hostname; hostname", "cell01\ncell01\n", 0),
        ("hostname && false && echo no", "cell01\n", 1),
        ("false || echo yes", "yes\n", 0),
        ("false && echo no; echo on", "on\n", 0),
        ("hostname;", "cell01\n", 0),
        ("echo a\necho b", "a\nb\n", 0),
        ("echo -n a | cat", "a", 0),
        ("cellcli -e list griddisk | grep -c DATA_", "12\n", 0),
        ("cellcli -e list griddisk | grep -v DATA | wc -l", "12\n", 0),
        ("cellcli -e list griddisk | egrep 'CD_0(0|1)' | sort -r | head -1", "\t RECO_CD_01_cell01\t active\n", 0),
        ("cellcli -e list griddisk | grep 'CD_0[01]_' | tail -n 1", "\t RECO_CD_01_cell01\t active\n", 0),
        ("echo a+b | grep 'a+b'", "a+b\n", 0),
        ("echo aab | grep 'a\\+b'", "aab\n", 0),
        ("echo a.b | grep -F .", "a.b\n", 0),
        ("echo cell01 | grep -w cell", "", 1),
        ("echo x | grep -q x && echo found", "found\n", 0),
        ("cellcli -e list nothing | grep -i INVALID", "CELL-01504: Invalid command syntax.\n", 0),
        (
            "cellcli -e list metriccurrent where objectType = \\'FLASHLOG\\' | sort -k1 | head -n1",
            "\t FL_ACTUAL_OUTLIERS       \t FLASHLOG\t 0 IO requests\n",
            0,
        ),
        ("echo 2 b | sort -n -k 1 | uniq -c", "      1 2 b\n", 0),
    ],
)
def test_commands_are_joined_and_piped(asked: Cell, line: str, output: str, code: int):
    assert shell(asked, line) == (output, "", code)


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        ("cellcli -e list cell > x", "`>' is not understood"),
        ("cellcli <<EOF", "`<' is not understood"),
        ("hostname &", "`&' is not understood"),
        ("echo $HOME", "`$' is not understood"),
        ('echo "$(id)"', "`$' is not understood"),
        ("echo `id`", "``' is not understood"),
        ("(hostname)", "`(' is not understood"),
        ("| hostname", "syntax error near unexpected token `|'"),
        ("hostname ||", "syntax error near unexpected token"),
        ("hostname && ; date", "syntax error near unexpected token `;'"),
        ("echo 'open", "unexpected EOF"),
        ("awk 1", "awk: command not found"),
        ("echo a | grep", "no pattern"),
        ("echo a | grep '['", "grep: "),
        ("cat /etc/passwd", "No such file or directory"),
        ("echo a | head -n x", "not a number of lines"),
        ("echo a | sort -t, -k2", "option -t is not understood"),
        ("echo a | sort -k 0", "not a field number"),
    ],
)
def test_what_is_not_there_is_refused_by_name(asked: Cell, line: str, errors: str):
    said = shell(asked, line)
    assert errors in said.errors
    assert said.code in (2, 127)


def test_any_line_is_answered_and_nothing_ever_breaks(asked: Cell):
    dice = fresh_dice()
    pieces = [
        *("cellcli", "-e", "list cell", "|", "||", "&&", ";", "\n", "'", '"', "\\", "$", "$x", "grep", "-c", "sort"),
        *("-k", "2", "head", "-n", "é", "-", "echo", "`", "uniq"),
    ]
    for _ in range(3_000):
        line = dice.choice(["", " "]).join(dice.choices(pieces, k=dice.randint(0, 10)))
        assert shell(asked, line).code in (0, 1, 2, 127)


def test_a_script_is_read_a_command_a_line(asked: Cell):
    script = "\n".join(
        [
            "-- a comment",
            "REM another -",
            "",
            "set echo on",
            "list cell;",
            "list griddisk attributes name -",
            "  where name = RECO_CD_00_cell01",
            "quit",
            "list cell",
        ]
    )
    said = cellcli(asked, ["-n", "-x"], script)
    assert said == ("\t cell01\t online\n\n\t RECO_CD_00_cell01\n\n\nquitting\n\n", "", 0)


def test_prompt_banner_and_the_rest_of_a_command():
    talk = Conversation(cell(), parse_options([]))
    assert talk.begin().startswith("CellCLI: modelled by dbdyno")
    assert talk.prompt == "CellCLI> "
    assert talk.answer("list cell -") == ""
    assert talk.prompt == "> "
    assert talk.answer("detail").startswith("\t name:")
    assert talk.answer("exit") == "\nquitting\n\n"
    assert talk.ended
    quiet = Conversation(cell(), parse_options(["-n", "-x"]))
    assert quiet.begin() == quiet.prompt == ""


def test_the_options_of_cellcli(asked: Cell):
    assert cellcli(asked, ["-xml", "-e", "list", "cell"]).output.startswith("<?xml")
    assert cellcli(asked, ["--xml", "-vvv", "-e", "list cell"]).output.startswith("<?xml")
    assert cellcli(asked, ["-e"]).output == "\nCELL-01504: Invalid command syntax.\n"
    refused = cellcli(asked, ["-m", "-e", "drop flashcache"])
    assert (refused.code, "monitor mode" in refused.output) == (1, True)
    assert cellcli(asked, ["-m", "-e", "list cell"]).code == 0
    for text in ("@file.scl", "start file", "SPOOL out.txt"):
        assert "no files" in cellcli(asked, ["-e", text]).output
    assert cellcli(asked, ["--json", "-e", "list cell"]).code == 1


def test_the_last_refusal_is_the_exit_code_of_a_script(asked: Cell):
    assert cellcli(asked, ["-n", "-x"], "list cell\nlist nothing\n").code == 1
    assert cellcli(asked, ["-n", "-x"], "list nothing\nlist cell\n").code == 0


@contextlib.asynccontextmanager
async def session(where: RackAccess, command: str | None, term: str | None = None):
    """Open a session on the first cell, as `ssh` does."""
    import asyncssh

    async with asyncssh.connect(
        where.listen,
        where.ports[0],
        username="celladmin",
        config=None,
        agent_path=None,
        client_keys=[str(where.key)],
        known_hosts=str(where.known_hosts),
    ) as connection:
        yield await connection.create_process(command, term_type=term, stderr=asyncssh.STDOUT)


async def piped(where: RackAccess, command: str | None, text: str) -> str:
    """Pipe a text to a session; return its answer with its exit code."""
    async with session(where, command) as process:
        process.stdin.write(text)
        process.stdin.write_eof()
        done = await asyncio.wait_for(process.wait(), 120)
        return f"{done.stdout}[{done.exit_status}]"


async def typed(where: RackAccess, keys: list[tuple[str, str]]) -> str:
    """Type keys into a terminal, each time waiting for the text listed beside them; return everything shown."""
    shown = ""
    async with session(where, None, "xterm") as process:
        shown += await process.stdout.readuntil("$ ")
        for text, until in keys:
            process.stdin.write(text)
            shown += await asyncio.wait_for(process.stdout.readuntil(until), 20)
        done = await asyncio.wait_for(process.wait(), 120)
        return f"{shown}{done.stdout}[{done.exit_status}]"


def test_a_terminal_has_prompts_echo_editing_and_an_end(tmp_path: Path):
    with serving([cell()], tmp_path) as where:
        shown = asyncio.run(
            typed(
                where,
                [
                    ("hostname\r", "~]$ "),
                    ("cellcli\r", "CellCLI> "),
                    ("list celll\x7f\r", "CellCLI> "),
                    ("list griddisk -\r", "> "),
                    ("where name", "name"),
                    ("\x03", "CellCLI> "),
                    ("list flashlog\r", "CellCLI> "),
                    ("\x04", "~]$ "),
                    ("list\x03", "~]$ "),
                    ("exit\r", "\n"),
                ],
            )
        )
    assert "[celladmin@cell01 ~]$ hostname\r\ncell01\r\n" in shown
    assert "\t cell01\t online\r\n" in shown
    assert "^C\r\nCellCLI> " in shown
    # What Ctrl-C gave up is gone, and Ctrl-D ends CellCLI and not the session.
    assert "CELL-01504" not in shown
    assert "\t cell01_FLASHLOG\t normal\r\n" in shown
    assert "\r\nquitting\r\n" in shown
    assert "command not found" not in shown
    assert shown.endswith("[0]")


def test_cellcli_talks_over_a_plain_connection(tmp_path: Path):
    with serving([cell()], tmp_path) as where:
        shown = asyncio.run(piped(where, "cellcli -n -x", "list cell\nlist nothing\n"))
        script = "hostname\ncellcli -n -x\nlist cell\nexit\nwhoami\n"
        plain = asyncio.run(piped(where, None, script))
    error = "\nCELL-01504: Invalid command syntax.\n"
    assert shown == f"\t cell01\t online\n\n{error}\n\nquitting\n\n[1]"
    assert plain == "cell01\n\t cell01\t online\n\n\nquitting\n\ncelladmin\n[0]"


def test_the_shell_of_dbdyno_cells_run_reaches_it(tmp_path: Path):
    with serving([cell()], tmp_path) as where:
        (found,) = run_everywhere(
            hosts_of([where.hosts], user="root"),
            access(where),
            "cellcli -e list cell | grep -c online && whoami",
        )
    assert (found.output, found.code) == ("1\nroot\n", 0)


def test_ssh_knows_the_cells_by_their_names(tmp_path: Path):
    import asyncssh

    made = rack()
    folder = tmp_path / "with a blank"
    folder.mkdir()

    async def name_of(where: RackAccess, host: str) -> str:
        async with asyncssh.connect(host, config=[str(where.config)], agent_path=None) as connection:
            done = await connection.run("hostname; whoami")
            assert isinstance(done.stdout, str)
            return done.stdout

    with serving([Cell(made, number) for number in range(3)], folder) as where:
        for name in ("cell03", "cell01"):
            assert asyncio.run(name_of(where, name)) == f"{name}\ncelladmin\n"
