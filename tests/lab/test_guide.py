"""The guide's second experiment, followed to the letter: what it prints is what the commands write.

Only what takes long is cut short: fewer rows, fewer blocks.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from conftest import Lab
from dbdyno.study.plan_new import example_plan

GUIDE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()


def fenced(language: str, heading: str) -> list[str]:
    """The blocks of a language in a part of the guide."""
    part = GUIDE.split(f"\n## {heading}")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```", part, re.MULTILINE | re.DOTALL)


def same(text: str) -> str:
    """Without what differs from server to server, and from line break to line break."""
    return " ".join(re.sub(r"on host=.*?dbname=\S+", "on it", text, flags=re.DOTALL).split())


def shown_plan() -> dict[str, Any]:
    (block,) = fenced("toml", "2.")
    return tomllib.loads(block)


def test_the_plan_that_the_guide_shows_is_the_one_that_plan_new_writes():
    whole, shown = tomllib.loads(example_plan()), shown_plan()
    assert shown["title"] == whole["title"]
    assert shown["arm"] == whole["arm"]
    assert shown["workload"]["scripts"] == whole["workload"]["scripts"]


def test_what_plan_check_says_is_what_the_guide_shows(lab: Lab):
    assert fenced("", "2.")[0].split("\n")[:2] == ["dbdyno plan new", "dbdyno plan check plan.toml"]
    lab("plan", "new")
    said = same(lab("plan", "check", "plan.toml").stdout)
    for piece in fenced("", "2.")[1].split("...\n"):
        assert same(piece) in said


def test_the_second_experiment_of_the_guide_runs(lab: Lab):
    """It named a column that the table of the first does not have."""
    statement = re.search(r"Replace the script's\s+text by\s+`(select [^`]+;)`", GUIDE)
    assert statement is not None
    (script,) = shown_plan()["workload"]["scripts"]
    text = example_plan().replace(script["text"], statement[1])
    for long, short in (("400000", "20000"), ("blocks = 20", "blocks = 2"), ("_blocks = 2\n", "_blocks = 0\n")):
        assert long in text
        text = text.replace(long, short)
    (lab.folder / "plan.toml").write_text(text)
    lab("run", "plan.toml")
    shown = lab("report", "last", "--format", "json").stdout
    assert '"errors": 0' in shown
    for command in ("runs", "compare last", "report last -o verdict.html", "report last --figures figures"):
        assert f"dbdyno {command}" in GUIDE
        lab(*command.split())
    (query,) = re.findall(r'dbdyno sql "(.*?)"', GUIDE, re.DOTALL)
    assert lab("sql", query).stdout.startswith("arm")
