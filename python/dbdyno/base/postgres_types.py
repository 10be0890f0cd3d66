"""Types of a modelled PostgreSQL's load and of what came of it, as they cross to the Rust core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class PostgresLock(TypedDict):
    """A row that is locked: the number of its table, and rows as the script drew them."""

    table: int
    rows: list[int]


class PostgresStep(TypedDict):
    """A round trip of a modelled session; `statement` is the number of its costs in the machine."""

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
    """Load of a modelled PostgreSQL; `transactions` and `warmup` are those of all sessions together.

    Without scripts the machine's own are run.
    """

    sessions: int
    transactions: int
    warmup: int
    limit_s: float
    scripts: NotRequired[list[PostgresScript]]


class PostgresSpec(TypedDict):
    """A load on the PostgreSQL of a machine (TOML), with parameters that differ from the machine's."""

    machine: str
    settings: Mapping[str, str]
    seed: int
    load: PostgresLoad


class PostgresWait(TypedDict):
    """Sum of a wait over all sessions."""

    event_type: str
    event: str
    count: int
    elapsed_ns: int


class PostgresStation(TypedDict):
    """What the cores or a device did."""

    name: str
    servers: int
    utilisation: float
    present: float
    completions: int
    sojourn_ns: float


class PostgresOutcome(TypedDict):
    """What came of a modelled load; `latencies_ns` are the times of its transactions, 64-bit little-endian."""

    transactions: int
    elapsed_ns: int
    server_cpu_ns: int
    client_cpu_ns: int
    waits: list[PostgresWait]
    stations: list[PostgresStation]
    flushes: int
    commits: int
    written_bytes: int
    events: int
    latencies_ns: bytes
