"""A run in a build: exit codes by --fail-on, Markdown for a comment, JUnit for the list of tests."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from command_line import dbdyno
from dbdyno.base.errors import PlanError
from dbdyno.evidence.manifest import Manifest
from dbdyno.evidence.run import find_run
from dbdyno.report.junit import render_junit
from dbdyno.report.markdown import escape_text, render_markdown
from dbdyno.study.analysis.analyse import analyse
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.plan.runs_of_plan import is_same_plan, span_start
from dbdyno.study.plan.typed_workloads import compile_workload
from dbdyno.study.plan.workloads import workload_for_engine
from mock_plans import mock_plan

SLOWER, FASTER, SAME, BROKEN = "mean_us = 1300", "mean_us = 700", "mean_us = 1003", "errors = 0.5"


def plan(other: str, blocks: int = 6) -> str:
    arms = f'[[arm]]\nname = "before"\n[[arm]]\nname = "after"\nparameters = {{{other}}}\n'
    return mock_plan(arms, title="a build", blocks=blocks)


def ran(folder: Path, other: str, *words: str, blocks: int = 6):
    (folder / "p.toml").write_text(plan(other, blocks))
    return dbdyno("run", "p.toml", "--seed", "1", *words, cwd=folder)


@pytest.mark.parametrize(
    ("other", "words", "code"),
    [
        (SLOWER, (), 0),
        (SLOWER, ("--fail-on", "slower"), 1),
        (SLOWER, ("--fail-on", "cannot-tell"), 0),
        (FASTER, ("--fail-on", "slower", "--fail-on", "cannot-tell"), 0),
        (SAME, ("--fail-on", "cannot-tell"), 1),
        (BROKEN, (), 1),
        (BROKEN, ("--fail-on", "gate"), 1),
    ],
)
def test_the_exit_code_is_what_the_build_asked_for(tmp_path: Path, other: str, words: tuple[str, ...], code: int):
    done = ran(tmp_path, other, *words, blocks=5 if other == SAME else 6)
    assert done.returncode == code, done.stdout + done.stderr


def test_why_the_build_fails_is_said_in_one_line(tmp_path: Path):
    assert "--fail-on: slower: after" in ran(tmp_path, SLOWER, "--fail-on", "slower").stderr
    done = ran(tmp_path, "drift = 1.0", "--fail-on", "gate")
    assert done.returncode == 1
    assert "gates failed: " in done.stderr or "NO VERDICT" in done.stdout


def test_a_form_for_programs_has_nothing_beside_it_on_stdout(tmp_path: Path):
    assert json.loads(ran(tmp_path, FASTER, "--format", "json").stdout)["verdict"]["decision"] == "faster"
    assert ET.fromstring(ran(tmp_path, FASTER, "--format", "junit").stdout.encode()).tag == "testsuites"
    markdown = ran(tmp_path, FASTER, "--format", "markdown").stdout
    assert re.match(
        r"### after is [\d.]+ % faster than before in throughput .*\n\n\*\*Faster\.\*\* a build\n", markdown
    )


def test_the_suffix_of_a_file_names_its_form(tmp_path: Path):
    ran(tmp_path, FASTER, "-o", "verdict.md")
    assert "**Faster.**" in (tmp_path / "verdict.md").read_text()
    dbdyno("compare", "last", "-o", "verdict.xml", cwd=tmp_path)
    dbdyno("compare", "last", "-o", "again.md", cwd=tmp_path)
    assert (tmp_path / "again.md").read_text() == (tmp_path / "verdict.md").read_text()
    assert ET.parse(tmp_path / "verdict.xml").getroot().get("failures") == "0"
    assert "write to one of .txt, .csv, .json, .jsonl, .arrow, .html, .md, .xml" in (
        dbdyno("compare", "last", "-o", "x.pdf", cwd=tmp_path).stderr
    )


def test_a_case_per_verdict_gate_and_metric_and_slower_is_a_failure(tmp_path: Path):
    ran(tmp_path, SLOWER)
    model = analyse(find_run("last", tmp_path / "runs"))
    suite = ET.fromstring(render_junit(model).encode())[0]
    assert int(suite.get("tests", "0")) == 1 + len(model["gates"]) + len(model["metrics"]) == len(suite)
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert {"verdict", "throughput", "mean latency"} <= set(failed)
    assert int(suite.get("failures", "0")) == len(failed)
    skipped = [case for case in suite if case.find("skipped") is not None]
    assert int(suite.get("skipped", "0")) == len(skipped)


EVIL = "<script>|`x` @all [a](http://e.x) \x1b[31m]]> & \x00\ud83d"


def test_names_stay_text_in_markdown_and_xml(tmp_path: Path):
    ran(tmp_path, FASTER)
    model = analyse(find_run("last", tmp_path / "runs"))
    model["arms"][1]["name"] = EVIL
    model["run"]["title"] = EVIL
    model["verdict"]["headline"] = EVIL
    text = render_markdown(model)
    for markup in ("<script", " [a](", "@all", "\x1b", "://"):
        assert markup not in text, markup
    assert all(line.count("|") == line.count("\\|") or line.startswith("|") for line in text.splitlines())
    suite = ET.fromstring(render_junit(model).encode("utf-8", "strict"))[0]
    assert "<script>" in str(suite.get("name"))


def test_markdown_has_what_stands_below_a_name(tmp_path: Path):
    """A comment on a change had neither an error's message nor what an arm changes."""
    ran(tmp_path, FASTER)
    model = analyse(find_run("last", tmp_path / "runs"))
    model["arms"][1]["changes"] = {"work_mem": "64MB"}
    model["errors"] = [{"arm": 0, "statement": "s", "sqlstate": "23505", "message": "duplicate key …", "failed": 1}]
    text = render_markdown(model)
    assert " · work\\_mem = 64MB |" in text and " · duplicate key … |" in text


