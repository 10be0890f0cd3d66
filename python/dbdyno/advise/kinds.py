"""Kinds of evidence that rules read: typed frozen rows, with units in the names.

Counters cover the window of the evidence: since the last reset, or between two snapshots. None is "unknown", never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.advise.engines.mariadb.parts import Digest, FileIo, Status
from dbdyno.advise.host.parts import Device, Kernel, Mount
from dbdyno.advise.placement import FastDevice, Segment
from dbdyno.advise.stack.parts import Layer, Stack

_FACTORS = {"B": 1, "kB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4}
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}


@dataclass(frozen=True, slots=True)
class Server:
    """The server, and what the role is allowed to read."""

    engine: str
    version: str
    version_num: int
    in_recovery: bool = False
    platform: str = ""
    at_us: int | None = None
    started_us: int | None = None
    sees_all: bool = True
    role: str = ""
    service: str = ""
    """The managed service that runs the server, or "" if none was recognised."""
    identity: str = ""
    """PostgreSQL's system identifier, which a physical copy shares; "" if not known."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the server; `unit` is PostgreSQL's name of the unit (`8kB`, `ms`), or ""."""

    name: str
    value: str
    unit: str = ""
    source: str = ""

    @property
    def bytes(self) -> int:
        """Return the setting in bytes; negative values (automatic, unlimited) are returned unchanged."""
        number = int(float(self.value))
        digits = "".join(c for c in self.unit if c.isdigit())
        return number * int(digits or 1) * _FACTORS.get(self.unit.lstrip("0123456789"), 1) if number > 0 else number

    @property
    def as_text(self) -> str:
        """Return the value as it is written in a statement: `128MB`, `4`, `on`, `300s`."""
        exact = self.bytes if self.unit.lstrip("0123456789") in _FACTORS else 0
        if exact <= 0:
            return self.value + (self.unit if self.unit in _MILLISECONDS and float(self.value) > 0 else "")
        unit = next(unit for unit, factor in reversed(_FACTORS.items()) if exact % factor == 0)
        return f"{exact // _FACTORS[unit]}{unit}"

    @property
    def ms(self) -> float:
        """Return the setting in milliseconds; negative values are returned unchanged."""
        number = float(self.value)
        return number * _MILLISECONDS.get(self.unit, 1.0) if number > 0 else number

    @property
    def number(self) -> float:
        """Return the setting as a number without a unit."""
        return float(self.value)

    @property
    def is_on(self) -> bool:
        """Return True if the setting is on."""
        return self.value in ("on", "true", "yes", "1")


@dataclass(frozen=True, slots=True)
class Database:
    """Counters of one database (pg_stat_database); `span_s` is the number of seconds covered, None if unknown."""

    name: str
    reads: int
    hits: int
    read_ms: float | None
    temp_files: int
    temp_bytes: int
    commits: int
    sessions: int | None
    active_ms: float | None
    frozen_age: int | None
    multixact_age: int | None
    span_s: float | None
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Counters, sizes and vacuum history of one table; times are microseconds since 1970."""

    name: str
    rows: int
    dead: int
    pages: int | None
    inserted: int
    updated: int
    deleted: int
    seq_scans: int
    seq_rows: int
    idx_scans: int | None
    modified: int
    vacuumed_us: int | None = None
    analyzed_us: int | None = None
    vacuums: int | None = None
    frozen_age: int | None = None
    options: tuple[str, ...] = ()
    heap_reads: int | None = None
    idx_reads: int | None = None
    estimated_rows: float | None = None
    """`reltuples`: the planner's estimate of the rows; -1 if it was never counted."""

    def option(self, name: str) -> str | None:
        """Return the value of a storage parameter of this table, or None."""
        return next((one.partition("=")[2] for one in self.options if one.partition("=")[0] == name), None)


@dataclass(frozen=True, slots=True)
class Index:
    """One index.

    `columns` are the expressions of its key in order, with operator class and direction if not the default. An index
    can replace another one only if `rest` is equal, too: method, predicate, included columns.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    rest: str
    bytes: int
    scans: int | None
    is_unique: bool
    is_constraint: bool
    is_valid: bool
    is_building: bool = False
    is_replica_identity: bool = False
    method: str = "btree"
    read_since_us: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a large table in the planner's statistics: number of distinct values, share of the commonest one."""

    table: str
    name: str
    values: float
    commonest: float


@dataclass(frozen=True, slots=True)
class Width:
    """Mean size of a table's rows [bytes] in the planner's statistics; `known` is True if all its columns have them."""

    table: str
    bytes: float
    known: bool


