"""Work of lock holders while others waited: planted on a live server, beside sessions that commit all the time."""

from __future__ import annotations

import contextlib
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from record_help import copied, loaded, recorded, session
from watch_help import own_server

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.study.analysis.traces.compare import compare_traces
from dbdyno.study.analysis.traces.options import ComparisonOptions
from dbdyno.trace.holders import THINK, WORK, LockWaits, holders
from dbdyno.trace.report import report_page
from dbdyno.trace.source import open_traces
from kernel_probes import require_probes
from server_binaries import binaries_of
from slow_storage import SlowStorage
from soaked import first
from together import meanwhile, together

KINDS = ("installed", *(pytest.param(major, marks=pytest.mark.soak) for major in ("14", "16", "17", "18")))
ROUNDS = 8
HELD_S = 0.03
Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    require_probes()
    with own_server(binaries_of(request.param)) as running:
        with session(running) as connection:
            connection.execute("create table hot (id int primary key, n int)")
            connection.execute("insert into hot select g, 0 from generate_series(1, 10) g")
        yield running


def committing(engine: EmbeddedPostgres) -> contextlib.AbstractContextManager[list[str]]:
    """Run two other sessions, which commit dozens of times while a lock is held."""
    return loaded(engine, pause_s=0.001)


def update(connection: Connection) -> None:
    connection.execute("update hot set n = n + 1 where id = 1")


def sleeps(connection: Connection) -> None:
    connection.execute("select pg_sleep(%s)", [HELD_S])


def thinks(_connection: Connection) -> None:
    time.sleep(HELD_S)


def works(connection: Connection) -> None:
    connection.execute("select count(*) from generate_series(1, 200000)")


def planted(
    engine: EmbeddedPostgres,
    run: Path,
    during: Callable[[Connection], None],
    *,
    end: str = "commit",
    take: Callable[[Connection], None] = update,
    wait: Callable[[Connection], None] = update,
) -> dict[str, LockWaits]:
    """Let one session hold a lock that another waits for, in several rounds, while others commit."""
    with committing(engine) as failed, session(engine) as holder, session(engine) as waiter, recorded(engine, run):
        for _ in range(ROUNDS):
            holder.execute("begin")
            take(holder)
            with together(partial(wait, waiter)):
                time.sleep(0.003)
                during(holder)
                holder.execute(end)
    assert failed == []
    with open_traces([str(run)]) as traces:
        return holders(traces)


def words(page: JsonObject) -> str:
    return " ".join(cause["sentence"] for cause in page["why"][0]["causes"])


def lock(connection: Connection) -> None:
    connection.execute("lock table hot in access exclusive mode")


def read(connection: Connection) -> None:
    connection.execute("select count(*) from hot")


@pytest.mark.parametrize(
    ("during", "name", "end"),
    first(
        (sleeps, "Timeout:PgSleep", "commit"),
        (thinks, THINK, "commit"),
        (works, WORK, "commit"),
        (thinks, THINK, "rollback"),
        (sleeps, "Timeout:PgSleep", "rollback"),
        (works, WORK, "rollback"),
        count=4,
    ),
)
def test_what_the_holder_of_a_row_did_is_named(
    engine: EmbeddedPostgres, tmp_path: Path, during: Callable[[Connection], None], name: str, end: str
) -> None:
    found = planted(engine, tmp_path / "run", during, end=end)["Lock:transactionid"]
    assert found.is_known
    assert found.count >= ROUNDS
    assert next(iter(found.meanwhile)) == name
    assert found.shares()[name] > 0.6
    assert sum(found.shares().values()) == pytest.approx(found.known_ns / found.time_ns)
    if during is thinks:
        with open_traces([str(tmp_path / "run")]) as traces:
            assert "of it while the server waited for the holder's client" in words(report_page(traces))


