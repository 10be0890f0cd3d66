"""Exact waits during a load: each belongs to its arm, other sessions' are left out, and a restart is survived."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import psycopg
import pytest

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.exact_waits import COST, CPU_IN_WAIT, CPU_IN_WAITS, NOTES, ExactWatcher
from dbdyno.study.plan.plan import Watch
from kernel_probes import require_probes

NAMES = {"on": "dbdyno/on", "off": "dbdyno/off"}


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    require_probes()
    with EmbeddedPostgres() as running:
        yield running


def session(engine: EmbeddedPostgres, name: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(**engine.conninfo(), autocommit=True, application_name=name)  # type: ignore[arg-type]


@pytest.fixture
def watcher(engine: EmbeddedPostgres) -> Iterator[ExactWatcher]:
    with contextlib.ExitStack() as stack:
        made = ExactWatcher(lambda: stack.enter_context(session(engine, "dbdyno watcher")), NAMES)
        made.start()
        yield made
        made.stop()


@pytest.mark.long
def test_a_wait_is_that_of_its_sessions_arm_and_block(engine: EmbeddedPostgres, watcher: ExactWatcher) -> None:
    with session(engine, NAMES["on"]) as on, session(engine, NAMES["off"]) as off, session(engine, "psql") as other:
        watcher.mark(None, 3)
        for _ in range(5):
            on.execute("select pg_sleep(.01)")
        off.execute("select pg_sleep(.03)")
        other.execute("select pg_sleep(.02)")
        taken = watcher.take()
        rows = list(zip(*(taken[name] for name in ("arm", "block", "event", "elapsed_ns", "fidelity")), strict=True))
        slept = {arm: [row[3] for row in rows if row[0] == arm and row[2] == "PgSleep"] for arm in NAMES}
        assert len(slept["on"]) >= 5
        assert min(sum(slept["on"]), 50_000_000) >= 49_000_000
        assert sum(slept["off"]) >= 29_000_000
        sleepers = {pid for pid, event in zip(taken["session"], taken["event"], strict=True) if event == "PgSleep"}
        assert sleepers == {on.info.backend_pid, off.info.backend_pid}, "another's session is not the load's"
        assert {row[1] for row in rows} == {3}
        assert {row[4] for row in rows} == {"exact"}
        taken = [metric for _, block, metric in watcher.take_metrics() if block == 3]
        told = {metric.metric: metric.value for metric in taken}
        assert told[CPU_IN_WAITS] > 0
        events = {metric.object: metric.value for metric in taken if metric.metric == CPU_IN_WAIT}
        assert sum(events.values()) == sum(metric.value for metric in taken if metric.metric == CPU_IN_WAITS)
        assert events["on/Timeout:PgSleep"] > 0
        assert 0 < told[NOTES] * 100 < told[COST]
        on.execute("select pg_sleep(.01)")
        watcher.mark("off", 4)
        assert "PgSleep" not in watcher.take()["event"], "what lies between two blocks is of none"
    engine.restart()
    with session(engine, NAMES["on"]) as on:
        watcher.mark("on", 5)
        on.execute("select pg_sleep(.01)")
        again = watcher.take()
    assert "PgSleep" in again["event"]
    assert set(again["block"]) == {5}


def test_waits_that_are_read_are_those_of_their_sessions_arm_and_cost_no_probe(engine: EmbeddedPostgres) -> None:
    with contextlib.ExitStack() as stack:
        watcher = ExactWatcher(lambda: stack.enter_context(session(engine, "dbdyno watcher")), NAMES, "read")
        on, other = (stack.enter_context(session(engine, name)) for name in (NAMES["on"], "psql"))
        stack.callback(watcher.stop)
        watcher.mark(None, 3)
        on.execute("select pg_sleep(.1)")
        other.execute("select pg_sleep(.1)")
        taken, pid = watcher.take(), on.info.backend_pid
    names = ("arm", "block", "session", "event", "event_type", "elapsed_ns", "fidelity")
    rows = [row for row in zip(*(taken[name] for name in names), strict=True) if row[3] == "PgSleep"]
    assert {row[:5] for row in rows} == {("on", 3, pid, "PgSleep", "Timeout")}
    assert 50_000_000 < sum(row[5] for row in rows) < 200_000_000
    assert {row[6] for row in rows} == {"read"}
    assert {(metric.source, metric.value) for _, _, metric in watcher.take_metrics()} == {("looks", 0)}


def test_reading_pauses_outlives_a_restart_and_is_what_a_plan_gets_that_asks_for_nothing(
    engine: EmbeddedPostgres,
) -> None:
    def slept(taken: dict[str, list[object]]) -> int:
        return sum(
            int(str(ns)) for ns, event in zip(taken["elapsed_ns"], taken["event"], strict=True) if event == "PgSleep"
        )

    watcher = ExactWatcher(lambda: stack.enter_context(session(engine, "dbdyno watcher")), NAMES, "read")
    with contextlib.ExitStack() as stack, session(engine, NAMES["on"]) as on:
        watcher.mark("on", 1)
        watcher.pause()
        on.execute("select pg_sleep(.1)")
        assert slept(watcher.take()) < 50_000_000
        watcher.resume()
    engine.restart()
    with contextlib.ExitStack() as stack, session(engine, NAMES["on"]) as on:
        stack.callback(watcher.stop)
        time.sleep(0.6)  # so that the recorder has noticed
        watcher.take()
        watcher.mark("on", 2)
        on.execute("select pg_sleep(.1)")
        assert slept(watcher.take()) > 50_000_000
    assert Watch().waits == "auto"


def test_a_server_that_is_not_here_is_refused() -> None:
    class Elsewhere:
        def execute(self, _question: str) -> Elsewhere:
            return self

        def fetchall(self) -> list[tuple[int, int, str]]:
            return [(1 << 22 | 1, 1, "psql")]

    with pytest.raises(TargetError, match="read or timed only on the server's machine"):
        ExactWatcher(Elsewhere, NAMES).mark(None, 0)  # type: ignore[arg-type]
