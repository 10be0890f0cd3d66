"""Types of the values exchanged between Python and the Rust core: specifications (input) and reports (output).

The core accepts and returns plain dicts with these keys (`crates/dyno-python/src/values.rs`), without serialising them
to text. The Rust structs are the source of truth: the core refuses a dict with an unknown key, and tests check the keys
of each report against these types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from dbdyno.base.json_types import JsonObject


class Script(TypedDict):
    """One script of an arm, written in pgbench's script language."""

    name: str
    text: str
    weight: NotRequired[int]
    expected_errors: NotRequired[Sequence[str]]


class NetworkLine(TypedDict):
    """Emulated network line between sessions and server: delay [ns] and bandwidth [bit/s] in each direction."""

    delay_ns: int
    rate_bit_per_s: int | None


class LoadArm(TypedDict):
    """One arm of a load: where it connects, what it runs and with how many sessions."""

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
    network: NotRequired[NetworkLine | None]


class LoadSpec(TypedDict):
    """Specification that `Load` is created from."""

    seed: int
    arms: Sequence[LoadArm]
    protocol: NotRequired[str]
    clock: NotRequired[str]


class DrawnStatement(TypedDict):
    """One SQL command for an external client: the fragments of its SQL text (`pieces`) between its values."""

    name: str
    kind: str
    pieces: list[str]


class DrawnScript(TypedDict):
    """Script for an external client: the numbers of its commands; `single` is True if it sends exactly one command."""

    name: str
    single: bool
    statements: list[int]


class DrawnTransaction(TypedDict):
    """One drawn transaction: the number of its script and its steps in order.

    A step is (number of a statement, its values); for a pause it is (None, the microseconds).
    """

    script: int
    steps: list[tuple[int | None, list[Any]]]


class ArmReport(TypedDict):
    """Report about one arm in one block."""

    arm: int
    transactions: int
    errors: int
    retries: int
    skipped: int
    busy_ns: int
    lag_max_ns: int
    first_error: str | None


class Summary(TypedDict):
    """Statistics of the operations of one arm in one group of blocks, as `summarise` returns them.

    `count`, `mean_ns`, `m2`, `max_ns` and `quantiles_ns` describe operations of the requested kind, all other counts
    describe transactions.
    """

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
    """Report about one arm in one block that an external client ran, with the CPU time that the client used."""

    client_cpu_ns: int


class LineReport(TypedDict):
    """Delay of an arm's emulated line in one block: how late it forwarded pieces of data, sum and maximum [ns]."""

    arm: int
    pieces: int
    late_ns: int
    late_max_ns: int


class LoadReport(TypedDict):
    """Report about one block of a load."""

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
    """Specification that `Probe` is created from; docs/how-to/probe.md describes the keys of an arm."""

    seed: int
    arms: Sequence[Mapping[str, Any]]


class ProbeReport(TypedDict):
    """Report about one block of a probe."""

    started_ns: int
    ended_ns: int
    reconnects: int
    cpu_ns: int
    arms: list[ArmReport]


class ProbeCost(TypedDict):
    """Time and CPU time that the writes of one arm take on a sink: the probe's overhead."""

    commits: int
    write_ns: int
    cpu_ns: int


class FlashSpec(TypedDict):
    """Specification that `FlashProbe` is created from (sizes in bytes); `destroy` permits overwriting `path`."""

    seed: int
    path: str
    block_bytes: int
    file_bytes: int | None
    depth: int
    sync: str
    destroy: bool


class FlashReport(TypedDict):
    """Report about one phase of a flash probe; `written_to` is the end of the sequentially written range [bytes]."""

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
    """Specification that `ModelRun` is created from."""

    machine: str
    seed: int
    transactions: int
    arms: Sequence[ModelArm]
    warmup_transactions: NotRequired[int]


class ModelArmReport(ArmReport):
    """Report about one arm in one block of virtual time."""

    virtual_ns: int
    events: int


class ModelReport(TypedDict):
    """Report about all arms in one block of virtual time, with the CPU and wall time of the simulation."""

    arms: list[ModelArmReport]
    reconnects: int
    cpu_ns: int
    wall_ns: int


