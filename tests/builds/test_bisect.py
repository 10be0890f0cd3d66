"""`dbdyno bisect` on repositories in which one commit made a program slower.

By default the program takes three times as long from a commit on, so that a busy machine does not matter; in the soak
it takes ten per cent longer, among 64 commits. What noise does to the search is in test_bisection.py.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from repositories import BUILD, PLAN, git, made, sleeping

from command_line import checked, dbdyno
from dbdyno.base.json_types import JsonObject
from dbdyno.report.html import render_html
from dbdyno.report.terminal import render_text

SLOW_FROM = 11
Found = tuple[Path, list[str], JsonObject]


def bisect(folder: Path, good: str, *more: str, build: str = BUILD) -> subprocess.CompletedProcess[str]:
    """Run `dbdyno bisect` on the repository `r` of a folder."""
    words = ("bisect", "plan.toml", "--good", good, "--bad", "main", "--repository", "r", "--cache", "builds")
    return dbdyno(*words, "--build", build, *more, cwd=folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Return one search over 16 commits; the builds of the middle ones fail."""
    folder = tmp_path_factory.mktemp("bisect")
    names = made(folder / "r", 16, sleeping(SLOW_FROM, broken=(7, 8)))
    (folder / "plan.toml").write_text(PLAN)
    done = checked(bisect(folder, names[0], "--json"))
    return folder, names, json.loads(done.stdout)


def test_the_commit_is_found_and_measured_against_its_parent(found: Found) -> None:
    _, names, model = found
    assert model["direction"] == "slower"
    assert [one["commit"] for one in model["suspects"]] == [names[SLOW_FROM]]
    assert 1 / model["step"]["ratio"] > 1.2  # three times on an idle machine
    assert model["step"]["low"] <= model["step"]["ratio"] <= model["step"]["high"] < 1


def test_what_does_not_build_is_skipped_and_said(found: Found) -> None:
    _, names, model = found
    skipped = [row for row in model["tests"] if row["result"].startswith("skipped")]
    assert skipped and {row["commit"] for row in skipped} <= {names[7], names[8]}
    assert skipped[0]["result"] == "skipped: does not build"


def test_each_test_is_a_run_and_ended_as_soon_as_it_could_tell(found: Found) -> None:
    folder, _, model = found
    for row in model["tests"]:
        if row["run"]:
            manifest = json.loads((folder / "runs" / row["run"] / "manifest.json").read_text())
            assert manifest["status"] == "complete"
            assert 6 <= row["blocks"] == manifest["blocks_planned"] < 100
    last = json.loads((folder / "runs" / model["tests"][-1]["run"] / "manifest.json").read_text())
    assert last["title"].endswith("and its parent")


def test_a_second_search_builds_nothing_and_a_page_says_what_was_found(found: Found) -> None:
    folder, names, model = found
    text = render_text(model, width=100, color=False)
    assert "FOUND" in text and names[SLOW_FROM][:12] in text and f"change {SLOW_FROM}" in text
    assert "at most 5 %" in render_html(model)
    again = bisect(folder, names[SLOW_FROM - 1], "-o", "b.md", "--clean")
    assert again.returncode == 0 and "building" not in again.stderr.replace(f"building {names[15][:12]}", "")
    assert names[SLOW_FROM][:12] in (folder / "b.md").read_text()
    assert f"{names[SLOW_FROM][:12]} made it slower" in again.stderr
    assert len(git(folder / "r", "worktree", "list").splitlines()) == 1


def test_a_dry_run_builds_nothing(found: Found) -> None:
    folder, names, _ = found
    done = bisect(folder, names[0], "--dry-run")
    assert "16 commits from" in done.stdout and "about 6 tests" in done.stdout


def test_an_end_that_does_not_build_is_an_error_with_its_log(tmp_path: Path) -> None:
    names = made(tmp_path / "r", 2, sleeping(1))
    (tmp_path / "plan.toml").write_text(PLAN)
    done = bisect(tmp_path, names[0], build="echo no compiler; false")
    assert done.returncode == 2
    assert "does not build and is skipped: exit 1: no compiler" in done.stderr and ".log" in done.stderr


def test_ends_that_are_alike_cannot_be_told_apart_and_no_commit_is_named(tmp_path: Path) -> None:
    names = made(tmp_path / "r", 4, sleeping(99))
    (tmp_path / "plan.toml").write_text(PLAN)
    done = bisect(tmp_path, names[0], "--blocks", "6", "--json")
    model = json.loads(done.stdout)
    assert (done.returncode, model["direction"], model["suspects"]) == (1, "", [])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{build}/program", "true", "does not use the build"),
        ('name = "any"', 'name = "any"\n[[arm]]\nname = "other"', "has 2 arms"),
        ("[schedule]", 'prepare = "ls {build}"\n[schedule]', "in a value that all arms share"),
    ],
)
def test_a_plan_that_does_not_fit_builds_is_refused_with_the_line_to_write(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    names = made(tmp_path / "r", 2, sleeping(1))
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new))
    done = bisect(tmp_path, names[0])
    assert done.returncode == 2 and said in done.stderr


def test_two_builds_are_arms_of_one_run_and_a_trend_finds_its_runs(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "program").symlink_to("/bin/true")
    (tmp_path / "plan.toml").write_text(PLAN.replace("blocks = 12", "blocks = 2"))
    words = ("run", "plan.toml", "--build", "base=old", "--build", "change=new", "--blocks", "2")
    assert dbdyno(*words, cwd=tmp_path).returncode in (0, 1)
    listed = json.loads(dbdyno("runs", "--plan", "plan.toml", "--json", cwd=tmp_path).stdout)
    assert len(listed) == 1
    refused = dbdyno("run", "plan.toml", "--build", "base=nowhere", cwd=tmp_path)
    assert refused.returncode == 2 and "'base=nowhere' is not NAME=DIR" in refused.stderr


@pytest.mark.soak
@pytest.mark.parametrize("slow_from", [1, 41, 63])
def test_a_step_of_ten_per_cent_among_64_commits_is_found(tmp_path: Path, slow_from: int) -> None:
    names = made(tmp_path / "r", 64, sleeping(slow_from, broken=(17, 33), slow=0.022))
    (tmp_path / "plan.toml").write_text(PLAN)
    done = bisect(tmp_path, names[0], "--blocks", "400", "--json")
    model = json.loads(done.stdout)
    print(model["verdict"]["headline"], [row["blocks"] for row in model["tests"]])
    assert names[slow_from] in [one["commit"] for one in model["suspects"]]
