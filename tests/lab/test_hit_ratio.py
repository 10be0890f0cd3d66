"""Tests of the study hit-ratio: from the counters of pg_stat_statements to a verdict per statement."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres import statements
from dbdyno.study.plan.plan import Plan
from dbdyno.study.plan.study import Study
from skipped import skipped_on


@pytest.fixture(scope="module")
def extension() -> None:
    with skipped_on(TargetError):
        statements.preload_setting()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the study's turns to a sixth, because a load costs as much processor time as it lasts."""
    own = Study.plan

    def shorter(study: Study, *given: Any, **options: Any) -> Plan:
        plan = own(study, *given, **options)
        return replace(plan, schedule=replace(plan.schedule, turn_ns=350_000_000))

    monkeypatch.setattr(Study, "plan", shorter)


def test_the_study_runs_to_a_verdict_over_statements(lab, extension, short_turns, html_page):
    lab("run", "hit-ratio", "--quick", "--set", "shared_buffers=8MB", "--blocks", "2")
    (run,) = (lab.folder / "runs").iterdir()
    model = json.loads((run / "analysis.json").read_text())
    found = model["correlation"]
    assert {row["property"] for row in found["rows"]} >= {"hit_ratio", "blocks", "rows"}
    assert all(-1 <= row["spearman"] <= 1 for row in found["rows"])
    assert sum("dbdyno.hit_" in s["text"] for s in found["statements"]) >= 20
    assert not [s for s in found["statements"] if "pg_stat_" in s["text"]]
    assert model["verdict"]["decision"] in ("found", "not found")
    assert any("independent" in s for s in model["verdict"]["sentences"])
    assert (run / "report.html").read_text().count('id="correlation"') == 1


@pytest.mark.soak
def test_calls_and_time_are_those_of_the_blocks_that_count(lab, extension):
    """The engine counts as many calls per statement as our own evidence has."""
    lab("run", "hit-ratio", "--quick", "--blocks", "2")
    run = max((lab.folder / "runs").iterdir())
    model = json.loads((run / "analysis.json").read_text())
    lookups = sum(
        s["calls"] for s in model["correlation"]["statements"] if s["text"].startswith("select amount from dbdyno.hit_")
    )
    with duckdb.connect() as reader:
        (ours,) = reader.execute(
            "select count(*) from read_parquet(?) where statement like 'key lookup%'"
            " and block in (select unnest(?::int[]))",
            [str(run / "calls" / "*.parquet"), _measured(run)],
        ).fetchone()
    assert lookups == ours


def _measured(run):
    records = [json.loads(file.read_text()) for file in (run / "blocks").glob("*.json")]
    return [record["index"] for record in records if record["kind"] == "measure"]


def test_a_server_without_the_extension_is_told_what_to_do(lab, dsn):
    done = lab("run", "hit-ratio", "--target", dsn, code=2)
    assert "pg_stat_statements" in done.stderr
    assert "next: " in done.stderr


def test_an_unknown_workload_names_the_two(lab):
    done = lab("run", "hit-ratio", "--set", "workload=tpcc", code=2)
    assert "mix" in done.stderr
    assert "watch" in done.stderr
