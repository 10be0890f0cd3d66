"""Watching: sampled sessions become average active sessions, waits, and who blocked whom."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from snapshot_help import Lab, section

from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.report import report
from dbdyno.snapshot.store.folder import Snapshot
from dbdyno.snapshot.taking.take import watch
from together import meanwhile, together


def watched(lab: Lab, seconds: float, every_s: float = 60.0) -> list[Snapshot]:
    found = list(watch(lab.dsn, lab.store, Options(), every_s=every_s, for_s=seconds, sample_s=0.05))
    assert all(isinstance(one, Snapshot) for one in found), found
    return found


@pytest.mark.soak
def test_three_sleepers_are_three_active_sessions(lab: Lab):
    def sleeper(stop: threading.Event) -> None:
        with contextlib.closing(lab.connect()) as conn:
            while not stop.is_set():
                conn.execute("select pg_sleep(0.5)")

    with meanwhile(*[sleeper] * 3):
        time.sleep(0.5)
        first, last = watched(lab, 4)
    with Interval(lab.store, first, last) as interval:
        waits = section(report(interval), "waits")
    events = {row["event"]: row for row in waits["tables"][1]["rows"]}
    assert events["PgSleep"]["aas"] == pytest.approx(3, abs=0.4)
    assert events["PgSleep"]["type"] == "Timeout"
    assert last.manifest["cost"]["looks"] >= 10


@pytest.mark.soak
def test_who_blocked_whom(lab: Lab):
    lab.run("create table fought (id int primary key, v int)", "insert into fought values (1, 1)")
    with contextlib.closing(lab.connect(application_name="holder")) as holder:
        holder.execute("begin")
        holder.execute("update fought set v = 2")

        def wait() -> None:
            with contextlib.closing(lab.connect()) as waiter:
                waiter.execute("update fought set v = 3")

        with together(wait):
            time.sleep(0.3)
            first, last = watched(lab, 3)
            pid = holder.info.backend_pid
            holder.execute("commit")
    with Interval(lab.store, first, last) as interval:
        model = report(interval)
    roots, trees = section(model, "blocking")["tables"]
    (root,) = roots["rows"]
    assert (root["pid"], root["state"]) == (str(pid), "idle in transaction")
    assert [row["lock"] for row in trees["rows"]] == ["idle in transaction", "transactionid ShareLock"]
    classes = {r["class"]: r["aas"] for r in section(model, "waits")["tables"][0]["rows"]}
    assert classes["lock"] == pytest.approx(1, abs=0.25)


@pytest.mark.soak
def test_without_samples_waits_are_not_measured(lab: Lab):
    first, last = lab.take(), lab.take()
    waits = section(lab.report(first, last), "waits")
    assert waits["tables"] == []
    assert "dbdyno snap watch" in waits["not_measured"][0]["next"]


@pytest.mark.soak
def test_an_interval_over_several_snapshots_has_curves(lab: Lab):
    stop = threading.Event()
    found: list[Snapshot] = []
    for made in watch(lab.dsn, lab.store, Options(), every_s=0.5, sample_s=0.05, stop=stop):
        assert isinstance(made, Snapshot), made
        found.append(made)
        if len(found) == 3:
            stop.set()
    with Interval(lab.store, found[0], found[-1]) as interval:
        model = report(interval)
    names = {metric["name"] for metric in model["series"]["metrics"]}
    assert {"tps", "wal", "hitrate"} <= names
    assert len(model["series"]["at_us"]) == len(found) - 1


def test_a_server_that_goes_away_is_told_and_watching_goes_on(own_lab: Lab):
    stop = threading.Event()
    found = []
    for made in watch(own_lab.dsn, own_lab.store, Options(), every_s=0.5, sample_s=0.1, stop=stop):
        found.append(made)
        if len(found) == 1:
            own_lab.engine.stop()
        if len(found) == 3:
            own_lab.engine.start()
        if len(found) == 5:
            stop.set()
    assert [isinstance(one, Snapshot) for one in found[:3]] == [True, False, False]
    assert isinstance(found[-1], Snapshot)
