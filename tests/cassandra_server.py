"""The Cassandra of tests and benches: the one that dbdyno starts itself, with a crash.

    with CassandraServer() as server:
        server.connect().execute("select release_version from system.local")

Its jars are those of `make setup-wide`; without them `missing()` says so.
"""

from __future__ import annotations

from dbdyno.base.errors import TargetError
from dbdyno.bench.cassandra.embedded import EmbeddedCassandra, check_installed


def missing() -> str | None:
    """Why no Cassandra can be started here; None where it can."""
    try:
        check_installed()
    except TargetError as error:
        return f"{error.message} ({error.next_step})"
    return None


class CassandraServer(EmbeddedCassandra):
    """One node, as a context manager; `start` starts it again after `kill`."""

    def kill(self) -> None:
        """SIGKILL: what a crash looks like from outside."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
