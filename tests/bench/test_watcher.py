"""Waits recorded during the load: to which session and block they belong; watching never breaks the load."""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dbdyno.bench.poll import WAIT_COLUMNS
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.watch import _SAMPLE, APPLICATION_NAME_BYTES, Watcher, application_names
from together import meanwhile
from waiting import until

FAST_NS = 10_000_000


@contextlib.contextmanager
def busy(target: Postgres, application_name: str, sql: str) -> Iterator[int]:
    """Run the statement repeatedly in a session with this application name; yield its process ID."""
    conn = target.connect(application_name=application_name)

    def work(stop: threading.Event) -> None:
        while not stop.is_set():
            conn.execute(sql.encode())

    with contextlib.closing(conn), meanwhile(work):
        yield conn.info.backend_pid


def test_samples_know_their_arm_by_the_sessions_name(own: Postgres) -> None:
    names = application_names(["base", "try"])
    with (
        busy(own, names["base"], "select pg_sleep(0.2)") as base,
        busy(own, names["try"], "select count(*) from generate_series(1, 200000)") as other,
        busy(own, "psql", "select pg_sleep(0.2)") as stranger,
        Watcher(own, ["base", "try"], period_ns=FAST_NS) as watcher,
    ):
        watcher.mark(None, 7)
        watcher.take()
        assert until(lambda: watcher.samples >= 20)
    rows = watcher.take()
    assert tuple(rows) == WAIT_COLUMNS
    assert len({len(column) for column in rows.values()}) == 1
    load = {
        (arm, pid): event
        for arm, pid, event, backend in zip(rows["arm"], rows["session"], rows["event"], rows["object"], strict=True)
        if backend == "client backend"
    }
    assert load[("base", base)] == "PgSleep"
    assert ("try", other) in load
    assert stranger not in rows["session"]
    assert set(rows["fidelity"]) == {"sampled"}
    first, last = min(rows["started_ns"]), max(rows["started_ns"])
    stood = dict(zip(rows["started_ns"], rows["elapsed_ns"], strict=True))
    assert sum(stood.values()) - stood[first] == pytest.approx(last - first, rel=0.05), (
        "a look stands for the time since"
    )
    assert 7 in rows["block"]
    assert all(isinstance(at, int) for at in rows["started_ns"])
    assert watcher.take()["arm"] == []


def look_at(server: Postgres, statement: str, looks: int) -> tuple[int, dict[str, list[Any]]]:
    """The process of a session that executes a statement all the time, and what so many looks saw."""
    with (
        busy(server, application_names(["base"])["base"], statement) as pid,
        Watcher(server, ["base"], period_ns=FAST_NS) as watcher,
    ):
        assert until(lambda: watcher.samples >= looks)
    return pid, watcher.take()


def test_a_working_session_is_on_the_cpu(own: Postgres) -> None:
    pid, rows = look_at(own, "select count(*) from generate_series(1, 300000)", 20)
    events = [e for e, p in zip(rows["event"], rows["session"], strict=True) if p == pid]
    assert "CPU" in events


def test_idle_sessions_are_no_waits_but_an_open_transaction_is(own: Postgres) -> None:
    names = application_names(["idle", "open"])
    with (
        contextlib.closing(own.connect(application_name=names["idle"])),
        contextlib.closing(own.connect(application_name=names["open"])) as conn,
    ):
        conn.execute("begin")
        with Watcher(own, ["idle", "open"], period_ns=FAST_NS) as watcher:
            assert until(lambda: watcher.samples >= 5)
        rows = watcher.take()
    load = [one for one in zip(*rows.values(), strict=True) if one[7] == "client backend"]
    assert {one[0] for one in load} == {"open"}
    assert {(one[6], one[5]) for one in load} == {("Client", "ClientRead")}


def test_every_state_of_a_session_that_is_not_idle_is_sampled() -> None:
    """'fastpath function call' was broken over two lines, so that such sessions were never seen."""
    states = set(re.findall(r"'([^']*)'", _SAMPLE.partition("or (backend_type")[0].partition("state in")[2]))
    assert states == {"active", "idle in transaction", "idle in transaction (aborted)", "fastpath function call"}


