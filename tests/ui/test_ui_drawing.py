"""Charts that need Vega are drawn in a separate process, which ends when it is idle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from sites import until

from dbdyno.base.errors import ReportError
from dbdyno.report import figures
from dbdyno.report.figures import clock
from dbdyno.ui import drawing

LINE = {"form": "lines", "x": "n", "y": "calls", "points": [{"x": at, "y": at * at, "name": ""} for at in range(5)]}


@pytest.fixture(scope="module")
def drawer() -> Iterator[drawing.Drawer]:
    made = drawing.Drawer()
    yield made
    made.end()


def ask(drawer: drawing.Drawer, what: str, first: Any, second: Any) -> Any:
    return drawer.ask(what, first, second, clock.ZONE.get())


def pid_of(drawer: drawing.Drawer) -> int:
    assert drawer._process
    return drawer._process.pid


@pytest.mark.drawn
def test_the_process_draws_what_this_one_draws_and_says_what_it_cannot(drawer: drawing.Drawer) -> None:
    assert ask(drawer, "drawn", "query", LINE) == figures.draw_figure("query", LINE)
    assert ask(drawer, "drawn", "no such figure", LINE) is None
    with pytest.raises(ReportError, match="expected one of png, svg"):
        ask(drawer, "encoded", {"kind": "query", **LINE}, "exe")


def test_a_process_that_was_killed_is_started_again(drawer: drawing.Drawer) -> None:
    ask(drawer, "drawn", "no such figure", LINE)
    first = pid_of(drawer)
    assert drawer._process
    drawer._process.kill()
    drawer._process.wait()
    assert ask(drawer, "drawn", "no such figure", LINE) is None
    assert pid_of(drawer) != first


def test_an_idle_process_ends(drawer: drawing.Drawer) -> None:
    with mock.patch.object(drawing, "IDLE_S", 0.1):
        ask(drawer, "drawn", "no such figure", LINE)
    until(lambda: drawer._process is None)


def test_the_server_draws_active_sessions_without_the_process() -> None:
    """The chart of a server's page must not need Vega: it is drawn again on every zoom."""
    refused = mock.Mock(side_effect=AssertionError("asked the process"))
    token = figures.ELSEWHERE.set(refused)
    try:
        assert figures.draw_figure("session_history", {"at_us": [], "classes": []}) is None
        with pytest.raises(AssertionError, match="asked the process"):
            figures.draw_figure("query", LINE)
    finally:
        figures.ELSEWHERE.reset(token)
