"""Processors that others use make all statements equally slower: tested on synthetic pairs of rates and on samples."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snapshot_help import Lab

from dbdyno.snapshot.causes.change import Pair
from dbdyno.snapshot.causes.postgres import server
from dbdyno.snapshot.causes.postgres.reading import PostgresChange
from dbdyno.snapshot.engines.postgres import host

SECONDS = 10.0


def pair(name: str, slower: float, *, heavier: float = 1.0, calls: float = 5.0) -> Pair:
    """Return a statement with 20 ms and 100 blocks per call before; `slower` and `heavier` are the factors after."""
    before = {"calls": calls, "ms": 20.0 * calls, "work": 100.0 * calls}
    return Pair(
        name, "select 1", before, {"calls": calls, "ms": 20.0 * slower * calls, "work": 100.0 * heavier * calls}
    )


def causes(monkeypatch: pytest.MonkeyPatch, *pairs: Pair, locked: frozenset[int] = frozenset()) -> list[Any]:
    monkeypatch.setattr(server, "_mostly_locked", lambda one: locked)
    monkeypatch.setattr(server, "_sampled", lambda one, waits: (0.0 if "<>" in waits else 0.8, frozenset()))
    side = SimpleNamespace(seconds=SECONDS, before=NOWHERE, after=NOWHERE)
    change: Any = SimpleNamespace(statements=dict(enumerate(pairs)), before=side, after=side)
    return list(server.busy_processors(change))


NOWHERE = SimpleNamespace(facts={})


def used(others: tuple[float, float], *pairs: Pair) -> Any:
    """Return a change on a host where others used that many processors before and after, and the server half of one."""
    facts, at_s, busy = [], 0.0, 0.0
    for more in (None, *others):
        if more is not None:
            at_s, busy = at_s + SECONDS, busy + SECONDS * (more + 0.5)
        host = {"server": "b:1:2", "at_ns": int(at_s * 1e9), "cores": 2}
        host |= {"busy_ns": int(busy * 1e9), "server_ns": int(at_s * 0.5e9)}
        facts.append(SimpleNamespace(facts={"host": host}))
    sides = [SimpleNamespace(seconds=SECONDS, before=facts[at], after=facts[at + 1]) for at in (0, 1)]
    stretches = {"before": sides[0], "after": sides[1]}
    return SimpleNamespace(statements=dict(enumerate(pairs)), renumbered=frozenset(), **stretches)


def test_a_statement_that_waits_for_locks_is_no_matter_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine those behind a lock take longer a call: that was "processors are slower"."""
    two = (pair("a", 3.2), pair("b", 1.0))
    assert causes(monkeypatch, *two)
    assert not causes(monkeypatch, *two, locked=frozenset({0}))


@pytest.mark.usefixtures("nobody_waits")
def test_where_the_host_says_who_used_it_a_fifth_is_enough() -> None:
    (one,) = server.busy_processors(used((0.2, 1.4), pair("a", 1.2), pair("b", 1.15)))
    assert one.words.endswith("others use the processors") and one.statements == {0, 1}
    assert "used 0.2 → 1.4 of the host's 2 processors, the server 0.5 → 0.5" in one.evidence


@pytest.mark.usefixtures("nobody_waits")
@pytest.mark.parametrize("slower", [1.0, 1.05])
def test_others_on_the_host_that_slow_nothing_are_no_cause(slower: float) -> None:
    assert not list(server.busy_processors(used((0.2, 1.4), pair("a", slower))))


@pytest.mark.usefixtures("nobody_waits")
def test_more_work_is_not_explained_by_others() -> None:
    assert not list(server.busy_processors(used((0.2, 1.4), pair("a", 1.6, heavier=1.6))))


@pytest.mark.usefixtures("nobody_waits")
def test_where_others_used_no_more_it_is_not_told_as_theirs() -> None:
    (one,) = server.busy_processors(used((0.2, 0.25), pair("a", 1.8)))
    assert one.words.endswith("processors are slower") and "0.2 → 0.25" in one.evidence


@pytest.fixture
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_sampled", lambda one, waits: (0.8 if "coalesce" in waits else 0.0, frozenset()))
    monkeypatch.setattr(server, "_mostly_locked", lambda one: frozenset())


@pytest.mark.parametrize(("others", "said"), [((1.5, 1.8), True), ((0.2, 0.3), False)])
def test_a_host_that_others_had_is_told(others: tuple[float, float], said: bool) -> None:
    one = used(others, pair("a", 1.0))
    remarks = PostgresChange.remarks(one)
    assert bool(remarks) == said
    assert not said or "used 1.5 → 1.8 of the host's 2 processors" in remarks[0]


def test_a_snapshot_on_the_servers_host_has_its_processor_time(lab: Lab) -> None:
    """Against what the kernel says of the session's own process."""
    first = lab.take()
    with lab.connect() as session:
        pid = session.execute("select pg_backend_pid()").fetchone()[0]  # type: ignore[index]
        session.execute("select count(*) from generate_series(1, 2000000)")
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own_ns = (int(fields[11]) + int(fields[12])) * 10**9 // os.sysconf("SC_CLK_TCK")
    last = lab.take()
    known = host.processors_between(first.facts, last.facts)
    assert known is not None and own_ns > 0
    span = last.facts["host"]["at_ns"] - first.facts["host"]["at_ns"]
    assert own_ns * 0.9 <= known.server * span <= span * known.cores
    assert host.read(os.getpid(), first.facts["started_us"]) == {}, "this is no process of the server"
    assert host.processors_between({}, last.facts) is None


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
