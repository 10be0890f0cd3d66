"""CPU costs of TPC-B's statements on a reference machine, and the results of the host probes on that machine.

PostgreSQL 15 on an AMD EPYC (virtual machine, two cores), one session; the costs are medians of calibrated runs. The
probes are those of `bench/host/speed.py`, measured on the same machine while it was idle.
"""

from __future__ import annotations

from dataclasses import dataclass

SCALING_FACTOR = 1.5
"""Factor by which scaled costs can be too high or too low on another processor: an assumption."""


@dataclass(frozen=True)
class Costs:
    """CPU costs on a machine [us].

    Attributes:
        work_us: Time of a look-up and a change in memory on that machine [us].
        message_us: Time of a message through a socket on that machine [us].
        client_us: CPU time of the client per round trip [us].
        insert_us_per_kb: CPU time for each KB of log, for statements whose text states how much they write [us/KB].
        wal_bytes: Log of a statement that writes one row [bytes].
        statements: User and system time of statements [us], each with words from its text; the first entry whose words
            occur in a text is used.
        other: User and system time of any other statement [us].
    """

    work_us: float
    message_us: float
    client_us: float
    insert_us_per_kb: float
    wal_bytes: float
    statements: tuple[tuple[str, float, float], ...]
    other: tuple[float, float]

    def statement_times(self, text: str) -> tuple[float, float]:
        """Return the user time and the system time of a statement [us]."""
        words = text.lower()
        return next(((user, system) for part, user, system in self.statements if part in words), self.other)


REFERENCE = Costs(
    work_us=4.9,
    message_us=2.3,
    client_us=8.7,
    insert_us_per_kb=1.8,
    wal_bytes=111.0,
    statements=(
        ("update dbdyno.accounts", 9.3, 21.2),
        ("update dbdyno.tellers", 9.4, 20.0),
        ("update dbdyno.branches", 7.5, 16.5),
        ("insert into", 6.0, 14.9),
        ("select", 5.4, 14.6),
        ("begin", 5.8, 13.4),
        ("end", 5.9, 13.4),
        ("commit", 5.9, 13.4),
    ),
    other=(8.0, 17.0),
)
