"""Repositories that the tests create: a line of commits of a small program, one of which makes it slower."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

PERSON = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@localhost",
    "GIT_AUTHOR_DATE": "2026-11-01T03:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-01T03:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def git(folder: Path, *words: str) -> str:
    """Return the output of a git command."""
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env={**os.environ, **PERSON}
    )
    return done.stdout.strip()


def made(folder: Path, commits: int, program: Callable[[int], str]) -> list[str]:
    """Create a repository with a file `source` in each commit; return the names of the commits."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    names = []
    for number in range(commits):
        (folder / "source").write_text(program(number))
        git(folder, "add", "source")
        git(folder, "commit", "--quiet", "--message", f"change {number}")
        names.append(git(folder, "rev-parse", "HEAD"))
    return names


def sleeping(slow_from: int, *, broken: tuple[int, ...] = (), slow: float = 0.06) -> Callable[[int], str]:
    """Return a program that sleeps for 20 ms, and longer from commit `slow_from` on; some commits do not build."""

    def program(number: int) -> str:
        if number in broken:
            return f"exit {number}\n"
        return f"# {number}\nexec sleep {slow if number >= slow_from else 0.02}\n"

    return program


BUILD = "sh -n source && ! grep -q ^exit source && { echo '#!/bin/sh'; cat source; } > program && chmod +x program"
PLAN = """\
title = "waiting"
[workload]
command = "{build}/program"
[schedule]
blocks = 12
warmup_blocks = 1
turn_transactions = 2
[verdict]
metric = "mean"
[[arm]]
name = "any"
"""
