"""The plan of the guide's second experiment is the one that `plan new` writes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from dbdyno.study.plan_new import example_plan

GUIDE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text()


def fenced(language: str, heading: str) -> list[str]:
    """The blocks of a language in a part of the guide."""
    part = GUIDE.split(f"\n## {heading}")[1].split("\n## ")[0]
    found = re.findall(r"^```(\w*)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    return [body for name, body in found if name == language]


def shown_plan() -> dict[str, Any]:
    (block,) = fenced("toml", "2.")
    return tomllib.loads(block)


def test_the_plan_that_the_guide_shows_is_the_one_that_plan_new_writes():
    whole, shown = tomllib.loads(example_plan()), shown_plan()
    assert shown["title"] == whole["title"]
    assert shown["arm"] == whole["arm"]
    assert shown["workload"]["scripts"] == whole["workload"]["scripts"]
