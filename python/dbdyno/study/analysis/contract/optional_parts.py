"""Parts of analysis.json that only some benches can fill: races, databases, devices, resources of a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.base.json_types import JsonObject
from dbdyno.study.analysis.contract.explanation import documented_field


@dataclass(frozen=True, slots=True)
class Race:
    """Log writes of one arm that went to flash and disk at once, counted by which of the two ended first."""

    arm: int | None = documented_field()
    races: int | None = documented_field()
    disk_first: int | None = documented_field()
    flash_first: int | None = documented_field()
    share: float | None = documented_field()
    low: float | None = documented_field()
    high: float | None = documented_field()
    level: float | None = documented_field()
    blocks: int | None = documented_field("blocks that the interval covers")
    prevented: int | None = documented_field()
    outliers: int | None = documented_field()
    flash_outliers: int | None = documented_field()
    passed: dict[str, int] | None = documented_field("on cells: writes that bypassed it, by reason")
    served_ns: float | None = documented_field("on cells: time of a write that raced")
    request_ns: float | None = documented_field("on cells: time of any redo write")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A time divided by another time, with its interval."""

    ratio: float | None = documented_field()
    low: float | None = documented_field()
    high: float | None = documented_field()


@dataclass(frozen=True, slots=True)
class Order:
    """Effect of the order of a data flow's steps on its time, in one engine."""

    engine: str | None = documented_field()
    lines: int | None = documented_field("rows of the largest table")
    floor_ns: float | None = documented_field("time of the same flow over almost no rows")
    written: Ratio | None = documented_field("the bad order to the good one, both as written:", Ratio)
    given_back: Ratio | None = documented_field("the bad order optimized to as written:", Ratio)
    left: Ratio | None = documented_field("the bad order to the good one, both optimized:", Ratio)
    done: Ratio | None = documented_field("the good order optimized to as written:", Ratio)
    sentence: str | None = documented_field()


@dataclass(frozen=True, slots=True)
class Database:
    """What one database got from storage that several databases share."""

    arm: int | None = documented_field()
    database: str | None = documented_field()
    transactions_per_s: float | None = documented_field()
    disk_per_s: float | None = documented_field()
    flash_per_s: float | None = documented_field()
    share: float | None = documented_field("of the disks' I/Os")
    low: float | None = documented_field()
    high: float | None = documented_field()
    level: float | None = documented_field()
    blocks: int | None = documented_field("blocks that the interval covers")
    wait_ns: float | None = documented_field("for the turn that resource management gives, per I/O")


@dataclass(frozen=True, slots=True)
class Device:
    """Stations of one kind in a model (a disk, a card, a channel, cores), in one arm."""

    arm: int | None = documented_field()
    station: str | None = documented_field()
    stations: int | None = documented_field()
    servers: int | None = documented_field()
    utilisation: float | None = documented_field()
    utilisation_max: float | None = documented_field()
    queue: float | None = documented_field()
    present: float | None = documented_field()
    present_max: float | None = documented_field()
    completions: int | None = documented_field()
    per_s: float | None = documented_field()
    sojourn_ns: float | None = documented_field()
    wait_ns: float | None = documented_field()
    service_ns: float | None = documented_field()
    wait_max_ns: float | None = documented_field()
    looks: int | None = documented_field()
    little_broken: int | None = documented_field()


@dataclass(frozen=True, slots=True)
class Volume:
    """A modelled device below a server that dbdyno started; its times are collected since it was mounted."""

    arms: list[int] | None = documented_field("numbers of the arms that use it")
    carries: str | None = documented_field("`data and log`, `data` or `log`")
    device: str | None = documented_field()
    settings: JsonObject | None = documented_field("its changed parameters")
    direct_io: bool | None = documented_field("the kernel caches nothing")
    polls: bool | None = documented_field("whether its mount polls for requests")
    floor_ns: int | None = documented_field("the kernel's cost per request, subtracted from each")
    reads: float | None = documented_field("in the blocks that count")
    writes: float | None = documented_field()
    flushes: float | None = documented_field()
    read_p50_ns: float | None = documented_field("as modelled")
    write_p50_ns: float | None = documented_field()
    late_p50_ns: float | None = documented_field("how much later than modelled the replies were sent")
    late_p99_ns: float | None = documented_field()
    late_max_ns: float | None = documented_field()


@dataclass(frozen=True, slots=True)
class Resources:
    """Mean resources that an arm uses per transaction; null if the bench cannot measure them."""

    arm: int | None = documented_field()
    user_ns: float | None = documented_field(
        "CPU in user mode: of programs, or of the server's processes for the load's sessions"
    )
    system_ns: float | None = documented_field("CPU in system mode")
    read_calls: float | None = documented_field("calls that read from files")
    write_calls: float | None = documented_field("calls that write to files")
    read_bytes: float | None = documented_field("from the storage, not from the file system's cache")
    write_bytes: float | None = documented_field("bytes to the storage, now or later, in whole cache folios")
    log_bytes: float | None = documented_field("of the engine's log, from its position; only where arms take turns")
    blocks: float | None = documented_field(
        "that its statements touched; only where arms take turns and statements are counted"
    )
    blocks_read: float | None = documented_field("of these blocks, not found in shared_buffers")
    temp_blocks: float | None = documented_field("blocks of temporary files, read and written")
    plans: float | None = documented_field("how often its statements were planned, if the server counts it")
    plan_ns: float | None = documented_field("time that planning them took")
    executions: float | None = documented_field(
        "executions of statements that have plans; with `plans`, how many used a cached plan"
    )
    kept_statements: int | None = documented_field(
        "statements that a session still kept at its end; only for plans with `statement_cache`"
    )
    kept_bytes: int | None = documented_field("their memory; PostgreSQL only")
    session_bytes: int | None = documented_field("all memory of that session")
    kept_whole: int | None = documented_field("0: there were more statements than the server listed")


@dataclass(frozen=True, slots=True)
class Law:
    """An operational law: an identity between counted quantities."""

    arm: int | None = documented_field("null if it is for the whole run")
    law: str | None = documented_field("`Little`, `utilisation` or `forced flow`")
    left: float | None = documented_field(
        "sessions in a transaction, requests at a disk; CPU of server and load as a share; syncs and commits as "
        "clients saw them"
    )
    right: float | None = documented_field(
        "sessions, requests that the disk counted; share of the processors in use; what the server counted"
    )
    holds: bool | None = documented_field()
    sentence: str | None = documented_field()
