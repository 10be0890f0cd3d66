"""Commits of a git repository: the chain of first parents from a good commit to a bad one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from dbdyno.base.errors import Error, PlanError
from dbdyno.base.processes import child_environment, find_program

GIT_S = 600.0
"""Maximum time for one git command [s]."""
FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
"""Environment variables that would make git use a repository other than the given one."""


class Commit(NamedTuple):
    """A commit: its full name, and the first line of its message."""

    name: str
    subject: str

    @property
    def short(self) -> str:
        """Return the first twelve characters of the commit's name."""
        return self.name[:12]


class GitError(Error):
    """A git command that failed, or a folder that is not a repository."""


def git(repository: Path, *words: str, data: bytes | None = None, environment: dict[str, str] | None = None) -> str:
    """Run git in a repository and return what it prints as text, without the last line break.

    Raises:
        GitError: git is missing, fails, or did not finish within ten minutes.
    """
    printed = git_bytes(repository, *words, data=data, environment=environment)
    return printed.decode(errors="replace").removesuffix("\n")


def git_bytes(
    repository: Path, *words: str, data: bytes | None = None, environment: dict[str, str] | None = None
) -> bytes:
    """Run git in a repository and return what it prints.

    Raises:
        GitError: git is missing, fails, or did not finish within ten minutes.
    """
    program = find_program("git")
    if program is None:
        raise GitError("git is not installed", next_step="install git; on Debian: apt-get install git")
    try:
        done = subprocess.run(
            [str(program), "-C", str(repository), *words],
            input=data if data is not None else b"",
            capture_output=True,
            timeout=GIT_S,
            check=False,
            env={**_environment(), **(environment or {})},
        )
    except subprocess.TimeoutExpired as late:
        raise GitError(f"git {words[0]} did not finish within ten minutes", where=str(repository)) from late
    if done.returncode:
        said = (done.stderr.decode(errors="replace").strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise GitError(
            f"git {words[0]} failed: {said[:300]}",
            where=str(repository),
            next_step="correct the error that git reports, then run again",
        )
    return done.stdout


def _environment() -> dict[str, str]:
    """Return the environment for git: git does not prompt, and ignores the repository of a hook that started dbdyno."""
    kept = {name: value for name, value in child_environment().items() if name not in FOREIGN}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def commit_of(repository: Path, name: str) -> str:
    """Return the full name of the commit that a revision names.

    Raises:
        GitError: `name` does not name a commit.
    """
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except GitError as error:
        raise GitError(
            f"{name!r} is not a commit", where=str(repository), next_step="list the commits with `git log --oneline`"
        ) from error


def first_parent_chain(repository: Path, good: str, bad: str) -> list[Commit]:
    """Return the commits from `good` to `bad` along first parents, both included.

    Raises:
        GitError: `good` or `bad` is not a commit.
        PlanError: `good` is not among the first-parent ancestors of `bad`, or is the same commit.
    """
    first, last = commit_of(repository, good), commit_of(repository, bad)
    if first == last:
        raise PlanError(
            f"{good} and {bad} are the same commit",
            where=str(repository),
            next_step="name two different commits with --good and --bad",
        )
    text = git(repository, "log", "--first-parent", "--reverse", "--format=%H%x00%s", f"{first}..{last}")
    rows = [line.split("\0", 1) for line in text.split("\n") if line]
    begin = git(repository, "log", "-1", "--format=%s", first)
    parents = git(repository, "log", "-1", "--format=%P", rows[0][0]).split() if rows else []
    if parents[:1] != [first]:
        base = git(repository, "merge-base", first, last)
        raise PlanError(
            f"{good} is not in the chain of first parents of {bad}",
            where=str(repository),
            next_step=f"give --good {base[:12]}, the common ancestor of both, or another commit of that chain",
        )
    return [Commit(first, begin), *(Commit(name, subject) for name, subject in rows)]
