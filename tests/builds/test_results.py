"""Results in folders and branches: small, append-only, merged with those of others, and read by `trend`."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from repositories import git, made, sleeping

from command_line import dbdyno, succeeded
from dbdyno.base.errors import EvidenceError
from dbdyno.builds.results.branch import ResultBranch
from dbdyno.builds.results.place import place_of, results_in
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.measured.result_file import parse_result
from dbdyno.study.analysis.trend import trend_of
from dbdyno.study.plan.file import parse_plan
from dbdyno.study.run.execute import start
from mock_plans import two_arms

BEGIN = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs of twelve nights; arm one is slower in the last four."""
    folder = tmp_path_factory.mktemp("nights")
    (folder / "p.toml").write_text(two_arms())
    whole = parse_plan(two_arms(), Path("p.toml"))
    for night in range(12):
        run = start(parse_plan(two_arms(1200 if night >= 8 else 1000), Path("p.toml")), folder / "runs", seed=night)
        run.save(plan=whole.to_dict(), started_at=(BEGIN + timedelta(days=night)).isoformat())
    return folder


@pytest.fixture
def here(nights: Path, tmp_path: Path) -> Path:
    """Return a copy of the folder with those runs, which the test may change."""
    shutil.copytree(nights, tmp_path / "here")
    return tmp_path / "here"


def names(folder: Path) -> list[str]:
    """Return the names of the runs, oldest first."""
    runs = [Run.open(path) for path in (folder / "runs").iterdir()]
    return [run.id for run in sorted(runs, key=lambda run: run.manifest.started_at)]


def test_a_result_is_small_and_has_no_evidence_and_the_same_trend(here: Path) -> None:
    done = dbdyno("results", "push", "kept", *names(here), cwd=here)
    assert done.returncode == 0 and "12 of 12 results added" in done.stderr
    files = list((here / "kept").glob("*/*/*.json"))
    assert len(files) == 12 and max(file.stat().st_size for file in files) < 8_000
    kept, refused = results_in(place_of(str(here / "kept")))
    assert not refused
    a, b = (trend_of(runs, "p") for runs in ([Run.open(here / "runs" / name) for name in names(here)], kept))
    assert [change["run"] for change in a["arms"][0]["changes"]] == [
        change["run"] for change in b["arms"][0]["changes"]
    ]
    for one, other in zip(a["runs"], b["runs"], strict=True):
        assert other["values"] == pytest.approx(one["values"], rel=1e-5)


def test_trend_reads_a_folder_by_the_plan_file(here: Path) -> None:
    dbdyno("results", "push", "kept", *names(here), cwd=here)
    shutil.rmtree(here / "runs")
    done = dbdyno("trend", "p.toml", "--results", "kept", "--json", cwd=here)
    model = json.loads(done.stdout)
    assert len(model["runs"]) == 12 and model["arms"][0]["changes"][0]["run"] == 8


def test_what_is_there_already_stays_as_it_is(here: Path) -> None:
    dbdyno("results", "push", "kept", cwd=here)
    (file,) = (here / "kept").glob("*/*/*.json")
    before = file.stat().st_mtime_ns, file.read_bytes()
    again = dbdyno("results", "push", "kept", cwd=here)
    assert "0 of 1 results added" in again.stderr
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


def test_machines_are_told_apart(here: Path) -> None:
    dbdyno("results", "push", "kept", *names(here)[:4], "--ran-on", "old-box", cwd=here)
    dbdyno("results", "push", "kept", *names(here)[4:], "--ran-on", "new-box", cwd=here)
    model = json.loads(dbdyno("trend", "p.toml", "--results", "kept", "--json", cwd=here).stdout)
    assert len(model["runs"]) == 8
    assert "4 of 12 results come from 1 machine(s) other than new-box" in [one["text"] for one in model["warnings"]]
    other = dbdyno("trend", "p.toml", "--results", "kept", "--ran-on", "old-box", "--json", cwd=here)
    assert len(json.loads(other.stdout)["runs"]) == 4
    listed = json.loads(dbdyno("results", "log", "kept", "--ran-on", "old-box", "--json", cwd=here).stdout)
    assert [row["run"] for row in listed] == names(here)[:4]
    nobody = dbdyno("trend", "p.toml", "--results", "kept", "--machine", "no-box", cwd=here)
    assert nobody.returncode == 2 and "kept has no result of this plan on machine no-box" in nobody.stderr
    assert "`dbdyno results log kept`" in nobody.stderr


@pytest.mark.parametrize("name", ["../up", "", ".hidden", "a/b", "x" * 41, "ä"])
def test_a_machine_has_a_plain_name(here: Path, name: str) -> None:
    refused = dbdyno("results", "push", "kept", "--ran-on", name, cwd=here)
    assert refused.returncode == 2 and "is not a valid machine name" in refused.stderr
    assert not (here / "kept").exists()


def test_a_branch_takes_results_and_leaves_the_working_tree_alone(here: Path) -> None:
    repository = here / "r"
    (commit,) = made(repository, 1, sleeping(9))
    succeeded("results", "push", "branch:performance", names(here)[-1], "--runs", "../runs", cwd=repository)
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "branch", "--show-current") == "main"
    (row,) = json.loads(dbdyno("results", "log", "branch:performance", "--json", cwd=repository).stdout)
    assert row["commit"] == commit[:12]
    assert git(repository, "ls-tree", "-r", "--name-only", "performance").endswith(f"{names(here)[-1]}.json")


