"""Folders that the tests of the pages share: a planted quarter of an hour, a hostile one, runs on a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Browser
from planted_day import BEGIN_S, DAY_S, Day

from command_line import dbdyno

HOSTILE = "</script><img src=x onerror=alert(1)>'\"--&amp;{{7*7}}\u2028\u202e\x1b[31m${x}`'];//"
PLAN = """\
title = "work_mem for the nightly sort"
target = "mock:"
[workload]
kind = "mock"
[schedule]
blocks = 6
warmup_blocks = 0
turn = "40ms"
slice = "10ms"
[watch]
overhead_blocks = 0
[[arm]]
name = "4MB"
[[arm]]
name = "64MB"
"""
FIRST_S = BEGIN_S + DAY_S + 13 * 3600 + 50 * 60
"""13:50 of the planted day; the queue begins at 14:03."""
MINUTES = 24


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs and snapshots of one laboratory."""
    made = tmp_path_factory.mktemp("laboratory")
    Day(made / "snaps").make(FIRST_S, FIRST_S + MINUTES * 60)
    (made / "plan.toml").write_text(PLAN)
    for seed in (1, 2):
        done = dbdyno("run", made / "plan.toml", "--seed", seed, "--out", made / "runs")
        assert done.returncode in (0, 1), done.stderr
    return made


@pytest.fixture(scope="session")
def browser_of(folder: Path) -> Browser:
    """A browser on it, without a socket."""
    return Browser(folder / "runs", folder / "snaps")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A laboratory in which every name and text that a stranger can choose is hostile."""
    made = tmp_path_factory.mktemp("hostile")
    Day(made / "snaps", words=HOSTILE).make(FIRST_S + 13 * 60, FIRST_S + 18 * 60)
    yield Browser(made / "runs", made / "snaps")
