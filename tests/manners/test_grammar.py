"""One grammar for all commands: one name for each thing, and help that is understood in one reading."""

from __future__ import annotations

import re

import click
import engines
import options
import pytest

from command_line import dbdyno
from dbdyno.cli.main import FORMER_OPTIONS, current_names

ALL = list(options.options())
KNOWN = {
    "a server": (
        "--target",
        re.compile(r"postgresql://user@|mariadb://user@|connection string of the (engine|server)"),
    ),
    "a file to write": ("--output", re.compile(r"[Ww]rite to this file")),
    "how long": ("--for", re.compile(r"[Ss]top after this time")),
    "an output format": ("--format", re.compile(r"^(Output format|Form of the)")),
    "a dry run": ("--dry-run", re.compile(r"[Ss]how what would happen|Show the plan; read no row")),
    "a confirmation": ("--yes", re.compile(r"without asking")),
}
"""Name that an option must have for each meaning, which is recognised by the option's help."""
ELSEWHERE = {"--map", "--prove"}


@pytest.mark.parametrize("meaning", KNOWN)
def test_an_option_with_a_known_meaning_bears_the_known_name(meaning: str) -> None:
    name, pattern = KNOWN[meaning]
    found = [(words, option) for words, option in ALL if pattern.search(option.help or "")]
    assert found
    others = {f"{words} {option.opts}" for words, option in found if name not in option.opts}
    assert {one for one in others if not any(free in one for free in ELSEWHERE)} == set()


def test_no_option_has_a_former_name() -> None:
    meanings = {"--to": "TIME", "--machine": "FILE"}
    for words, option in ALL:
        assert not set(option.opts) & (FORMER_OPTIONS.keys() - meanings.keys() - {"--out"}), f"{words} {option.opts}"
        for name, metavar in meanings.items():
            assert name not in option.opts or option.metavar == metavar, f"{words}: {name} has one meaning"


def test_every_option_that_writes_a_file_has_both_names() -> None:
    for words, option in ALL:
        if "-o" in option.opts:
            assert "--output" in option.opts, words


def test_the_page_of_options_is_made_of_the_commands() -> None:
    assert options.PAGE.read_text() == options.page(), "python tests/manners/options.py writes it"


def test_former_names_work_for_one_version() -> None:
    command = click.Command("x", params=[click.Option(["--target"]), click.Option(["--from"]), click.Option(["--to"])])
    assert current_names(command, ["--dsn", "a", "--since=1d", "--until", "2d", "--", "--dsn"]) == [
        *("--target", "a", "--from=1d", "--to", "2d", "--", "--dsn")
    ]
    results = click.Command("x", params=[click.Option(["--ran-on"])])
    assert current_names(results, ["--machine", "old-box"]) == ["--ran-on", "old-box"]
    assert "is not the address of a server" in dbdyno("trace", "proxy", "--to", "db:x").stderr
    assert "does not exist" in dbdyno("move", "nowhere/", "--to", "postgresql://me@127.0.0.1:1/db").stderr


def test_out_names_the_file_of_a_command_that_makes_no_run() -> None:
    file, run = click.Option(["-o", "--output"]), click.Option(["--out"])
    assert current_names(click.Command("replay", params=[file]), ["--out=x.json"]) == ["--output=x.json"]
    assert current_names(click.Command("record", params=[file, run]), ["--out", "x"]) == ["--out", "x"]
    assert current_names(click.Group("runs", params=[file]), ["import", "x", "--out", "y"])[-2] == "--out"
    refused = dbdyno("trace", "replay", "nowhere", "--target", "postgresql://me@127.0.0.1:1/db", "--out", "x.json")
    assert "No such option" not in refused.stderr


def test_json_is_short_for_the_format() -> None:
    assert (
        dbdyno("model", "check", "exadata-x2", "--json").stdout
        == dbdyno(*("model", "check", "exadata-x2", "--format", "json")).stdout
    )


def test_the_page_of_engines_is_made_of_the_code() -> None:
    assert engines.PAGE.read_text() == engines.page(), "python tests/manners/engines.py writes it"
