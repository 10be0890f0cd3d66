"""A new study is one file: the example in docs/how-to/add-a-study.md is listed and runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from command_line import dbdyno
from dbdyno.evidence.run import find_run
from dbdyno.study.library import STUDIES
from dbdyno.study.plan.plan import Plan
from dbdyno.study.plan.study import Study

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-study.md"
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the example study to the library, and change to an empty folder."""
    module: dict[str, object] = {"__name__": "commit_wait"}
    exec(compile(CODE, str(PAGE), "exec"), module)
    monkeypatch.setitem(STUDIES, "commit-wait", module["STUDY"])  # type: ignore[misc]
    monkeypatch.chdir(tmp_path)


def test_it_is_listed_with_its_factor():
    assert "commit-wait" in dbdyno("studies").stdout
    shown = dbdyno("studies", "commit-wait").stdout
    assert "synchronous_commit" in shown and "on,off" in shown


def test_it_runs_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In few short turns: a load costs as much processor time as it lasts."""
    own = Study.plan

    def shorter(study: Study, *given: Any, **options: Any) -> Plan:
        plan = own(study, *given, **options)
        schedule = replace(plan.schedule, turn_ns=200_000_000, warmup_blocks=1)
        return replace(plan, schedule=schedule, watch=replace(plan.watch, overhead_blocks=0))

    monkeypatch.setattr(Study, "plan", shorter)
    done = dbdyno("run", "commit-wait", "--quick", "--blocks", "2", "--seed", "1")
    assert done.returncode in (0, 1), done.stderr
    manifest = find_run("last", tmp_path / "runs").manifest
    assert (manifest.study, manifest.status) == ("commit-wait", "complete")
    assert [arm["name"] for arm in manifest.arms] == ["synchronous_commit on", "synchronous_commit off"]


def test_a_value_of_its_factor_that_the_server_refuses_is_told_before_anything_runs(tmp_path: Path):
    done = dbdyno("run", "commit-wait", "--set", "synchronous_commit=on,sometimes")
    assert done.returncode == 2 and "sometimes" in done.stderr
    assert not (tmp_path / "runs").exists()
