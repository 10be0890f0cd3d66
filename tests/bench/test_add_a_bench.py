"""A new kind of bench is one folder and one row: the example in docs/how-to/add-a-bench.md runs a complete study."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dbdyno.bench import kinds
from dbdyno.cli.main import cli

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "add-a-bench.md"
CODE, ROW = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
PLAN = """\
title = "sums"
target = "python:"
[workload]
scripts = [{name = "sum", text = "sum(range(2000))"}]
[schedule]
blocks = 8
warmup_blocks = 1
turn = "20ms"
slice = "5ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "short"
[[arm]]
name = "long"
scripts = [{name = "sum", text = "sum(range(8000))"}]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a plan and the new kind of bench, which is on the import path."""
    (tmp_path / "expression_bench.py").write_text(CODE)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    row = eval(ROW, {"Kind": kinds.Kind})
    monkeypatch.setitem(kinds.KINDS, row.name, row)
    return tmp_path


def dbdyno(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def the_run(place: Path) -> Path:
    (run,) = (place / "runs").iterdir()
    return run


def test_the_code_of_the_page_is_a_bench_in_less_than_60_lines():
    assert len(CODE.splitlines()) < 60


def test_a_study_on_a_new_kind_of_bench_is_run_judged_and_reported(place: Path):
    done = dbdyno("run", "plan.toml", "--seed", "4")
    # A machine that others use may change under a run of half a second, and the verdict is withheld for that.
    assert "SLOWER  long" in done.output or "drifted" in done.output, done.output
    assert "mean latency  " in done.output
    manifest = json.loads((the_run(place) / "manifest.json").read_text())
    assert (manifest["bench"], manifest["status"], manifest["switch"]) == ("expression", "complete", "slices")
    assert "sums" in dbdyno("report", "last", "--format", "text").output
    assert "sums" in (the_run(place) / "report.html").read_text()
    assert "8" in dbdyno("sql", "select count(distinct block) - 1 from calls").output


def test_a_cut_run_on_it_is_resumed(place: Path):
    dbdyno("run", "plan.toml", "--seed", "4")
    run = the_run(place)
    (run / "blocks" / "b000005.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text()) | {"status": "aborted"}
    (run / "manifest.json").write_text(json.dumps(manifest))
    dbdyno("run", "--resume", "last")
    manifest = json.loads((run / "manifest.json").read_text())
    assert (manifest["status"], manifest["resumed"]) == ("complete", [8])
    assert len(list((run / "blocks").iterdir())) == 9


def test_what_it_would_do_is_told_and_nothing_is_run(place: Path):
    assert "nothing was run" in dbdyno("run", "plan.toml", "--dry-run").output
    assert not (place / "runs").exists()
