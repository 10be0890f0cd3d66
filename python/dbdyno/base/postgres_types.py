"""Types of a modelled PostgreSQL's load and of its results, as exchanged with the Rust core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class PostgresLock(TypedDict):
    """A locked row: the number of its table, and the row numbers that the script drew."""

    table: int
    rows: list[int]


class PostgresStep(TypedDict):
    """A round trip of a modelled session; `statement` is the index of its costs in the machine."""

    statement: int
    wal_bytes: NotRequired[list[int]]
    lock: NotRequired[PostgresLock]
    commits: NotRequired[bool]
    pause_us: NotRequired[float]


class PostgresScript(TypedDict):
    """Script of a modelled load."""

    weight: int
    steps: list[PostgresStep]


class PostgresLoad(TypedDict):
    """Load of a modelled PostgreSQL; `transactions` and `warmup` are totals over all sessions.

    If `scripts` is absent, the machine's scripts are run.
    """

    sessions: int
    transactions: int
    warmup: int
    limit_s: float
    scripts: NotRequired[list[PostgresScript]]


class PostgresSpec(TypedDict):
    """A load on the PostgreSQL of a machine (TOML), and parameters that override the machine's."""

    machine: str
    settings: Mapping[str, str]
    seed: int
    load: PostgresLoad


class PostgresWait(TypedDict):
    """Number and total time of one wait event over all sessions."""

    event_type: str
    event: str
    count: int
    elapsed_ns: int


class PostgresStation(TypedDict):
    """Work that the cores or a device did."""

    name: str
    servers: int
    utilisation: float
    present: float
    completions: int
    sojourn_ns: float


class PostgresOutcome(TypedDict):
    """Result of a modelled load; `latencies_ns` are its transactions' times, 64-bit little-endian."""

    transactions: int
    elapsed_ns: int
    server_cpu_ns: int
    client_cpu_ns: int
    waits: list[PostgresWait]
    stations: list[PostgresStation]
    data: NotRequired[PostgresStation]
    flushes: int
    commits: int
    written_bytes: int
    events: int
    latencies_ns: bytes
