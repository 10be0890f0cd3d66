"""A scheduler and workers started over SSH for one command (Dask's `SSHCluster`).

They end with the command. If this process is killed, the scheduler ends once it has been idle for `IDLE`, and its
workers with it. Host keys and users are those of the user's SSH configuration; Python is at the same path on all hosts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from dbdyno.base.errors import TargetError
from dbdyno.base.json_types import JsonObject

IDLE = "5 minutes"


class SshHost(Protocol):
    """A host to connect to; None means that the SSH configuration decides."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int | None: ...
    @property
    def user(self) -> str | None: ...


@contextlib.contextmanager
def ssh_scheduler(distributed: Any, hosts: Sequence[SshHost]) -> Iterator[str]:
    """Start a scheduler on the first host and a worker on each, and yield the scheduler's address.

    Args:
        distributed: Dask's module.
        hosts: The hosts, at least one.

    Raises:
        TargetError: A host cannot be reached, or the programs do not start there.
    """
    listed = ", ".join(host.name for host in hosts)
    try:
        cluster = distributed.SSHCluster(
            [hosts[0].address, *(host.address for host in hosts)],
            connect_options=[_connection(host) for host in (hosts[0], *hosts)],
            worker_options={"death_timeout": 30},
            scheduler_options={"port": 0, "dashboard": False, "idle_timeout": IDLE},
        )
    except Exception as error:
        raise TargetError(
            f"workers cannot be started over SSH: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            where=listed,
            next_step="try `ssh HOST` for each host, and install dbdyno and distributed there, with Python at "
            "the same path",
        ) from error
    try:
        yield str(cluster.scheduler_address)
    finally:
        with contextlib.suppress(Exception):
            cluster.close(timeout=20)


def _connection(host: SshHost) -> JsonObject:
    """Return asyncssh's options for a host; None means that the SSH configuration decides."""
    asked = {"port": host.port, "username": host.user}
    return {name: value for name, value in asked.items() if value is not None}
