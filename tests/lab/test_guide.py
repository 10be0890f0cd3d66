"""Tests that follow the guide step by step, in an empty folder, on the embedded engine."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.example import example_plan

GUIDE = (Path(__file__).parents[2] / "docs" / "learn" / "guide.md").read_text()
# The same experiment in seconds: a few short blocks, and none before them.
SHORT = {
    "blocks = 16": "blocks = 3",
    "warmup_blocks = 2": "warmup_blocks = 0",
    "overhead_blocks = 2": "overhead_blocks = 0",
    "# turn =": 'turn = "200ms"',
    'slice = "250ms"': 'slice = "100ms"',
}


def fenced(language: str, heading: str) -> list[str]:
    """Return the code blocks of a language in a part of the guide."""
    part = GUIDE.split(f"\n## {heading}")[1].split("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    return [body for name, body in found if name == language]


def commands(heading: str) -> list[list[str]]:
    """Return the arguments of each `dbdyno` command; a continued command is indented on the next line."""
    lines = [line for block in fenced("sh", heading) for line in re.sub(r"\n +", " ", block).splitlines()]
    return [shlex.split(line)[1:] for line in lines]


def done(folder: Path, words: list[str], codes: tuple[int, ...] = (0,)) -> str:
    """Run a command and return its output; it must end with one of these exit codes."""
    ended = dbdyno(*words, cwd=folder, COLUMNS="100", NO_COLOR="1")
    assert ended.returncode in codes, f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def shortened(plan: str) -> str:
    for old, new in SHORT.items():
        assert plan.count(f"\n{old}\n") == 1, old
        plan = plan.replace(f"\n{old}\n", f"\n{new}\n")
    return plan


def with_script(plan: str, sql: str) -> str:
    return re.sub(r"(text = ''').*?(''')", lambda found: found[1] + sql + found[2], plan, flags=re.DOTALL)


def plain(text: str) -> str:
    """Return the text without line breaks and without what differs between engines."""
    return " ".join(re.sub(r"dbdyno-\w+/s\s+port=\d+", "ENGINE", text).split())


def shown_plan() -> JsonObject:
    (block,) = fenced("toml", "2.")
    return tomllib.loads(block)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder after parts 2 and 3 of the guide, up to the first verdict."""
    folder = tmp_path_factory.mktemp("guide")
    new, check = commands("2.")
    done(folder, new)
    plan = folder / "plan.toml"
    assert plan.read_text() == example_plan()
    (folder / "check.txt").write_text(done(folder, check))
    plan.write_text(shortened(plan.read_text()))
    (folder / "run.txt").write_text(done(folder, commands("3.")[0]))
    return folder


def test_the_plan_that_the_guide_shows_is_the_one_that_plan_new_writes():
    whole, shown = tomllib.loads(example_plan()), shown_plan()
    assert shown["title"] == whole["title"]
    assert shown["arm"] == whole["arm"]
    assert shown["workload"]["scripts"] == whole["workload"]["scripts"]


def test_plan_check_prints_what_the_guide_shows(desk: Path):
    """Regression: the guide showed the times of another plan."""
    (shown,) = fenced("", "2.")
    printed = plain((desk / "check.txt").read_text())
    for piece in shown.split("\n...\n"):
        assert plain(piece) in printed


def test_the_first_run_has_the_verdict_and_the_tables_that_the_guide_shows(desk: Path):
    printed = (desk / "run.txt").read_text()
    shown = fenced("", "3.")[0]
    assert printed.splitlines()[0] == shown.splitlines()[0]
    for line in ("64MB against base", "base (baseline)", "work_mem = 1MB", "work_mem = 64MB"):
        assert line in shown
        assert line in printed
    parts = ("Why", "The arms", "Metrics")
    for text in (shown, printed):
        assert [line for line in text.splitlines() if line in parts] == list(parts)
        assert "arm operations errors per second mean p50 p99 p99.9" in plain(text)


def test_the_commands_that_look_closer_do_what_the_guide_says(desk: Path, html_page: None):
    """`compare` may end with 1, which means that an arm is slower."""
    for words in commands("4."):
        printed = done(desk, words, (0, 1) if words[0] == "compare" else (0,))
        if words[0] == "sql":
            assert printed.split("\n")[0].split() == fenced("", "4.")[0].split("\n")[0].split()
    assert (desk / "verdict.html").stat().st_size > 10_000
    assert {path.suffix for path in (desk / "figures").rglob("*.*")} >= {".png", ".svg"}


@pytest.mark.soak
def test_the_second_experiment_of_the_guide_runs(tmp_path: Path):
    """Regression: it queried a column that its table does not have."""
    (sql,) = fenced("sql", "3.")
    (tmp_path / "plan.toml").write_text(with_script(shortened(example_plan()), sql.strip()))
    printed = done(tmp_path, commands("3.")[0])
    assert re.search(r"^base \(baseline\) +[\d,]+ +0 ", printed, re.MULTILINE), printed