def test_what_the_holder_of_a_table_did_is_named(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    found = planted(engine, tmp_path / "run", sleeps, take=lock, wait=read)["Lock:relation"]
    assert found.is_known
    assert found.shares()["Timeout:PgSleep"] > 0.6


def test_a_long_query_that_holds_a_table_by_reading_it_is_named(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """No transaction ends with a flush here, and nobody says commit."""
    run = tmp_path / "run"
    with committing(engine), session(engine) as reader, session(engine) as changer, recorded(engine, run):
        for _ in range(ROUNDS):
            with together(partial(reader.execute, "select count(*), pg_sleep(0.03) from hot")):
                time.sleep(0.01)
                changer.execute("alter table hot alter n set default 0")
    with open_traces([str(run)]) as traces:
        found = holders(traces)["Lock:relation"]
    assert found.is_known
    assert found.shares()["Timeout:PgSleep"] > 0.6


def test_a_commit_without_a_flush_is_the_end_of_a_transaction_too(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    def lazy(connection: Connection) -> None:
        connection.execute("set local synchronous_commit = off")
        update(connection)

    found = planted(engine, tmp_path / "run", thinks, take=lazy)["Lock:transactionid"]
    assert found.is_known
    assert found.shares()[THINK] > 0.6


def test_a_chain_of_locks_ends_at_what_the_first_holder_did(engine: EmbeddedPostgres, tmp_path: Path) -> None:
    """Two wait for one row: the second one for the first one's right to be next (`Lock:tuple`)."""
    run = tmp_path / "run"
    with (
        committing(engine),
        session(engine) as holder,
        session(engine) as one,
        session(engine) as two,
        recorded(engine, run),
    ):
        for _ in range(ROUNDS):
            holder.execute("begin")
            update(holder)
            waiting = [threading.Thread(target=update, args=[each]) for each in (one, two)]
            for thread in waiting:
                thread.start()
                time.sleep(0.003)
            thinks(holder)
            holder.execute("commit")
            for thread in waiting:
                thread.join()
    with open_traces([str(run)]) as traces:
        found = holders(traces)
    assert found["Lock:tuple"].shares()[THINK] > 0.6


def test_a_storage_that_syncs_slowly_is_named_before_the_locks_behind_it(tmp_path: Path) -> None:
    """Four sessions update one row each time: most of what they lose is waits for each other."""
    require_probes()
    if shutil.which("cc") is None:
        pytest.skip("cc not found: apt-get install gcc")
    runs = [str(tmp_path / name) for name in ("good", "bad")]
    (tmp_path / "server").mkdir()
    with SlowStorage(binaries=copied(binaries_of("installed"), tmp_path / "server")) as engine:
        with session(engine) as connection:
            connection.execute("create table hot (id int primary key, n int)")
            connection.execute("insert into hot select g, 0 from generate_series(1, 10) g")

        def work() -> None:
            with session(engine) as connection:
                for _ in range(40):
                    update(connection)

        for run, us in zip(runs, (300, 6_000), strict=True):
            engine.delay_us(us)
            with recorded(engine, Path(run)), together(*[work] * 4):
                pass
    with open_traces(runs[:1]) as base, open_traces(runs[1:]) as other:
        model = compare_traces(base, other, ComparisonOptions(names=("good", "bad")))
        by_lock = holders(other)["Lock:transactionid"]
    first = model["verdict"]["sentences"][0]
    assert "IO:WALSync takes" in first
    assert "meanwhile others waited for locks of these sessions" in first
    assert model["verdict"]["decision"] == "slower"
    assert next(iter(by_lock.meanwhile)) == "IO:WALSync"


@pytest.mark.parametrize("seed", first(*range(2)))
def test_shares_are_those_of_the_holders_that_the_server_names(
    engine: EmbeddedPostgres, tmp_path: Path, seed: int
) -> None:
    """Six sessions update rows drawn by lot; a seventh asks `pg_blocking_pids` every millisecond."""
    run = tmp_path / "run"
    asked: list[tuple[int, int, int]] = []

    def ask(over: threading.Event) -> None:
        with session(engine) as connection:
            while not over.is_set():
                asked.extend(
                    connection.execute(
                        "select (extract(epoch from clock_timestamp()) * 1e9)::bigint, pid, blocker"
                        " from pg_stat_activity, unnest(pg_blocking_pids(pid)) blocker"
                        " where wait_event = 'transactionid'"
                    ).fetchall()
                )
                time.sleep(0.001)

    def work(number: int) -> None:
        dice = random.Random(100 * seed + number)
        with session(engine) as connection:
            for _ in range(60):
                connection.execute("begin")
                connection.execute("update hot set n = n + 1 where id = %s", [dice.randint(1, 3)])
                (sleeps if dice.random() < 0.1 else thinks)(connection) if dice.random() < 0.2 else None
                connection.execute("commit")

    with recorded(engine, run), meanwhile(ask), together(*(partial(work, number) for number in range(6))):
        pass
    with open_traces([str(run)]) as traces:
        found = holders(traces)["Lock:transactionid"]
        thought = _by_the_server(traces, asked)
    assert found.is_known
    assert len(thought) > 50, "the server was asked during enough of the waits"
    share = sum(ns for ns, _ in thought) / sum(ns for _, ns in thought)
    assert found.shares().get(THINK, 0.0) == pytest.approx(share, abs=0.15), f"seed {seed}"


def _by_the_server(traces: Any, asked: list[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return, for each wait in `asked`, how long the blocker's client was idle, and how long the wait lasted [ns]."""
    traces.connection.execute("create temp table asked (moment bigint, pid varchar, blocker varchar)")
    columns = [list(column) for column in zip(*asked, strict=True)]
    traces.connection.execute("insert into asked select unnest(?), unnest(?), unnest(?)", columns)
    rows: list[tuple[int, int]] = traces.connection.execute(
        """
        with chosen as (
          select w.wait, w.started_ns as begun, w.started_ns + w.elapsed_ns as over,
                 arg_max(h.session, a.moment) as holder
          from waits w join sessions s using (session)
          join asked a on a.pid = s.process and a.moment between w.started_ns and w.started_ns + w.elapsed_ns
          join sessions h on h.process = a.blocker
          where w.event = 'Lock:transactionid' group by all)
        select sum(greatest(least(over, t.started_ns + t.elapsed_ns) - greatest(begun, t.started_ns), 0))::bigint,
               any_value(over - begun)
        from chosen c left join waits t on t.session = c.holder and t.event = 'Client:ClientRead'
          and t.started_ns < over and t.started_ns + t.elapsed_ns > begun
        group by c.wait
        """
    ).fetchall()
    return [(thought or 0, whole) for thought, whole in rows]
