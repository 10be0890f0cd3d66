"""Sessions that a lost host leaves at its server: they end, and no other session does."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cluster import Cluster, cluster
from psycopg.conninfo import conninfo_to_dict
from test_load_on_hosts import Begun

from conftest import Desk
from dbdyno import _core
from dbdyno.base.core_types import LoadSpec
from dbdyno.bench.engine import remaining_sessions
from dbdyno.bench.engine.remaining_sessions import RemainingSessions
from dbdyno.bench.mariadb.remaining_sessions import MariaDBSessions
from dbdyno.bench.mariadb.server import MariaDB
from dbdyno.bench.postgres.remaining_sessions import KEEPALIVES, PostgresSessions
from dbdyno.bench.postgres.server import Postgres
from mariadb_server import MariaServer
from waiting import until


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaining_sessions, "GRACE_S", 0.3)


@contextlib.contextmanager
def opened(connection: dict[str, Any], sessions: int = 3) -> Iterator[Any]:
    """Open the sessions of a load with one arm; yield the load."""
    spec: LoadSpec = {
        "seed": 1,
        "protocol": "simple",
        "arms": [
            {
                "name": "a",
                "connection": connection,
                "scripts": [{"name": "one", "text": "select 1;"}],
                "sessions": sessions,
            }
        ],
    }
    load = _core.Load(spec)
    assert load.server_sessions(0) == []
    load.connect(0)
    try:
        yield load
    finally:
        load.disconnect(0)
        assert load.server_sessions(0) == []


def pids(conn: psycopg.Connection[Any], name: str) -> set[int]:
    rows = conn.execute("select pid from pg_stat_activity where application_name = %s", [name]).fetchall()
    return {pid for (pid,) in rows}


def test_only_the_noted_sessions_of_postgresql_end(dsn: str) -> None:
    target = Postgres.open(dsn)
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        opened({**target.conninfo(), "application_name": "lost"}) as lost,
        opened({**target.conninfo(), "application_name": "kept"}) as kept,
    ):
        sessions = PostgresSessions(target)
        assert set(lost.server_sessions(0)) == pids(conn, "lost")
        known = sessions.identify(lost.server_sessions(0))
        assert known.keys() == pids(conn, "lost")
        # Numbers of sessions that began at another time: the server has given them to somebody else since.
        others = dict.fromkeys(kept.server_sessions(0), next(iter(known.values())))
        sessions.end({**known, **others})
        assert pids(conn, "lost") == set()
        assert pids(conn, "kept") == set(kept.server_sessions(0))


def test_sessions_that_end_by_themselves_get_the_time_for_it(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remaining_sessions, "GRACE_S", 30)
    target = Postgres.open(dsn)
    with opened(target.conninfo()) as load:
        known = PostgresSessions(target).identify(load.server_sessions(0))
    begun = time.monotonic()
    PostgresSessions(target).end(known)
    assert time.monotonic() - begun < 20


def test_a_session_of_a_host_has_keepalives_unless_the_user_sets_others(dsn: str) -> None:
    sessions = PostgresSessions(Postgres.open(dsn))

    def shown(options: str | None) -> dict[str, str]:
        made = sessions.with_keepalives({"options": options})["options"]
        with psycopg.connect(**{**conninfo_to_dict(dsn), "options": made}) as conn:  # type: ignore[arg-type]
            rows = conn.execute("select name, setting from pg_settings where name = any(%s)", [list(KEEPALIVES)])
            return dict(rows.fetchall())

    assert shown(None) == KEEPALIVES
    assert shown("-c tcp_keepalives_idle=77") == {**KEEPALIVES, "tcp_keepalives_idle": "77"}


def test_behind_a_pooler_no_session_is_noted_or_altered(dsn: str) -> None:
    target = Postgres.open(dsn)
    target.pooled = True
    with opened(target.conninfo()) as load:
        assert PostgresSessions(target).identify(load.server_sessions(0)) == {}
    assert PostgresSessions(target).with_keepalives({"options": None}) == {"options": None}


def test_only_the_noted_sessions_of_mariadb_end(maria: MariaServer) -> None:
    target = MariaDB.open(maria.dsn)
    sessions = MariaDBSessions(target)
    with opened(target.load_connection("lost")) as lost, opened(target.load_connection("kept")) as kept:
        known = sessions.identify(lost.server_sessions(0))
        assert known.keys() == set(lost.server_sessions(0))
        sessions.end({**known, **dict.fromkeys(kept.server_sessions(0), "another place")})
        assert sessions.identify(lost.server_sessions(0)) == {}
        assert sessions.identify(kept.server_sessions(0)).keys() == set(kept.server_sessions(0))


class Noting:
    """Server that records the requests that it gets."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    def with_keepalives(self, connection: Any) -> Any:
        return connection

    def identify(self, numbers: Any) -> dict[int, str]:
        self.asked.append(list(numbers))
        return dict.fromkeys(numbers, "start")

    def end(self, known: Any) -> None:
        self.asked.append(known)


def test_a_server_is_asked_for_other_sessions_only_and_closed_ones_are_forgotten() -> None:
    remaining = RemainingSessions([one := Noting(), other := Noting()])
    for numbers in ([1, 2], [2, 1], [2, 3]):
        remaining.note(0, numbers)
    remaining.note(1, [9])
    remaining.forget(1)
    remaining.end()
    remaining.end()
    assert one.asked == [[1, 2], [2, 3], {2: "start", 3: "start"}]
    assert other.asked == [[9]]


def check_frozen_worker(desk: Desk, dsn: str, sessions: Callable[[], int], found: Cluster) -> None:
    """Check that a frozen host's sessions end at the server, and that the run ends, while the host is still frozen."""
    run = Begun(desk, dsn, found, blocks=40)
    own = sessions()
    os.kill(found.workers[0].pid, signal.SIGSTOP)
    try:
        assert until(lambda: sessions() < own, 90)
        assert run.process.wait(300) == 2, run.said.read_text()
        assert sessions() == 0
    finally:
        os.kill(found.workers[0].pid, signal.SIGCONT)
    assert run.status() == "aborted"


@pytest.mark.soak
def test_a_frozen_host_leaves_no_session_at_postgresql(desk: Desk, dsn: str, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as found, psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table if not exists counted (n int)")
        check_frozen_worker(desk, dsn, lambda: len(pids(conn, "dbdyno/a") | pids(conn, "dbdyno/b")), found)


@pytest.mark.soak
def test_a_frozen_host_leaves_no_session_at_mariadb(desk: Desk, maria: MariaServer, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as found, maria.connect() as conn, conn.cursor() as cursor:
        cursor.execute("create or replace table test.counted (n int)")

        def sessions() -> int:
            cursor.execute("select count(*) from information_schema.processlist where db = 'test'")
            return int(cursor.fetchone()[0])

        check_frozen_worker(desk, maria.dsn, sessions, found)
