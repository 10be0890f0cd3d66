"""What crosses between Python and the Rust core: specifications that go in, reports that come out.

The core takes and gives plain dicts with these keys (`crates/dyno-python/src/values.rs`); no text in
between. The structures in Rust are their source: a key that is unknown there is refused, and tests
hold the keys of each report against these types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict


class Script(TypedDict):
    """One script of an arm, in pgbench's language."""

    name: str
    text: str
    weight: NotRequired[int]
    expected_errors: NotRequired[Sequence[str]]


class Line(TypedDict):
    """A longer line between sessions and server: delay each way, and bits a second each way."""

    delay_ns: int
    rate_bit_per_s: int | None


class LoadArm(TypedDict):
    """One arm of a load: where, what, how many sessions."""

    name: str
    connection: Mapping[str, Any]
    scripts: Sequence[Script]
    sessions: int
    session_sql: NotRequired[Sequence[str]]
    protocol: NotRequired[str | None]
    rate_per_s: NotRequired[float | None]
    latency_limit_ns: NotRequired[int | None]
    max_tries: NotRequired[int]
    variables: NotRequired[Mapping[str, str]]
    statement_timeout_ms: NotRequired[int | None]
    pooled: NotRequired[bool]
    expected_errors: NotRequired[Sequence[str]]
    network: NotRequired[Line | None]


class LoadSpec(TypedDict):
    """What `Load` needs."""

    seed: int
    arms: Sequence[LoadArm]
    protocol: NotRequired[str]
    clock: NotRequired[str]


class DrawnStatement(TypedDict):
    """One SQL command for another client: its SQL between its values."""

    name: str
    kind: str
    pieces: list[str]


class DrawnScript(TypedDict):
    """A script for another client: whether it is one command, and the numbers of its commands."""

    name: str
    single: bool
    statements: list[int]


class DrawnTransaction(TypedDict):
    """What a transaction sends: numbers of statements with their values; None with the microseconds of a pause."""

    script: int
    steps: list[tuple[int | None, list[Any]]]


class ArmReport(TypedDict):
    """One arm in one block."""

    arm: int
    transactions: int
    errors: int
    retries: int
    skipped: int
    busy_ns: int
    lag_max_ns: int
    first_error: str | None


class Summary(TypedDict):
    """Operations of a group of blocks in one arm: `summarise`. `count`, `mean_ns`, `m2`, `max_ns` and `quantiles_ns`
    are of the kind asked for, the others of transactions."""

    group: int
    arm: str
    count: int
    transactions: int
    failed: int
    skipped: int
    rows: int
    mean_ns: float
    m2: float
    max_ns: int
    sessions: int
    busy_ns: int
    quantiles_ns: list[float | None]
    started_ns: int
    ended_ns: int


class ClientArmReport(ArmReport):
    """One arm in one block that an external client ran, and what that used of the CPU."""

    client_cpu_ns: int


class LineReport(TypedDict):
    """How late the line of an arm let go of its pieces in one block."""

    arm: int
    pieces: int
    late_ns: int
    late_max_ns: int


class LoadReport(TypedDict):
    """One block of a load."""

    started_ns: int
    ended_ns: int
    reconnects: int
    cpu_ns: int
    threads: int
    interrupted: bool
    arms: list[ArmReport]
    lines: list[LineReport]
    error_codes: list[str]


class ProbeSpec(TypedDict):
    """What `Probe` needs; the keys of an arm are those of docs/probe.md."""

    seed: int
    arms: Sequence[Mapping[str, Any]]


class ProbeReport(TypedDict):
    """One block of a probe."""

    started_ns: int
    ended_ns: int
    reconnects: int
    cpu_ns: int
    arms: list[ArmReport]


class ProbeCost(TypedDict):
    """What a write of an arm costs on a sink."""

    commits: int
    write_ns: int
    cpu_ns: int


class FlashSpec(TypedDict):
    """What `FlashProbe` needs: sizes in bytes; `destroy`: what is there is given up."""

    seed: int
    path: str
    block_bytes: int
    file_bytes: int | None
    depth: int
    sync: str
    destroy: bool


class FlashReport(TypedDict):
    """One phase of a flash probe; `written_to` is how far it was written in order [bytes]."""

    started_ns: int
    ended_ns: int
    requests: int
    request_bytes: int
    written_to: int


class ModelArm(TypedDict):
    """One arm of a modelled run."""

    name: str
    sessions: int
    workload: Mapping[str, Any]
    settings: NotRequired[Mapping[str, str]]
    warmup_transactions: NotRequired[int]


