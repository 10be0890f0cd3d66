"""Tests of a silent network: a command ends with an error or obeys a signal, and never hangs."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from faulty_network import FaultyNetwork
from lab_help import TWO_ARMS
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dbdyno.base.errors import TargetError
from dbdyno.bench import recorder
from dbdyno.bench.postgres import session
from dbdyno.bench.postgres.server import Postgres
from dbdyno.bench.postgres.session import NoAnswer, StopRequested, open_session
from dbdyno.bench.postgres.watch import Watcher
from mariadb_server import MariaServer, missing
from soaked import first
from waiting import until


@pytest.fixture
def network(dsn: str) -> Iterator[FaultyNetwork]:
    with FaultyNetwork(int(conninfo_to_dict(dsn)["port"])) as made:
        yield made


@pytest.fixture
def through(dsn: str, network: FaultyNetwork) -> dict:
    """Return the connection parameters of the server behind the network."""
    return {**conninfo_to_dict(dsn), "host": "127.0.0.1", "port": str(network.port)}


def test_a_silent_network_ends_a_statement_with_no_answer(network, through):
    with contextlib.closing(open_session(through, answer_s=0.5)) as conn:
        assert conn.execute("select 1").fetchone() == (1,)
        network.mode = "silent"
        with pytest.raises(NoAnswer, match="silent"):
            conn.execute("select 1")
        assert conn.closed


def test_a_network_silent_from_the_start_ends_connecting(network, through):
    network.mode = "silent"
    with pytest.raises(TargetError, match="timeout") as failed:
        Postgres.open(make_conninfo("", **{**through, "connect_timeout": "2"}))
    assert failed.value.unreachable, "a run ends there: it waited for one login after another, 80 s in all"


def test_a_long_statement_lives_while_the_server_knows_it(network, through, monkeypatch):
    monkeypatch.setattr(session, "PROBE_S", 0.3)
    asked = []
    knows = session._knows
    monkeypatch.setattr(session, "_knows", lambda *given: asked.append(1) or knows(*given))
    with contextlib.closing(open_session(through, answer_s=None)) as conn:
        assert conn.execute("select 1 from pg_sleep(1.2)").fetchone() == (1,)
        assert asked, "the server was asked by another way"
        network.mode = "silent"
        monkeypatch.setattr(session, "DEFAULTS", {**session.DEFAULTS, "connect_timeout": "2"})
        with pytest.raises(NoAnswer):
            conn.execute("select 1 from pg_sleep(1)")


def test_a_statement_heeds_the_wish_to_stop_and_is_cancelled(through):
    stop = threading.Event()
    with contextlib.closing(open_session(through, answer_s=None, stop=stop.is_set)) as conn:
        pid = conn.info.backend_pid
        threading.Timer(0.3, stop.set).start()
        with pytest.raises(StopRequested):
            conn.execute("select pg_sleep(600)")
    gone = "select count(*) from pg_stat_activity where pid = %s and state = 'active'"
    with psycopg.connect(**through) as other:
        assert until(lambda: other.execute(gone, [pid]).fetchone() == (0,))


def test_a_statement_with_a_long_limit_ends_where_a_second_connection_finds_nobody(network, through, monkeypatch):
    monkeypatch.setattr(session, "PROBE_S", 0.3)
    monkeypatch.setattr(session, "PROBED_S", 1.0)
    with contextlib.closing(open_session(through, answer_s=600)) as conn:
        assert conn.execute("select 1 from pg_sleep(0.7)").fetchone() == (1,), "the server is there"
        network.mode = "silent"
        with pytest.raises(NoAnswer) as ended:
            conn.execute("select 1")
    assert ended.value.unreachable


def test_what_waits_says_how_long_no_transaction_ended(monkeypatch):
    now, noted = [100.0], []
    monkeypatch.setattr(recorder.time, "monotonic", lambda: now[0])
    silence = recorder.SilenceDetector(noted.append)
    assert silence.extend_text("base", 5) == "base"
    now[0] += 9
    assert silence.extend_text("base", 6) == "base"
    now[0] += 12
    assert silence.extend_text("base", 6) == "base: no answer for 12 s"
    now[0] += 30
    assert silence.extend_text("base", 6) == "base: no answer for 42 s"
    assert noted == ["base: no answer for 12 s"], "once"
    assert silence.extend_text("base", 7) == "base"


@pytest.mark.soak
@pytest.mark.parametrize(
    ("statement", "after_s"),
    [("select 1 from pg_sleep(60);", 4), *(("select 1 from pg_sleep(0.001);", 4 + at / 20) for at in range(6))],
)
def test_a_run_on_a_silent_network_ends_by_itself_in_the_time_that_is_promised(
    lab, network, through, statement, after_s
):
    """Regression: a run showed nothing for 190 s until a signal ended it; between two turns it took 80 s."""
    lab.dsn = make_conninfo("", **through)
    running = lab.start("run", lab.plan(TWO_ARMS, blocks=500, script=statement))
    assert until(lambda: list(lab.folder.glob("runs/*/manifest.json")))
    time.sleep(after_s)
    network.mode = "silent"
    begun = time.monotonic()
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 2, errors
    assert time.monotonic() - begun < 45, errors
    assert "next:" in errors
    assert "no answer for 1" in errors or after_s > 4


@pytest.mark.soak
def test_a_statement_of_the_load_that_takes_long_is_left_alone(lab):
    done = lab("run", lab.plan(TWO_ARMS, blocks=2, script="select 1 from pg_sleep(17);"))
    assert "could not reconnect" not in done.stderr and "no answer for 1" in done.stderr


def test_a_watcher_on_a_silent_network_can_be_stopped(network, through):
    target = Postgres.open(make_conninfo("", **through))
    watcher = Watcher(target, ["a"], period_ns=10_000_000)
    watcher.start()
    assert until(lambda: watcher.samples > 2)
    network.mode = "silent"
    seen = watcher.samples
    watcher.stop()
    assert not any(thread.name == Watcher.name for thread in threading.enumerate()), "it heeds the stop at once"
    assert watcher.samples - seen <= 2


DEAF = """
import contextlib, os, signal, threading
from dbdyno.base.signals import StopSignals
def deaf():
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait(60)
with StopSignals():
    threading.Timer(0.2, lambda: [os.kill(os.getpid(), signal.SIGTERM) for _ in range(2)]).start()
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
    deaf()
