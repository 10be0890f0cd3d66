"""Cassandra for tests and benches: the embedded server of dbdyno, which can also be crashed.

    with CassandraServer() as server:
        server.connect().execute("select release_version from system.local")

Its jars are those of `make setup-wide`; without them `missing()` says so.
"""

from __future__ import annotations

from dbdyno.base.errors import TargetError
from dbdyno.bench.cassandra.embedded import EmbeddedCassandra, check_installed


def missing() -> str | None:
    """Return the reason why Cassandra cannot be started here, or None."""
    try:
        check_installed()
    except TargetError as error:
        return f"{error.message} ({error.next_step})"
    return None


class CassandraServer(EmbeddedCassandra):
    """One Cassandra node, as a context manager; `start` starts it again after `kill`."""

    def kill(self) -> None:
        """Kill the node with SIGKILL, like a crash."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None
