"""Behaviour of the command line that all commands share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from command_line import dbdyno, succeeded, to_a_closed_pipe
from dbdyno.cli.main import COMMANDS


def test_help_answers_in_under_200_ms():
    """Processor time, the best of five: what the machine can do, not what else it did."""
    times = []
    for _ in range(5):
        started = os.times()
        subprocess.run([sys.executable, "-m", "dbdyno", "--help"], capture_output=True, check=True)
        ended = os.times()
        times.append(sum(ended[2:4]) - sum(started[2:4]))  # of ended children: user and system
    assert 0 < min(times) < 0.2


@pytest.mark.parametrize("words", [["--help"], ["trace", "profile", "--help"]])
def test_help_imports_nothing_heavy(words: list[str]):
    code = (
        "import sys\nfrom dbdyno.cli.main import cli\n"
        f"try:\n    cli.main({words})\nexcept SystemExit:\n    pass\n"
        "heavy = {'scipy', 'numpy', 'duckdb', 'altair', 'psycopg', 'rich', 'jinja2'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert "HEAVY []" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str):
    done = succeeded(command, "--help")
    assert done.stdout.startswith("Usage: ")


def test_the_list_of_commands_is_what_there_is():
    for name, meaning in COMMANDS.items():
        assert meaning.endswith(".")
        assert find_spec(f"dbdyno.cli.{name}") is not None


def test_a_command_in_the_process_of_tests_does_not_decide_how_that_process_ends():
    """A second run of what failed is one process: it ended with the code of its first command, mostly 0."""
    code = "import sys\nfrom command_line import dbdyno\nassert dbdyno('help').returncode == 0\nsys.exit(3)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 3


def test_data_on_stdout_words_on_stderr(tmp_path: Path):
    done = dbdyno("runs", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "dbdyno run redo-size" in done.stderr
    assert json.loads(dbdyno("runs", "--format", "json", cwd=tmp_path).stdout) == []
    assert json.loads(dbdyno("studies", "--format", "json").stdout)[0]["study"] == "redo-size"


def test_a_closed_pipe_ends_quietly():
    done = to_a_closed_pipe("studies", "redo-size")
    assert done.stderr == ""
    assert done.stdout.startswith("redo-size")


def test_no_colour_in_a_pipe_or_where_it_is_not_wanted():
    for environment in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}):
        done = dbdyno("studies", **environment)
        assert "\x1b" not in done.stdout


def test_an_error_has_its_next_step_and_no_traceback(tmp_path: Path):
    done = dbdyno("run", "none.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("dbdyno: none.toml: cannot be read")
    assert "next: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in dbdyno("--debug", "run", "none.toml", cwd=tmp_path).stderr


def test_a_misspelt_command_is_answered_with_the_nearest():
    done = dbdyno("rnu")
    assert done.returncode == 2
    assert "'run'" in done.stderr


def test_a_plan_is_not_overwritten(tmp_path: Path):
    assert dbdyno("plan", "new", cwd=tmp_path).returncode == 0
    assert dbdyno("plan", "new", cwd=tmp_path).returncode == 2
    assert dbdyno("plan", "new", "--force", cwd=tmp_path).returncode == 0
    assert dbdyno("plan", "new", "-").stdout == (tmp_path / "plan.toml").read_text()


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl"])
def test_the_suffix_of_o_names_the_format(tmp_path: Path, suffix: str):
    file = tmp_path / f"x.{suffix}"
    assert dbdyno("studies", "-o", str(file)).returncode == 0
    assert "redo-size" in file.read_text()
    assert dbdyno("studies", "-o", str(tmp_path / "x.doc")).returncode == 2


def test_the_python_package_offers_about_thirty_names():
    import dbdyno as package

    assert 25 <= len(package.__all__) <= 35
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError):
        package.nothing  # noqa: B018
