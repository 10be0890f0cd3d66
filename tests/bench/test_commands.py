"""Commands of this host as a workload: how they are written, started, timed, and ended."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.bench.programs.bench import ProgramBench
from dbdyno.bench.programs.command_line import words_of
from dbdyno.study.plan.file import parse_plan
from waiting import until

PLAN = """\
title = "commands"
[workload]
command = '''%s'''
%s
[schedule]
blocks = %d
warmup_blocks = 1
turn = "100ms"
slice = "50ms"
settle = "0ms"
%s
"""
TWO = '[[factor]]\nvariables.n = ["0.001", "0.02"]\n'


def ran(
    folder: Path, command: str, factors: str = TWO, *, work: str = "", blocks: int = 4, words: tuple[str, ...] = ()
):
    (folder / "p.toml").write_text(PLAN % (command, work, blocks, factors))
    return dbdyno("run", "p.toml", "--seed", "1", *words, cwd=folder)


def test_a_program_is_timed_from_its_start_to_its_end(tmp_path: Path):
    done = ran(tmp_path, "sleep {n}", blocks=2)
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(
        dbdyno(
            "sql",
            "select arm, min(elapsed_ns) as least from calls where error is null group by all order by arm",
            "--format",
            "json",
            cwd=tmp_path,
        ).stdout
    )
    assert [row["arm"] for row in rows] == ["n 0.001", "n 0.02"]
    assert rows[0]["least"] >= 1_000_000
    assert rows[1]["least"] >= 20_000_000
    assert "starting a program takes" in done.stderr


def test_the_words_of_a_variable_stay_one_word(tmp_path: Path):
    told = tmp_path / "told"
    (tmp_path / "say").write_text(f"IFS='|'\nprintf %s \"$*\" > {told}\n")
    factor = "[[factor]]\nvariables.what = ['a b; touch /nowhere/$(x)', 'c']\n"
    (tmp_path / "p.toml").write_text(PLAN % (f"sh {tmp_path}/say {{what}} '{{{{}}}} q'", "", 2, factor))
    dbdyno("run", "p.toml", "--seed", "1", cwd=tmp_path)
    assert told.read_text() in ("a b; touch /nowhere/$(x)|{} q", "c|{} q")


def test_what_is_run_before_each_is_not_timed(tmp_path: Path):
    ran(tmp_path, "true {n}", work='prepare = "sleep 0.05"', blocks=2)
    rows = json.loads(
        dbdyno("sql", "select min(elapsed_ns) as least from calls", "--format", "json", cwd=tmp_path).stdout
    )
    assert rows[0]["least"] < 50_000_000


def test_several_run_at_a_time(tmp_path: Path):
    done = ran(tmp_path, "sleep 0.02", "[[factor]]\nsessions = [1, 4]\n")
    assert done.returncode in (0, 1), done.stderr
    model = json.loads(dbdyno("compare", "last", "--format", "json", cwd=tmp_path).stdout)
    one, four = (arm["throughput_per_s"] for arm in model["arms"])
    assert four > 2 * one


def test_a_program_that_fails_is_an_error_with_its_last_words(tmp_path: Path):
    done = ran(tmp_path, "ls /nowhere-{n}")
    assert done.returncode == 2
    assert "/nowhere-" in done.stderr
    assert "exit 2" in done.stderr
    assert "next: run the command manually to see the error, then correct the plan" in done.stderr, (
        "it spoke of a script"
    )


def test_a_program_that_hangs_is_ended_by_the_time_out(tmp_path: Path):
    began = time.monotonic()
    done = ran(
        tmp_path, "sleep 60", work='[load]\nstatement_timeout = "200ms"', factors='[[arm]]\nname = "a"\n', blocks=2
    )
    assert done.returncode == 2
    assert "a time-out" in done.stderr
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("command", "work", "factors", "said"),
    [
        ("nowhere-to-be-found {n}", "", TWO, "there is no program 'nowhere-to-be-found'"),
        ("sleep {m}", "", TWO, "{m} is not a variable"),
        ("sleep 'x", "", TWO, "cannot be split into words"),
        ("  ", "", TWO, "the command is empty"),
        ("sleep {n}", 'builtin = "select-only"', TWO, "give builtin or command, not both"),
        ("sleep 1", "", '[[factor]]\nwork_mem = ["1MB", "2MB"]\n', "an arm sets settings"),
        ("sleep 1", "", "[[factor]]\nrate_per_s = [1, 2]\n", "it sets a rate"),
        ("sleep {n}", '[target]\ndsn = "postgresql://db1/app"', TWO, "a command runs on this host"),
    ],
)
def test_what_cannot_be_run_is_refused_with_its_reason(
    tmp_path: Path, command: str, work: str, factors: str, said: str
):
    done = ran(tmp_path, command, factors, work=work)
    assert done.returncode == 2
    assert said in done.stderr


def test_prepare_alone_is_no_workload(tmp_path: Path):
    with pytest.raises(PlanError, match="prepare runs before a command"):
        parse_plan('title = "t"\n[workload]\nprepare = "true"\n[[arm]]\nname = "a"\n', tmp_path / "p.toml")


def test_a_plan_that_is_looked_at_runs_nothing(tmp_path: Path):
    (tmp_path / "p.toml").write_text(PLAN % (f"touch {tmp_path}/made-{{n}}", "", 2, TWO))
    done = dbdyno("plan", "check", "p.toml", cwd=tmp_path)
    assert f"touch {tmp_path}/made-0.001" in done.stdout
    assert not list(tmp_path.glob("made-*"))
    assert "made" in dbdyno("run", "p.toml", "--dry-run", cwd=tmp_path).stdout


def test_a_signal_ends_the_programs_and_what_they_started(tmp_path: Path):
    child = tmp_path / "child.py"
    child.write_text(
        f"import os, subprocess, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        "subprocess.run(['sleep', '60'])\n"
    )
    (tmp_path / "p.toml").write_text(PLAN % (f"{sys.executable} {child}", "", 2, '[[arm]]\nname = "a"\n'))
    running = subprocess.Popen(
        [sys.executable, "-m", "dbdyno", "run", "p.toml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 60)
    pid = int((tmp_path / "pid").read_text())
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert not alive(pid)


def alive(group: int) -> list[str]:
    """Return the living processes of a group; zombies are left out."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, own = stat.read_text().rpartition(")")[2].split()[:3]
            found += [str(stat)] if int(own) == group and state != "Z" else []
    return found


