"""Studies that run programs on this host, and the files that these programs need."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.processes import find_program
from dbdyno.bench.programs.bench import ProgramBench
from dbdyno.bench.programs.generated_files import makers
from dbdyno.bench.programs.processors import Processors
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.library import find_study
from dbdyno.study.plan.factors import doubling_numbers
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.plan import plan_from_dict
from dbdyno.study.run.execute import start

PLAN = """\
title = "files"
[workload]
command = "cat {text}"
files = {%s}
[[factor]]
name = "how"
levels = [{name = "cat"}, {name = "count", command = "wc -c {text}"}]
[schedule]
blocks = 2
warmup_blocks = 0
turn_transactions = 2
"""


def needs(*programs: str) -> None:
    for name in programs:
        if find_program(name) is None:
            pytest.skip(f"{name} is not installed")


def analysis_of(folder: Path) -> JsonObject:
    (run,) = (folder / "runs").iterdir()
    model: JsonObject = json.loads((run / "analysis.json").read_text())
    return model


def test_a_text_is_as_long_as_asked_for_and_always_the_same(tmp_path: Path):
    make = makers({"t": "text 64KiB"})["t"]
    make(tmp_path / "a")
    make(tmp_path / "b")
    text = (tmp_path / "a").read_bytes()
    assert len(text) == 65_536
    assert text == (tmp_path / "b").read_bytes()


def test_a_project_compiles_into_a_folder_of_its_own(tmp_path: Path):
    needs("make", "cc")
    makers({"p": "c-project 2"})["p"](tmp_path / "p")
    done = subprocess.run(
        ["make", "-s", "-C", tmp_path / "p", "OUT=out7", "-j2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "p" / "out7" / "program"], capture_output=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "what", ["text", "text 0KiB", "text 5", "c-project 0", "c-project x", "iso 5MiB", "text 99999GiB"]
)
def test_what_cannot_be_made_is_refused(what: str):
    with pytest.raises(PlanError) as error:
        makers({"f": what})
    assert "files, f" in str(error.value.where)


def test_files_are_there_while_commands_run_and_gone_after_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "made"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "p.toml").write_text(PLAN % 'text = "text 4KiB"')
    done = dbdyno("run", "p.toml", "--seed", "1", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert [path.name for path in place.iterdir() if path.name.startswith("dbdyno-files-")] == []
    model = analysis_of(tmp_path)
    assert [arm["errors"] for arm in model["arms"]] == [0, 0]
    assert [arm["description"] for arm in model["arms"]] == ["cat <text>", "wc -c <text>"]
    assert all(row["user_ns"] + row["system_ns"] > 0 for row in model["resources"])


def test_a_plan_with_files_is_shown_whole_before_it_is_run_for_somebody_else():
    plan = parse_plan(PLAN % 'text = "text 4KiB"', Path("p.toml"))
    assert plan_from_dict(plan.to_dict()) == plan
    assert ProgramBench.side_effects(plan, None) == [
        "generates files: text (text 4KiB)",
        "runs on this host: cat '<text>'",
        "runs on this host: wc -c '<text>'",
    ]


def test_files_without_a_command_and_a_command_of_an_arm_alone_are_refused():
    for text, said in (
        (
            '[workload]\nfiles = {a = "text 1KiB"}\nscripts = [{text = "select 1;"}]\n[[arm]]\nname = "a"\n',
            "for a command",
        ),
        ('[workload]\nscripts = [{text = "select 1;"}]\n[[arm]]\nname = "a"\ncommand = "ls"\n', "workload has none"),
    ):
        with pytest.raises(PlanError) as error:
            parse_plan('title = "x"\n' + text, Path("p.toml"))
        assert said in error.value.message


def test_threads_compresses_the_same_file_with_each_number_of_threads(tmp_path: Path):
    needs("xz")
    words = ("--set", "programs=xz", "--set", "size=2KiB", "--set", "threads=1,2", "--quick")
    done = dbdyno("run", "threads", *words, "--blocks", "2", "--seed", "1", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    model = analysis_of(tmp_path)
    assert model["factors"]["names"] == ["program", "threads"]
    (curve,) = (own for own in model["factors"]["curves"] if own["factor"] == "threads")
    assert [row["level"] for row in curve["levels"]] == ["1", "2"]
    assert any(sentence.startswith("CPU of a transaction") for sentence in model["verdict"]["sentences"])


def test_builds_runs_jobs_and_builds_beside_each_other(tmp_path: Path):
    needs("make", "cc")
    words = ("--set", "sources=1", "--set", "jobs=1", "--set", "builds=1,2", "--quick")
    done = dbdyno("run", "builds", *words, "--seed", "1", cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    model = analysis_of(tmp_path)
    assert [arm["sessions"] for arm in model["arms"]] == [1, 2]
    assert [arm["errors"] for arm in model["arms"]] == [0, 0], "builds beside each other are in each other's way"
    few = [gate for gate in model["gates"] if gate["code"] == "operations"]
    assert [gate["ok"] for gate in few] == [True, True], "a whole build is an operation: a turn counts them"


def test_no_build_stands_idle_in_a_turn():
    for builds in ("1", "1,2,8"):
        plan = find_study("builds").plan({"builds": builds})
        assert plan.schedule.turn_transactions >= max(arm.sessions or 1 for arm in plan.arms)


def test_a_program_that_is_none_of_the_study_and_a_target_that_runs_no_commands_are_refused(tmp_path: Path):
    done = dbdyno("run", "threads", "--set", "programs=tar", cwd=tmp_path)
    assert done.returncode == 2 and "'tar' is not a program of this study" in done.stderr
    done = dbdyno("run", "threads", "--target", "postgres", cwd=tmp_path)
    assert done.returncode == 2 and "runs commands on this host" in done.stderr


def test_quick_full_and_what_is_set_by_hand():
    study = find_study("builds")
    quick, usual, full = (study.plan({}, **how) for how in ({"quick": True}, {}, {"full": True}))
    assert [plan.workload.files["source"] for plan in (quick, usual, full)] == [
        "c-project 2",
        "c-project 4",
        "c-project 16",
    ]
    assert quick.schedule.blocks < usual.schedule.blocks == full.schedule.blocks / 3
    assert study.plan({"sources": "5"}, full=True).workload.files["source"] == "c-project 5"
    assert doubling_numbers(5) == "1,2,4,5"


def test_quick_and_full_together_are_refused():
    done = dbdyno("run", "threads", "--quick", "--full")
    assert done.returncode == 2 and "exclude each other" in done.stderr


def test_what_others_use_of_the_processors_is_counted_apart_from_our_own(tmp_path: Path):
    """A process of its own at work counts, and work of this process and of children that it waited for does not."""
    before = Processors.read()
    assert before is not None
    later = replace(before, busy_ns=before.busy_ns + 3 * 10**9, own_ns=before.own_ns + 10**9)
    later = replace(later, at_ns=before.at_ns + 2 * 10**9, count=2)
    assert replace(before, count=2).others_share(later) == {"others_share": 0.5, "processors": 2}
    assert Processors.read(tmp_path / "none") is None
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    after = Processors.read()
    assert after is not None and after.own_ns > before.own_ns and after.busy_ns >= before.busy_ns


def test_a_curve_on_a_busy_machine_says_first_that_it_was_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It said "xz: 1 thread reaches 100 % of the best, more brings no difference" at load 20 on two cores."""
    monkeypatch.setattr(Processors, "others_share", lambda own, later: {"others_share": 0.9, "processors": 2})
    model = judged(tmp_path)
    said = "Other programs used 90 % of the 2 processors during the run: on an idle machine the answer may differ."
    assert model["verdict"]["sentences"][0].startswith(said)
    (gate,) = [gate for gate in model["gates"] if gate["code"] == "processors"]
    assert gate["ok"] is False and gate["effect"] == "warns"
    for cause in (cause for one in model["why"] for cause in one["causes"]):
        assert "server" not in cause["sentence"] and "samples" not in " ".join(cause["evidence"])


def judged(folder: Path) -> JsonObject:
    text = """title = "sleeps"
[workload]
command = "sleep {long}"
[schedule]
blocks = 4
warmup_blocks = 0
turn_transactions = 2
settle = "0s"
[[arm]]
name = "short"
variables = {long = "0.005"}
[[arm]]
name = "long"
variables = {long = "0.02"}
"""
    return analyse(start(parse_plan(text, folder / "plan.toml"), folder, seed=1))
