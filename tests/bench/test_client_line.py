"""The port through which clients of other programs reach the server over a longer network path: access and delay."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from dbdyno.base.errors import TargetError
from dbdyno.bench.clients.network_line import ClientLine, is_from_session
from dbdyno.bench.mariadb.clients import environment_of
from dbdyno.bench.postgres.clients import environment, parameters_through_port
from waiting import until

DELAY_NS = 10_000_000
ENVIRONMENT = {"host": "db.example", "port": "5432", "user": "u", "dbname": "d", "sslmode": "verify-full"}


@contextlib.contextmanager
def echoing() -> Iterator[int]:
    """Yield the port of a server that echoes what it receives."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    threading.Thread(target=back, args=(connection,), daemon=True).start()

        def back(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                while data := connection.recv(4096):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        # A blocked accept goes on listening after close.
        listening.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def line(port: int, delay_ns: int = DELAY_NS) -> Iterator[tuple[ClientLine, int]]:
    own = ClientLine({"delay_ns": delay_ns, "rate_bit_per_s": None}, "localhost", port, lambda at: {"PORT": str(at)})
    try:
        yield own, int(own.open()["PORT"])
    finally:
        own.close()


def answer(port: int) -> bytes:
    """Return the answer to one word; empty if the port rejects the client."""
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.settimeout(5)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"word")
            return connection.recv(100)
    return b""


def test_bytes_take_the_delay_each_way_and_arrive_unchanged():
    with echoing() as server, line(server) as (own, port):
        own.admit(os.getpid())
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            for word in (b"one", bytes(range(256)) * 200):
                began, got = time.monotonic_ns(), b""
                connection.sendall(word)
                while len(got) < len(word):
                    got += connection.recv(1 << 16)
                assert got == word and time.monotonic_ns() - began >= 2 * DELAY_NS
        assert own.let_in == 1 and own.bypass_problem(1) is None
        late = own.lateness(3)
        assert late["arm"] == 3 and late["pieces"] >= 4


def test_only_the_client_is_let_in_and_only_while_its_arm_runs():
    with echoing() as server, line(server, 0) as (own, port):
        assert answer(port) == b"", "its arm does not run"
        own.admit(1)
        assert answer(port) == b"", "another process"
        own.admit(os.getpid())
        assert answer(port) == b"word"
        own.admit(None)
        assert answer(port) == b""
        own.close()
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), 1)


def test_what_a_client_started_is_let_in_too():
    """Its session is what counts: a driver may be a process of its own."""
    code = "import socket, sys, time\ns = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\ntime.sleep(30)\n"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        outer = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]])\n"
        words = [sys.executable, "-c", outer, code, str(port)]
        with subprocess.Popen(words, start_new_session=True) as process:
            try:
                connection, peer = listening.accept()
                assert is_from_session(process.pid, peer[1], port) and not is_from_session(os.getpid(), peer[1], port)
                connection.close()
            finally:
                os.killpg(process.pid, 9)


def test_an_ipv6_socket_that_connects_to_127_0_0_1_is_found():
    """As Java's are."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with socket.socket(socket.AF_INET6) as own:
            try:
                own.connect(("::ffff:127.0.0.1", port))
            except OSError as error:
                pytest.skip(f"no IPv6 here: {error}")
            assert is_from_session(os.getpid(), own.getsockname()[1], port)


def test_a_client_that_goes_past_the_line_is_named():
    with echoing() as server, line(server, 0) as (own, port):
        own.admit(os.getpid())
        assert "connected only 0 times through its arm's emulated network" in str(own.bypass_problem(2))
        answer(port)
        assert until(lambda: "connected only 1 times" in str(own.bypass_problem(2)), 5)


def test_a_server_that_does_not_answer_is_told():
    with socket.create_server(("127.0.0.1", 0)) as unused:
        nobody = unused.getsockname()[1]
    with line(nobody, 0) as (own, port):
        own.admit(os.getpid())
        assert answer(port) == b""
        assert until(lambda: "the server behind it does not answer" in str(own.bypass_problem(1)), 5)
    with pytest.raises(TargetError, match=r"the host 'no\.such\.host\.invalid' cannot be resolved"):
        ClientLine({"delay_ns": 0, "rate_bit_per_s": None}, "no.such.host.invalid", 1, lambda _: {}).open()


def test_the_name_against_which_a_certificate_is_checked_stays_for_libpq():
    own = environment(parameters_through_port({**ENVIRONMENT, "hostaddr": "192.0.2.1"}, 4711, True))
    assert (own["PGHOST"], own["PGHOSTADDR"], own["PGPORT"]) == ("db.example", "127.0.0.1", "4711")
    assert "hostaddr=127.0.0.1" in own["DBDYNO_DSN"] and "@db.example:4711/" in own["DBDYNO_DSN"]
    other = environment(parameters_through_port(ENVIRONMENT, 4711, False))
    assert other["PGHOST"] == "127.0.0.1" and "PGHOSTADDR" not in other
    given = {"host": "db", "port": 3306, "user": "u", "dbname": "d", "application_name": "n"}
    assert environment_of({**given, "host": "127.0.0.1", "port": 4711}, "a")["MARIADB_PORT"] == "4711"
