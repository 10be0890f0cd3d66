"""Folders that the tests of pages share: a quarter of an hour with planted events, a hostile one, runs on a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from laboratory import FIRST_S, HOSTILE, MINUTES, PLAN
from planted_day import Day
from run_kinds import make_kinds

from command_line import dbdyno

if TYPE_CHECKING:
    from asking import Browser


@pytest.fixture(autouse=True, scope="session")
def drawn_here() -> Iterator[None]:
    """Draw the charts of pages in this process, where equal charts are drawn only once (tests/drawings.py)."""
    pytest.importorskip("starlette", reason="starlette is not here; make setup-test")
    from dbdyno.ui import drawing

    def ask(*request: Any) -> Any:
        answer = drawing.answer(*request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with mock.patch.object(drawing.DRAWER, "ask", ask):
        yield


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the runs and snapshots of one laboratory."""
    made = tmp_path_factory.mktemp("laboratory")
    Day(made / "snaps").make(FIRST_S, FIRST_S + MINUTES * 60)
    (made / "plan.toml").write_text(PLAN)
    for seed in (1, 2):
        done = dbdyno("run", made / "plan.toml", "--seed", seed, "--out", made / "runs")
        assert done.returncode in (0, 1), done.stderr
    return made


@pytest.fixture(scope="session")
def browser_of(folder: Path) -> Browser:
    """Return a browser for the laboratory, without a socket."""
    from asking import Browser

    return Browser(folder / "runs", folder / "snaps")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a laboratory in which every name and text that an outsider can choose is hostile."""
    made = tmp_path_factory.mktemp("hostile")
    Day(made / "snaps", words=HOSTILE).make(FIRST_S + 13 * 60, FIRST_S + 18 * 60)
    from asking import Browser

    yield Browser(made / "runs", made / "snaps")


@pytest.fixture(scope="session")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one run of each kind."""
    made = tmp_path_factory.mktemp("kinds")
    make_kinds(made)
    return made