class ModelSpec(TypedDict):
    """What `ModelRun` needs."""

    machine: str
    seed: int
    transactions: int
    arms: Sequence[ModelArm]
    warmup_transactions: NotRequired[int]


class ModelArmReport(ArmReport):
    """One arm in one block of virtual time."""

    virtual_ns: int
    events: int


class ModelReport(TypedDict):
    """All arms of a block of virtual time, and what simulating them took."""

    arms: list[ModelArmReport]
    reconnects: int
    cpu_ns: int
    wall_ns: int


class Invariants(TypedDict):
    """What must hold of a model at the end of a block."""

    little: bool
    stations: int
    ledgers: bool
    sessions: int
    conservation: bool


class ModelBlock(TypedDict):
    """One block of a modelled run; `stopped`: it left nothing behind."""

    rows: int
    waits: int
    report: ModelReport
    started_ns: int
    ended_ns: int
    hash: str
    invariants: Invariants
    stopped: bool


class MachineParameter(TypedDict):
    """A parameter of a machine; `given`: its text names it."""

    path: str
    value: Any
    default: Any
    unit: str
    range: list[float] | None
    meaning: str
    source: str
    given: bool


class MachinePart(TypedDict):
    """A part of a machine, and what it stands over."""

    name: str
    kind: str
    over: list[str]
    count: int
    text: str


class MachineDatabase(TypedDict):
    """A database beside the one that is studied."""

    name: str
    text: str


class ModelMachine(TypedDict):
    """A machine as it is shown."""

    title: str
    databases: list[MachineDatabase]
    parts: list[MachinePart]
    parameters: list[MachineParameter]


class RackFacts(TypedDict):
    """Everything about modelled cells that is not a metric."""

    now_ns: int
    database: str
    transactions: int
    events: int
    cells: list[dict[str, Any]]


class RackCollected(TypedDict):
    """The metrics of a modelled cell: object type, object, name, value, unit, kind."""

    at_ns: int
    rows: list[tuple[str, str, str, float, str, str]]


class MoveChunk(TypedDict):
    """One piece of work: a statement, and the file that its rows become (None: they are only hashed)."""

    number: int
    table: int
    sql: str
    path: str | None
    load: NotRequired[bool]
    groups: NotRequired[tuple[int, int] | None]
    rows_before: NotRequired[int]
    place: NotRequired[int | None]
    into: NotRequired[str | None]
    partition: NotRequired[str | None]
    raw: NotRequired[bool]


class MoveSpec(TypedDict):
    """What `MoveJob` needs."""

    connection: Mapping[str, Any]
    session_sql: Sequence[str]
    tables: Sequence[Mapping[str, Any]]
    chunks: Sequence[MoveChunk]
    workers: int
    memory_bytes: int
    rate_bytes_per_s: NotRequired[int | None]
    zstd_level: NotRequired[int]
    target: NotRequired[Mapping[str, Any] | None]
    cost_sql: NotRequired[str | None]
    single: NotRequired[Mapping[str, Any] | None]
    rejects: NotRequired[bool]


class MoveCount(TypedDict):
    """How many rows, and their hash."""

    number: int
    rows: int
    hash: str


class MoveWhole(MoveCount):
    """What is known of a file, of all its pieces."""

    refused: list[MoveRefused]


class MoveDone(MoveCount):
    """A finished chunk."""

    copy_bytes: int
    file_bytes: int
    elapsed_ns: int
    ended_ns: int
    worker: int
    process: int
    cost: str | None
    refused: list[MoveRefused]
    parts: list[MovePart]


class MoveFailed(TypedDict):
    """What ended a job; where a column cannot be held, which."""

    kind: str
    message: str
    chunk: int | None
    table: NotRequired[int]
    column: NotRequired[str]


class MoveEvent(TypedDict, total=False):
    """What a job tells: a finished chunk, a failure, or nothing yet."""

    done: MoveDone
    failed: MoveFailed


class MoveRecord(MoveDone):
    """A finished chunk in the ledger: its file, and in which of the job's snapshots it was read."""

    file: str
    snapshot: int


class MovePart(TypedDict):
    """One of the files of a chunk: its folder and name, and what is in it."""

    file: str
    rows: int
    hash: str
    file_bytes: int


class MoveRefused(TypedDict):
    """A row of a file that the server could not take."""

    row: int
    column: str
    reason: str