"""


def test_the_second_signal_ends_a_process_whose_main_thread_is_deaf():
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 130, done.stderr
    assert "ended at once" in done.stderr


@pytest.mark.parametrize("signals", first(2, 1))
def test_a_run_on_a_silent_network_heeds_signals(lab, network, through, signals):
    lab.dsn = make_conninfo("", **through)
    running = lab.start("run", lab.plan(TWO_ARMS, blocks=500))
    assert until(lambda: list(lab.folder.glob("runs/*/blocks/b000001.json")))
    network.mode = "silent"
    for _ in range(signals):
        running.send_signal(signal.SIGTERM)
        time.sleep(0.5)
    _, errors = running.communicate(timeout=120)
    assert running.returncode in (130, 2), errors
    assert "internal error" not in errors and "a fault in dbdyno" not in errors


def test_a_set_up_that_takes_hours_heeds_a_signal(lab, dsn):
    plan = lab.plan(TWO_ARMS, more='setup = ["select pg_sleep(600)"]')
    running = lab.start("run", plan)
    asleep = "select count(*) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()"
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert until(lambda: conn.execute(asleep).fetchone()[0] == 1)
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=120)
        assert running.returncode == 130, errors
        assert until(lambda: conn.execute(asleep + " and state = 'active'").fetchone()[0] == 0)


@pytest.mark.parametrize("signals", first(0, 1))
def test_snap_watch_on_a_silent_network_goes_on_and_heeds_signals(lab, network, through, signals):
    arguments = ("--every", "1s", "--sample", "0", "--statement-timeout", "1")
    running = lab.start(
        "snap", "watch", "--target", make_conninfo("", **{**through, "connect_timeout": "2"}), *arguments
    )
    assert until(lambda: list(lab.folder.glob("snaps/*/manifest.json")))
    network.mode = "silent"
    if not signals:
        taken = len(list(lab.folder.glob("snaps/*/manifest.json")))
        time.sleep(1)
        network.heal()
        assert until(lambda: len(list(lab.folder.glob("snaps/*/manifest.json"))) > taken), "it goes on"
    running.send_signal(signal.SIGTERM)
    _, errors = running.communicate(timeout=120)
    assert running.returncode in (0, 2), errors
    assert "internal error" not in errors and "a fault in dbdyno" not in errors


@pytest.mark.soak
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_run_on_a_silent_mariadb_ends_by_itself_in_the_time_that_is_promised(lab):
    """Regression: a login without a timeout waited for the greeting of a server that accepts and sends nothing."""
    arms = TWO_ARMS.replace("work_mem", "sort_buffer_size").replace('"8MB"', '"8M"')
    with MariaServer() as server, FaultyNetwork(server.port) as network:
        lab.dsn = server.dsn.replace(str(server.port), str(network.port))
        running = lab.start("run", lab.plan(arms, blocks=500, script="select sleep(0.001);"))
        assert until(lambda: list(lab.folder.glob("runs/*/manifest.json")))
        time.sleep(4)
        network.mode = "silent"
        begun = time.monotonic()
        _, errors = running.communicate(timeout=300)
        assert running.returncode == 2, errors
        assert time.monotonic() - begun < 60, errors
        assert "no answer for 1" in errors and "next:" in errors
