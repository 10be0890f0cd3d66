"""Commits on a line and their builds: made once, kept, made again after a kill, skipped if they fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from repositories import git, made, sleeping

from dbdyno.base.errors import PlanError
from dbdyno.builds.bisect.cache import BuildCache
from dbdyno.builds.bisect.commits import Commit, GitError, first_parent_chain
from waiting import until


def test_the_line_goes_along_first_parents(tmp_path: Path) -> None:
    names = made(tmp_path / "r", 3, sleeping(9))
    git(tmp_path / "r", "checkout", "--quiet", "-b", "side", names[0])
    git(tmp_path / "r", "commit", "--quiet", "--allow-empty", "--message", "aside")
    git(tmp_path / "r", "checkout", "--quiet", "main")
    git(tmp_path / "r", "merge", "--quiet", "--no-ff", "--message", "merge", "side")
    line = first_parent_chain(tmp_path / "r", names[0], "main")
    assert [one.subject for one in line] == ["change 0", "change 1", "change 2", "merge"]
    with pytest.raises(PlanError, match="not in the chain of first parents") as caught:
        first_parent_chain(tmp_path / "r", "side", "main")
    assert f"--good {git(tmp_path / 'r', 'rev-parse', 'side')[:12]}" not in str(caught.value.message)


def test_what_names_no_commit_is_an_error_with_its_name(tmp_path: Path) -> None:
    made(tmp_path / "r", 1, sleeping(9))
    for good, said in (("nowhere", "'nowhere' is not a commit"), ("--help", "'--help' is not a commit")):
        with pytest.raises(GitError, match=said):
            first_parent_chain(tmp_path / "r", good, "main")
    with pytest.raises(PlanError, match="the same commit"):
        first_parent_chain(tmp_path / "r", "main", "HEAD")
    with pytest.raises(GitError):
        first_parent_chain(tmp_path, "main", "HEAD")


def cache(folder: Path, command: str) -> tuple[BuildCache, Commit, list[str]]:
    """Return a build cache for a repository with one commit, the commit, and the cache's list of notes."""
    if not (folder / "r").exists():
        made(folder / "r", 1, sleeping(9))
    notes: list[str] = []
    name = git(folder / "r", "rev-parse", "HEAD")
    return BuildCache(folder / "r", folder / "cache", command, notes.append), Commit(name, "change 0"), notes


def test_a_commit_is_built_once_and_anew_with_another_command(tmp_path: Path) -> None:
    builds, commit, _ = cache(tmp_path, "echo once >> made")
    with builds.locked():
        places = {builds.build(commit) for _ in range(3)}
    (place,) = places
    assert place is not None and (place / "made").read_text() == "once\n"
    other, commit, _ = cache(tmp_path, "echo twice > made")
    with other.locked():
        assert other.build(commit) != place


def test_a_commit_that_does_not_build_is_none_with_its_last_line(tmp_path: Path) -> None:
    builds, commit, notes = cache(tmp_path, "echo no such header; exit 3")
    with builds.locked():
        assert builds.build(commit) is None and builds.build(commit) is None
    assert builds.failed[commit.name] == "exit 3: no such header"
    assert sum("does not build" in note for note in notes) == 1


def test_a_build_that_was_killed_is_made_again(tmp_path: Path) -> None:
    builds, commit, _ = cache(tmp_path, f"touch begun; [ -e {tmp_path}/go ] || sleep 60")
    program = (
        "import sys; from pathlib import Path; from dbdyno.builds.bisect.cache import BuildCache\n"
        "from dbdyno.builds.bisect.commits import Commit\n"
        f"builds = BuildCache(Path({str(builds.repository)!r}), Path({str(builds.folder)!r}), {builds.command!r})\n"
        f"builds.folder.mkdir(); builds.build(Commit({commit.name!r}, ''))"
    )
    running = subprocess.Popen([sys.executable, "-c", program])
    begun = builds.folder_of(commit) / "begun"
    until(begun.exists, 20)
    running.send_signal(signal.SIGINT)
    running.wait(20)
    assert begun.exists() and not list(builds.folder.glob("*.json"))
    (tmp_path / "go").touch()
    with builds.locked():
        assert builds.build(commit) == builds.folder_of(commit)


def test_two_searches_do_not_build_in_one_folder(tmp_path: Path) -> None:
    builds, _, _ = cache(tmp_path, "true")
    with builds.locked(), pytest.raises(PlanError, match="in use by another search"), builds.locked():
        pass


def test_cleared_builds_leave_nothing_in_the_repository(tmp_path: Path) -> None:
    builds, commit, _ = cache(tmp_path, "true")
    with builds.locked():
        place = builds.build(commit)
        assert place is not None and json.loads(place.with_name(f"{place.name}.json").read_text())["ok"]
        builds.clear()
    assert sorted(path.name for path in builds.folder.iterdir()) == ["lock"]
    assert len(git(builds.repository, "worktree", "list").splitlines()) == 1