def test_two_clones_push_to_one_remote_and_both_have_all(here: Path) -> None:
    made(here / "r", 1, sleeping(9))
    git(here, "clone", "--quiet", "--bare", "r", "remote.git")
    clones = [here / "a", here / "b"]
    for at, clone in enumerate(clones):
        git(here, "clone", "--quiet", "remote.git", clone.name)
        words = ("results", "push", "branch:performance", *names(here)[at * 2 : at * 2 + 2], "--runs", "../runs")
        succeeded(*words, "--remote", "origin", cwd=clone)
    for clone in clones:
        succeeded("results", "pull", "branch:performance", "kept", "--remote", "origin", cwd=clone)
        assert len(list((clone / "kept").glob("*/*/*.json"))) == 4
    assert git(here / "remote.git", "rev-list", "--count", "performance") == "2"


def test_a_push_that_comes_second_is_made_again_on_what_came_first(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(here / "r", 1, sleeping(9))
    git(here, "clone", "--quiet", "--bare", "r", "remote.git")
    for name in ("a", "b"):
        git(here, "clone", "--quiet", "remote.git", name)
    first, second = (ResultBranch(here / name, "performance", "origin") for name in ("a", "b"))
    fetched = second._fetch

    def overtaken() -> str | None:
        monkeypatch.undo()
        tip = fetched()
        first.add({"p/m/one.json": b"{}"}, "one")
        return tip

    monkeypatch.setattr(second, "_fetch", overtaken)
    assert second.add({"p/m/two.json": b"{}"}, "two") in ([], ["p/m/two.json"])
    listed = git(here / "remote.git", "ls-tree", "-r", "--name-only", "performance").splitlines()
    assert listed == ["p/m/one.json", "p/m/two.json"]


def test_a_branch_that_is_checked_out_is_refused(here: Path) -> None:
    made(here / "r", 1, sleeping(9))
    refused = dbdyno("results", "push", "branch:main", "--runs", "../runs", cwd=here / "r")
    assert refused.returncode == 2 and "is checked out" in refused.stderr


@pytest.mark.parametrize("name", ["a..b", "-x", "a.lock", "a b", ""])
def test_a_branch_has_a_name_that_git_takes(name: str) -> None:
    with pytest.raises(EvidenceError, match="not a valid branch name"):
        place_of(f"branch:{name}")


def test_a_folder_has_no_remote_and_a_branch_that_is_not_there_is_said(here: Path) -> None:
    with pytest.raises(EvidenceError, match="a folder, so it has no remote"):
        place_of("x", "origin")
    made(here / "r", 1, sleeping(9))
    refused = dbdyno("results", "log", "branch:nowhere", cwd=here / "r")
    assert refused.returncode == 2 and "is not a branch of this repository" in refused.stderr


def test_a_file_that_is_no_result_is_left_out_with_its_name_and_exit_2(here: Path) -> None:
    dbdyno("results", "push", "kept", cwd=here)
    (file,) = (here / "kept").glob("*/*/*.json")
    file.with_name("torn.json").write_bytes(file.read_bytes()[:500])
    file.with_name("other.json").write_text('{"schema": 9, "kind": "result"}')
    done = dbdyno("results", "log", "kept", "--json", cwd=here)
    assert done.returncode == 2 and len(json.loads(done.stdout)) == 1
    assert "torn.json: is not complete JSON" in done.stderr and "other.json: is not a result of schema 1" in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"values": {"three": {}}},
        {"values": {"one": {"throughput": [1, 2]}}},
        {"values": {"one": {"throughput": ["1", 2, 3, 4]}}},
        {"values": {"one": {"throughput": [-1, 2, 3, 4]}}},
        {"blocks": [{"index": "x"}]},
        {"machine": None},
        {"manifest": {"plan": 7}},
    ],
)
def test_a_result_with_wrong_values_is_refused(here: Path, change: dict[str, object]) -> None:
    dbdyno("results", "push", "kept", cwd=here)
    (file,) = (here / "kept").glob("*/*/*.json")
    content = json.loads(file.read_text()) | change
    with pytest.raises(EvidenceError, match=r"x\.json: holds no result that can be read|x\.json: "):
        parse_result(json.dumps(content).encode(), "x.json")


def test_a_password_of_a_plan_is_in_no_result(here: Path) -> None:
    run = Run.open(here / "runs" / names(here)[-1])
    text = two_arms().replace('target = "mock:"', 'target = "postgresql://me:hush@db1/app"')
    run.save(plan={**run.manifest.plan, "dsn": parse_plan(text, Path("p.toml")).to_dict()["dsn"]})
    dbdyno("results", "push", "kept", cwd=here)
    (file,) = (here / "kept").glob("*/*/*.json")
    assert b"hush" not in file.read_bytes() and b"db1" not in file.read_bytes()


def test_a_run_that_was_cut_short_is_not_kept(here: Path) -> None:
    Run.open(here / "runs" / names(here)[-1]).save(status="aborted")
    refused = dbdyno("results", "push", "kept", names(here)[-1], cwd=here)
    assert refused.returncode == 2 and "is aborted, not complete" in refused.stderr
