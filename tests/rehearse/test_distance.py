"""A more distant side is not reported as slower: the difference in round-trip time is subtracted from its times."""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator

import pytest

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.distance import subtract_distance
from dbdyno.rehearse.side import Side
from dbdyno.rehearse.statement import Parameters, Statement

DELAY_S = 0.002


@contextlib.contextmanager
def relay(port: int, delay_s: float) -> Iterator[int]:
    """Yield a port that delays each message to the server by `delay_s`."""
    opened: list[socket.socket] = []
    with contextlib.ExitStack() as ending, socket.create_server(("127.0.0.1", 0)) as listening:
        ending.callback(lambda: [one.close() for one in opened])

        def pass_on(source: socket.socket, sink: socket.socket, wait_s: float) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    time.sleep(wait_s)
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listening.accept()
                    server = socket.create_connection(("127.0.0.1", port))
                    opened.extend((client, server))
                    for pair in ((client, server, delay_s), (server, client, 0.0)):
                        threading.Thread(target=pass_on, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]


@pytest.fixture(scope="module")
def engine() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as running:
        yield running


def side(name: str, engine: EmbeddedPostgres, port: int) -> Side:
    return Side(name, Postgres({**engine.tcp_conninfo(), "port": port}))


def quick_ns(one: Side) -> float:
    statement = Statement(1, "select 1", 1, 1)
    with one.transaction(statement):
        return statistics.quantiles([one.execute(Parameters("select 1"), undo=False) for _ in range(60)], n=10)[0]


def test_the_difference_of_the_round_trips_is_taken_off(engine: EmbeddedPostgres) -> None:
    with relay(engine.port, DELAY_S) as far:
        old, new = side("old", engine, engine.port), side("new", engine, far)
        with contextlib.closing(old), contextlib.closing(new):
            assert quick_ns(new) - quick_ns(old) > 0.9e9 * DELAY_S
            said = subtract_distance(old, new)
            assert said.startswith("A round trip to the old server takes ")
            assert said.endswith("the times of the new server are reduced by the difference.")
            assert abs(quick_ns(new) - quick_ns(old)) < 0.5e9 * DELAY_S


def test_sides_that_are_equally_far_keep_their_times(engine: EmbeddedPostgres) -> None:
    with relay(engine.port, 0.0) as one, relay(engine.port, 0.0) as other:
        old, new = side("old", engine, one), side("new", engine, other)
        with contextlib.closing(old), contextlib.closing(new):
            assert subtract_distance(old, new) == ""
            assert (old.farther_ns, new.farther_ns) == (0, 0)


def test_two_databases_of_one_server_are_not_measured(
    engine: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Side, "ping", lambda _: pytest.fail("the way is the same"))
    old, new = (side(name, engine, engine.port) for name in ("old", "new"))
    assert subtract_distance(old, new) == ""
