"""Parts of analysis.json that only some benches can fill: races, databases, devices, resources of a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.base.json_types import JsonObject
from dbdyno.study.analysis.contract.why import key


@dataclass(frozen=True, slots=True)
class Race:
    """The race of disk and flash in one arm."""

    arm: int | None = key()
    races: int | None = key()
    disk_first: int | None = key()
    flash_first: int | None = key()
    share: float | None = key()
    low: float | None = key()
    high: float | None = key()
    level: float | None = key()
    blocks: int | None = key("that the interval is over")
    prevented: int | None = key()
    outliers: int | None = key()
    flash_outliers: int | None = key()
    passed: dict[str, int] | None = key("on cells: writes that passed it by, by reason")
    served_ns: float | None = key("on cells: time of a write that raced")
    request_ns: float | None = key("on cells: of any redo write")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A time as a multiple of another."""

    ratio: float | None = key()
    low: float | None = key()
    high: float | None = key()


@dataclass(frozen=True, slots=True)
class Order:
    """Effect of the order of a flow's steps in one engine."""

    engine: str | None = key()
    lines: int | None = key("rows of the largest table")
    floor_ns: float | None = key("of the same flow over next to nothing")
    written: Ratio | None = key("the bad order to the good one, both as written:", Ratio)
    given_back: Ratio | None = key("the bad order optimized to as written:", Ratio)
    left: Ratio | None = key("the bad order to the good one, both optimized:", Ratio)
    done: Ratio | None = key("the good order optimized to as written:", Ratio)
    sentence: str | None = key()


@dataclass(frozen=True, slots=True)
class Database:
    """What a database got from a storage that several databases share."""

    arm: int | None = key()
    database: str | None = key()
    transactions_per_s: float | None = key()
    disk_per_s: float | None = key()
    flash_per_s: float | None = key()
    share: float | None = key("of the disks' I/Os")
    low: float | None = key()
    high: float | None = key()
    level: float | None = key()
    blocks: int | None = key("that the interval is over")
    wait_ns: float | None = key("for the turn that resource management gives, per I/O")


@dataclass(frozen=True, slots=True)
class Device:
    """A kind of station of a model in one arm."""

    arm: int | None = key()
    station: str | None = key()
    stations: int | None = key()
    servers: int | None = key()
    utilisation: float | None = key()
    utilisation_max: float | None = key()
    queue: float | None = key()
    present: float | None = key()
    present_max: float | None = key()
    completions: int | None = key()
    per_s: float | None = key()
    sojourn_ns: float | None = key()
    wait_ns: float | None = key()
    service_ns: float | None = key()
    wait_max_ns: float | None = key()
    looks: int | None = key()
    little_broken: int | None = key()


@dataclass(frozen=True, slots=True)
class Volume:
    """A modelled device below a server that dbdyno started; times are since its mount."""

    arms: list[int] | None = key("numbers of the arms on it")
    carries: str | None = key("`data and log`, `data` or `log`")
    device: str | None = key()
    settings: JsonObject | None = key("its changed parameters")
    direct_io: bool | None = key("the kernel keeps nothing")
    polls: bool | None = key("its mount polls for requests")
    floor_ns: int | None = key("cost of a request through the kernel, taken off each")
    reads: float | None = key("in the blocks that count")
    writes: float | None = key()
    flushes: float | None = key()
    read_p50_ns: float | None = key("as modelled")
    write_p50_ns: float | None = key()
    late_p50_ns: float | None = key("how much later than modelled replies left")
    late_p99_ns: float | None = key()
    late_max_ns: float | None = key()


@dataclass(frozen=True, slots=True)
class Resources:
    """Mean resources of a transaction of an arm; null if the bench cannot measure them."""

    arm: int | None = key()
    user_ns: float | None = key("CPU in user mode: of programs, or of the server's processes for the load's sessions")
    system_ns: float | None = key("CPU in system mode")
    read_calls: float | None = key("calls that read from files")
    write_calls: float | None = key("calls that write to files")
    read_bytes: float | None = key("from the storage, not from the file system's cache")
    write_bytes: float | None = key("to the storage, or to be written there later, in whole pieces of the cache")
    log_bytes: float | None = key("of the engine's log, by its position: where arms take turns")
    blocks: float | None = key("that its statements touched: where arms take turns and statements are counted")
    blocks_read: float | None = key("of these, not found in shared_buffers")
    temp_blocks: float | None = key("of temporary files, read and written")
    plans: float | None = key("how often its statements were planned: where the server counts that too")
    plan_ns: float | None = key("what planning them took")
    executions: float | None = key("how often statements ran that have plans: with `plans`, how many took a kept one")
    kept_statements: int | None = key("statements that a session kept at its end: of plans with `statement_cache`")
    kept_bytes: int | None = key("their memory, of PostgreSQL alone")
    session_bytes: int | None = key("all memory of that session")
    kept_whole: int | None = key("0: there were more than the server listed")


@dataclass(frozen=True, slots=True)
class Law:
    """An operational law: an identity between counted quantities."""

    arm: int | None = key("null where it is of the whole run")
    law: str | None = key("`Little`, `utilisation` or `forced flow`")
    left: float | None = key(
        "sessions in a transaction, requests at a disk; CPU of server and load as a share; syncs and commits that"
        " clients saw"
    )
    right: float | None = key(
        "sessions, requests that the disk counted; share of the processors in use; what the server counted"
    )
    holds: bool | None = key()
    sentence: str | None = key()