def test_what_is_markup_is_escaped_and_the_rest_is_left():
    assert escape_text("p99 latency: 5.0 % (95 %)") == "p99 latency: 5.0 % (95 %)"
    assert escape_text("work_mem *") == "work\\_mem \\*"


def test_runs_of_a_plan_are_found_whatever_their_seed_and_length(tmp_path: Path):
    ran(tmp_path, FASTER)
    ran(tmp_path, FASTER, blocks=4)
    ran(tmp_path, SLOWER)
    rows = json.loads(dbdyno("runs", "--plan", "p.toml", "--format", "json", cwd=tmp_path).stdout)
    assert len(rows) == 1
    (tmp_path / "p.toml").write_text(plan(FASTER, 7))
    rows = json.loads(dbdyno("runs", "--plan", "p.toml", "--format", "json", cwd=tmp_path).stdout)
    assert sorted(row["blocks"] for row in rows) == ["4/4", "6/6"], "runs of one second have no order"
    assert len(json.loads(dbdyno("runs", "--from", "1h", "--limit", "2", "--format", "json", cwd=tmp_path).stdout)) == 2
    assert "no runs that were asked for" in dbdyno("runs", "--from", "2999-01-01", cwd=tmp_path).stderr
    assert dbdyno("runs", "--from", "soon", cwd=tmp_path).returncode == 2


def test_a_plan_is_the_same_where_only_its_text_and_server_differ():
    one = parse_plan(plan(FASTER, 5), Path("p.toml"))
    other = parse_plan("# a comment\n" + plan(FASTER, 9), Path("p.toml"))
    assert is_same_plan(one, Manifest.from_values({"plan": other.to_dict()}))
    assert not is_same_plan(one, Manifest.from_values({"plan": parse_plan(plan(SLOWER, 5), Path("p.toml")).to_dict()}))
    assert not is_same_plan(one, Manifest.from_values({}))


@pytest.mark.parametrize("workload", ['command = "true"', 'builtin = "select-only"', 'kind = "commit-loop"'])
def test_a_run_is_of_its_plan_in_the_words_of_its_bench(workload: str):
    """Runs of commands, and those of built-in workloads on MariaDB, were never found: no trend of them."""
    given = parse_plan(f'title = "t"\n[workload]\n{workload}\n[[arm]]\nname = "a"\n', Path("p.toml"))
    ran = replace(given, watch=replace(given.watch, overhead_blocks=0))
    ran = replace(compile_workload(ran), workload=workload_for_engine(compile_workload(ran).workload, "mariadb"))
    assert is_same_plan(given, Manifest.from_values({"plan": ran.to_dict()}))
    assert not is_same_plan(given, Manifest.from_values({"plan": replace(ran, sessions=7).to_dict()}))


def test_a_file_of_no_known_form_is_refused_before_anything_runs(tmp_path: Path):
    """It was refused when the run was over."""
    (tmp_path / "p.toml").write_text(plan(FASTER, 5))
    done = dbdyno("run", "p.toml", "-o", "x.pdf", cwd=tmp_path)
    assert done.returncode == 2 and "the suffix of x.pdf is not a format" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_moments_are_days_times_and_spans():
    now = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
    assert span_start("7d", now) == "2026-11-15T12:00:00+00:00"
    assert span_start("90min", now) == "2026-11-22T10:30:00+00:00"
    assert span_start("2026-11-01") == "2026-11-01T00:00:00+00:00"
    assert span_start("2026-11-01T12:00+02:00") == "2026-11-01T10:00:00+00:00"
    with pytest.raises(PlanError, match="is not a time"):
        span_start("yesterday")
