"""Processors that others use, told by all statements alike: made pairs of rates, and what a sampler would have seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbdyno.snapshot.causes.change import Pair
from dbdyno.snapshot.causes.postgres import server

SECONDS = 10.0


def pair(name: str, slower: float, *, heavier: float = 1.0, calls: float = 5.0) -> Pair:
    """A statement of 20 ms and 100 blocks a call, `slower` and `heavier` after."""
    before = {"calls": calls, "ms": 20.0 * calls, "work": 100.0 * calls}
    return Pair(
        name, "select 1", before, {"calls": calls, "ms": 20.0 * slower * calls, "work": 100.0 * heavier * calls}
    )


def causes(monkeypatch: pytest.MonkeyPatch, *pairs: Pair) -> list[Any]:
    monkeypatch.setattr(server, "_sampled", lambda one, waits: (0.0 if "<>" in waits else 0.8, frozenset()))
    side = SimpleNamespace(seconds=SECONDS)
    change: Any = SimpleNamespace(statements=dict(enumerate(pairs)), before=side, after=side)
    return list(server.busy_processors(change))


def test_all_statements_a_third_slower_at_the_same_work_wait_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = causes(monkeypatch, pair("a", 1.35), pair("b", 1.3))
    assert "others use them" in one.words and one.statements == {0, 1}


@pytest.mark.parametrize(
    "other",
    [pair("b", 1.0), pair("b", 1.4, heavier=1.4), pair("b", 1.2)],
    ids=["one as fast as before", "one does more work", "one hardly slower"],
)
def test_one_that_differs_is_no_matter_of_the_processor(monkeypatch: pytest.MonkeyPatch, other: Pair) -> None:
    assert not causes(monkeypatch, pair("a", 1.35), other)


def test_a_few_calls_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not causes(monkeypatch, pair("a", 1.35, calls=0.5))