class Invariants(TypedDict):
    """Result of checking a model's conservation laws at the end of a block.

    `little`: Little's law held at each of the `stations` checked. `ledgers`: elapsed time was CPU time plus waits for
    each of the `sessions` checked. `conservation`: redo, flash pages and cache lines add up.
    """

    little: bool
    stations: int
    ledgers: bool
    sessions: int
    conservation: bool


class ModelBlock(TypedDict):
    """One block of a modelled run; a block that was `stopped` leaves no evidence."""

    rows: int
    waits: int
    report: ModelReport
    started_ns: int
    ended_ns: int
    hash: str
    invariants: Invariants
    stopped: bool


class MachineParameter(TypedDict):
    """One parameter of a machine; `given` is True if the machine's text sets it (False: the default applies).

    `interval` is the range in which its value is known to be, if the machine states one.
    """

    path: str
    value: Any
    default: Any
    unit: str
    range: list[float] | None
    meaning: str
    source: str
    interval: list[float] | None
    given: bool


class MachinePart(TypedDict):
    """One part of a machine; `over` names the parts below it."""

    name: str
    kind: str
    over: list[str]
    count: int
    text: str


class MachineDatabase(TypedDict):
    """Another database on the machine, in addition to the database under study."""

    name: str
    text: str


class ModelMachine(TypedDict):
    """Description of a machine for display."""

    title: str
    databases: list[MachineDatabase]
    parts: list[MachinePart]
    parameters: list[MachineParameter]


class RackFacts(TypedDict):
    """State of modelled cells, except their metrics."""

    now_ns: int
    database: str
    transactions: int
    events: int
    cells: list[JsonObject]


class RackMetrics(TypedDict):
    """Metrics of one modelled cell; a row is (object type, object, name, value, unit, kind)."""

    at_ns: int
    rows: list[tuple[str, str, str, float, str, str]]


class FileColumn(TypedDict):
    """Column of a file, or of a table that is moved: its name, and its types.

    `arrow` is the column's type in the file, `holds` and `staged` are the types in which PostgreSQL and MariaDB,
    respectively, can hold every value (None if there is none), `pg_type` and `mariadb_type` are the database types from
    which the file's column was made, and `came` is the column's type in the source of a transfer.
    """

    name: str
    arrow: str
    pg_type: str | None
    holds: NotRequired[str | None]
    staged: NotRequired[str | None]
    mariadb_type: NotRequired[str | None]
    came: NotRequired[str]


class MoveChunk(TypedDict):
    """One unit of work of a move: a statement and the file for its rows (None: the rows are only hashed)."""

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
    around: NotRequired[MoveTransaction | None]
    lines: NotRequired[bool]


class MoveTransaction(TypedDict):
    """Statements that the target executes before and after the rows of a chunk, all in one transaction."""

    before: Sequence[str]
    after: Sequence[str]


class MoveSpec(TypedDict):
    """Specification that `MoveJob` is created from."""

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
    """Number of rows, and the hash of these rows."""

    number: int
    rows: int
    hash: str


class MoveFileCount(MoveCount):
    """Row count and hash of a whole file, with the rows that the server refused."""

    refused: list[MoveReject]


class MoveFinishedChunk(MoveCount):
    """Report about a finished chunk."""

    copy_bytes: int
    file_bytes: int
    elapsed_ns: int
    ended_ns: int
    worker: int
    process: int
    cost: str | None
    refused: list[MoveReject]
    parts: list[MovePart]


class MoveFailure(TypedDict):
    """The failure that ended a job; `table` and `column` are set if a value of that column cannot be represented."""

    kind: str
    message: str
    chunk: int | None
    table: NotRequired[int]
    column: NotRequired[str]


class MoveEvent(TypedDict, total=False):
    """Event of a job: a finished chunk or a failure; empty if there is none yet."""

    done: MoveFinishedChunk
    failed: MoveFailure


class MoveRecord(MoveFinishedChunk):
    """Ledger entry of a finished chunk: its file, and the number of the job's snapshot in which the chunk was read."""

    file: str
    snapshot: int


class MovePart(TypedDict):
    """One file of a chunk: folder and name, number of rows, hash and size."""

    file: str
    rows: int
    hash: str
    file_bytes: int


class MoveReject(TypedDict):
    """A row of a file that the server refused."""

    row: int
    column: str
    reason: str