def test_braces_are_doubled_and_a_path_is_taken_as_it_is():
    assert words_of("/bin/echo {{x}} {y}", {"y": "1 2"}, "here") == ["/bin/echo", "{x}", "1 2"]


def test_a_run_from_elsewhere_shows_the_program_that_a_variable_holds(tmp_path: Path):
    made = parse_plan(
        'title = "t"\n[workload]\ncommand = "{x} -a"\nprepare = "sync"\n[[factor]]\nvariables.x = ["ls", "rm -r y"]\n',
        tmp_path / "p.toml",
    )
    assert ProgramBench.side_effects(made, None) == [
        "runs on this host: sync",
        "runs on this host: ls -a",
        "runs on this host: 'rm -r y' -a",
    ]


def test_no_password_of_a_command_is_in_anything_that_was_written(tmp_path: Path):
    levels = ", ".join(f"{{name = '{x}', variables = {{password = 'S3cr3t{x}'}}}}" for x in "AB")
    factor = f"[[factor]]\nname = 'login'\nlevels = [{levels}]\n"
    done = ran(tmp_path, "true --password=S3cr3tC {password}", factor, blocks=2)
    assert done.returncode in (0, 1), done.stderr
    for path in (tmp_path / "runs").rglob("*"):
        if path.is_file():
            assert b"S3cr3t" not in path.read_bytes(), path