def test_a_marked_turn_gives_its_arm_to_background_processes(own: Postgres) -> None:
    with (
        contextlib.closing(own.connect()) as conn,
        Watcher(own, ["base"], period_ns=FAST_NS) as watcher,
    ):
        watcher.mark("base", 3)
        conn.execute("create table if not exists filler (t text)")

        def seen() -> bool:
            conn.execute("insert into filler select repeat('x', 999) from generate_series(1, 5000)")
            conn.execute("checkpoint")
            rows = watcher.take()
            return any(
                (arm, block) == ("base", 3)
                for arm, block, backend in zip(rows["arm"], rows["block"], rows["object"], strict=True)
                if backend in ("checkpointer", "walwriter", "background writer", "io worker")
            )

        assert until(seen, 30)
        conn.execute("drop table filler")


def test_pausing_stops_the_looks(own: Postgres) -> None:
    with Watcher(own, ["base"], period_ns=FAST_NS) as watcher:
        assert until(lambda: watcher.samples >= 2)
        watcher.pause()
        time.sleep(0.1)
        count = watcher.samples
        time.sleep(0.2)
        assert watcher.samples == count
        watcher.resume()
        assert until(lambda: watcher.samples > count)


def test_looks_come_at_random_instants_so_that_slices_cannot_hide(own: Postgres) -> None:
    name = application_names(["base"])["base"]
    with (
        busy(own, name, "select pg_sleep(0.5)"),
        Watcher(own, ["base"], period_ns=40_000_000, seed=3) as watcher,
    ):
        assert until(lambda: watcher.samples >= 25)
    at_ns = sorted(set(watcher.take()["started_ns"]))
    gaps_ms = [(b - a) / 1e6 for a, b in itertools.pairwise(at_ns)]
    assert max(gaps_ms) - min(gaps_ms) > 15
    assert min(gaps_ms) > 15


def test_a_lost_connection_is_remade_and_told(own: Postgres) -> None:
    with (
        contextlib.closing(own.connect()) as conn,
        Watcher(own, ["base"], period_ns=FAST_NS) as watcher,
    ):
        assert until(lambda: watcher.samples >= 2)
        conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'dbdyno watcher'")
        count = watcher.samples
        assert until(lambda: watcher.samples > count + 2)


def test_a_server_that_is_gone_is_a_problem_not_an_exception(
    engine: EmbeddedPostgres,
) -> None:
    with EmbeddedPostgres(binaries=engine.binaries) as other:
        watcher = Watcher(Postgres.from_engine(other), ["base"], period_ns=FAST_NS)
        watcher.start()
        watcher.start()
        assert until(lambda: watcher.samples >= 1)
        other.stop()
        assert until(lambda: watcher.problem)
        watcher.stop()
        watcher.stop()


@pytest.mark.parametrize(
    "arms",
    [
        ["base", "try"],
        ["x" * 80 + "1", "x" * 80 + "2"],
        ["naïve", "na\nve", "na?ve"],
        ["'; drop table t", "%s", ""],
    ],
)
def test_application_names_are_distinct_and_what_the_engine_keeps(own: Postgres, arms: list[str]) -> None:
    names = application_names(arms)
    assert list(names) == arms
    assert len(set(names.values())) == len(arms)
    for name in names.values():
        assert name.startswith("dbdyno/")
        assert len(name.encode()) <= APPLICATION_NAME_BYTES
        with contextlib.closing(own.connect(application_name=name)) as conn:
            row = conn.execute("select current_setting('application_name')").fetchone()
            assert row == (name,)


def test_a_plain_role_sees_the_waits_of_its_own_sessions(plain: Postgres) -> None:
    pid, rows = look_at(plain, "select pg_sleep(0.2)", 10)
    assert set(rows["session"]) == {pid}
    assert "PgSleep" in rows["event"]
