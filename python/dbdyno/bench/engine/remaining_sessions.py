"""Sessions that a lost host leaves at its server, and how they are ended.

A host that is cut off cannot close its sessions, and its server does not see that it is gone. The runner therefore
notes the sessions of all hosts, and ends those that remain once a host is lost. A session is noted by its number and by
something that a later session with the same number does not share, so no other session can be ended. If the runner is
lost as well, the server's own keepalives end the sessions, if a session can request keepalives (PostgreSQL).

Limits: a session that was lost and opened again within a block is noted at the start of the next one. Behind a pooler
or a proxy the numbers are not those of the server's sessions: nothing is noted, and the pooler must notice that its
client is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

GRACE_S = 3.0
"""Time for sessions to end by themselves, and the same time again after dbdyno ended them [s]."""
LOOK_S = 0.1


class ServerSessions(Protocol):
    """Sessions of an arm at its server."""

    def with_keepalives(self, connection: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the load's connection with keepalives, by which the server soon notices that its client is gone."""

    def identify(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return, for each of these sessions that still exists, a text that identifies it even if its number is reused.

        Raises:
            TargetError: The server does not answer.
        """

    def end(self, known: Mapping[int, str]) -> None:
        """Wait up to `GRACE_S` for these sessions to end, and terminate the rest, if the server answers."""


class RemainingSessions:
    """Sessions of all arms on all hosts, as their servers know them."""

    def __init__(self, servers: Sequence[ServerSessions]) -> None:
        """Begin with no session; `servers` has one entry per arm."""
        self.servers = servers
        self.known: dict[int, dict[int, str]] = {}

    def note(self, arm: int, numbers: Sequence[int]) -> None:
        """Replace an arm's recorded sessions by its open ones; ask the server only if they changed.

        Raises:
            TargetError: The server does not answer.
        """
        if set(numbers) != self.known.get(arm, {}).keys():
            self.known[arm] = self.servers[arm].identify(numbers)

    def forget(self, arm: int) -> None:
        """Forget the sessions of an arm: they were closed."""
        self.known.pop(arm, None)

    def end(self) -> None:
        """End all noted sessions that remain; those on a server that does not answer are ended by its keepalives."""
        known, self.known = self.known, {}
        for arm, sessions in known.items():
            if sessions:
                self.servers[arm].end(sessions)


def end_after_grace(remaining: Callable[[], Sequence[int]], end: Callable[[int], object]) -> None:
    """Wait up to `GRACE_S` until no session remains; then end the remaining ones and wait for them as long again."""
    for last in (False, True):
        deadline = time.monotonic() + GRACE_S
        while numbers := remaining():
            if time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
        if last or not numbers:
            return
        for number in numbers:
            end(number)