@dataclass(frozen=True, slots=True)
class HypotheticalIndex:
    """Result of HypoPG: the cost of a look-up by a column without and with an index, and whether that index is used."""

    table: str
    column: str
    before: float
    after: float
    used: bool


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key, and whether an index of the child begins with its columns."""

    name: str
    child: str
    parent: str
    columns: tuple[str, ...]
    is_indexed: bool
    child_pages: int
    parent_deleted: int
    parent_updated: int


@dataclass(frozen=True, slots=True)
class Key:
    """A sequence with its maximum and current value, and the column that it fills."""

    sequence: str
    column: str
    last: int | None
    sequence_most: int
    column_most: int
    cycles: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of pg_stat_statements; times in milliseconds."""

    identifier: str
    text: str
    calls: int
    ms: float
    rows: int
    hits: int
    reads: int
    temp_written: int
    temp_ms: float | None = None
    jit_ms: float | None = None
    jit_functions: int | None = None
    plan_ms: float | None = None
    wal_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Executions of a statement with one plan, with their rows counted, and the plan node whose estimates were wrong.

    The estimates were wrong in `executions` of the `measured` executions (0: no node was wrong). Row numbers are
    medians per loop.
    """

    statement: str
    text: str
    plan: str
    measured: int
    spent_ms: float
    executions: int = 0
    node: str = ""
    kind: str = ""
    table: str = ""
    conditions: tuple[str, ...] = ()
    planned: float = 0.0
    found: float = 0.0
    loops: float = 0.0
    place: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Number of checkpoints by their trigger, with their times."""

    timed: int
    requested: int
    span_s: float | None
    write_ms: float | None = None
    sync_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Wal:
    """Amount of WAL written."""

    bytes: int
    records: int
    full_pages: int
    buffers_full: int | None
    span_s: float | None


@dataclass(frozen=True, slots=True)
class Io:
    """Reads by context (pg_stat_io, PostgreSQL 16 and later)."""

    backend: str
    object: str
    context: str
    reads: int
    read_ms: float | None
    read_bytes: int
    evictions: int


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot, and the WAL or row versions that it holds back."""

    name: str
    kind: str
    is_active: bool
    status: str
    held_bytes: int | None
    xmin_age: int | None
    catalog_xmin_age: int | None


@dataclass(frozen=True, slots=True)
class Session:
    """A sampled session with an open transaction; `waiters` wait for its locks, and it waits for `blocked_by`."""

    pid: int
    user: str
    application: str
    state: str
    transaction_s: float
    state_s: float
    xmin_age: int | None
    waiters: int
    waited_s: float
    blocked_by: tuple[int, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A prepared transaction."""

    name: str
    age_s: float
    xmin_age: int


@dataclass(frozen=True, slots=True)
class Load:
    """Number of sessions in one sample."""

    clients: int
    active: int
    idle: int
    idle_in_transaction: int
    slow_locks: int = 0
    """Relation locks that did not fit into a session's fast-path slots."""


@dataclass(frozen=True, slots=True)
class Slru:
    """Pages of a small cache (transactions, multixacts) that had to be read."""

    name: str
    reads: int


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A run, from its manifest; `data_bytes` is the database's size before the run plus a built-in workload's data."""

    builtin: str
    data_bytes: int | None
    memory_bytes: int | None
    is_closed: bool
    metric: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measurements of a run's base arm.

    `per_s` has the rate of each block. `reads` is the number of read calls per transaction in the arm with the most
    reads. `waits` has (class, event, share of the transactions' time). `near` is the share of transactions that start
    just after one of another session. `rows_read` (per transaction) and `rows_there` (live rows) have a value for each
    block; `written` is the number of rows written per transaction.
    """

    sessions: int
    arms: int
    blocks: int
    warmup_blocks: int
    transactions: int
    mean_ns: float | None
    per_s: tuple[float, ...]
    reads: float | None = None
    waits: tuple[tuple[str, str, float], ...] = ()
    client_cores: float | None = None
    client_threads: int | None = None
    cores: int | None = None
    near: float | None = None
    rows_read: tuple[float, ...] | None = None
    rows_there: tuple[float, ...] | None = None
    written: float | None = None
    checkpoints: int | None = None


PLACES: dict[type, str] = {
    Benchmark: "a run of dbdyno",
    Measurements: "the evidence of a run (calls, waits, metrics, analysis.json)",
    Server: "the server's version and role",
    Setting: "settings",
    Database: "pg_stat_database",
    Table: "pg_stat_user_tables",
    Index: "pg_stat_user_indexes and pg_index",
    ForeignKey: "pg_constraint",
    Column: "pg_stats",
    Width: "widths in pg_stats",
    HypotheticalIndex: "HypoPG",
    Key: "pg_sequences",
    Statement: "pg_stat_statements",
    Estimate: "plans of auto_explain with log_analyze",
    Checkpoints: "checkpoint counters",
    Wal: "pg_stat_wal",
    Io: "pg_stat_io",
    Slot: "pg_replication_slots",
    Session: "open transactions (pg_stat_activity)",
    PreparedTransaction: "pg_prepared_xacts",
    Slru: "pg_stat_slru",
    Load: "sessions (pg_stat_activity)",
    FastDevice: "--fast-gb",
    Segment: "pg_statio_user_tables, pg_statio_user_indexes and pg_class",
    Status: "the global status",
    Digest: "events_statements_summary_by_digest",
    FileIo: "file_summary_by_event_name",
    Stack: "the description of a storage stack",
    Layer: "its layers",
    Device: "/sys/block",
    Mount: "/proc/mounts",
    Kernel: "/proc/sys/vm, /proc/vmstat and /proc/meminfo",
}
"""Where the rows of each kind of evidence come from, in words; shown for what a rule reads and for what is missing."""
MACHINE: frozenset[type] = frozenset((Stack, Layer, Device, Mount, Kernel))
"""Kinds of evidence that no database has; rules that read only these are evaluated for stack descriptions and hosts."""
