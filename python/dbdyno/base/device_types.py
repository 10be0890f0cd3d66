"""Types of the values exchanged with the Rust core about mounted devices, as in `dbdyno.base.core_types`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict


class FaultRule(TypedDict):
    """Which operations on a device are faulty, and how (`dbdyno.device.faults`)."""

    kind: str
    path: NotRequired[str]
    operation: NotRequired[str]
    from_bytes: NotRequired[int]
    to_bytes: NotRequired[int]
    after: NotRequired[int]
    count: NotRequired[int]
    ms: NotRequired[int]
    members: NotRequired[int]
    stripe_kb: NotRequired[int]


class DeviceSpec(TypedDict):
    """Specification that `DeviceMount` is created from: the folder to mount, its device, and options.

    `toml` is the device's machine; if it is None, requests take only the time of the underlying folder.
    """

    device: str
    folder: str
    back: str
    toml: str | None
    settings: NotRequired[Sequence[tuple[str, str]]]
    seed: NotRequired[int]
    direct_io: NotRequired[bool]
    cuts: NotRequired[bool]
    names: NotRequired[str]
    faults: NotRequired[Sequence[FaultRule]]
    threads: NotRequired[int]
    polls: NotRequired[bool]
    transport: NotRequired[str]


class DeviceTimes(TypedDict):
    """Count and quantiles of the times of requests [ns]."""

    count: int
    p50_ns: float
    p99_ns: float
    max_ns: int


class DeviceWear(TypedDict):
    """Wear of a flash device: erasures of its blocks, and pages written by the host, programmed and trimmed."""

    name: str
    blocks: int
    erases: int
    erases_least: int
    erases_most: int
    host_pages: int
    programmed_pages: int
    trimmed_pages: int


class DeviceStatus(TypedDict):
    """State of a mounted folder; `late` has the times by which replies were later than modelled."""

    device: str
    back: str
    process: int
    floor_ns: int
    floor_p99_ns: int
    wake_ns: int
    kernel_writeback: bool
    direct_io: bool
    polls: bool
    transport: str
    capacity_bytes: int
    used_bytes: int
    read: DeviceTimes
    write: DeviceTimes
    flush: DeviceTimes
    discard: DeviceTimes
    wear: list[DeviceWear]
    late: DeviceTimes
    faults: list[FaultRow]


class FaultRow(TypedDict):
    """A fault that happened, caused by a fault rule or by a power cut, which reverted a page or a file name."""

    at_ns: int
    kind: str
    operation: str
    file: str
    offset_bytes: int
    bytes: int


class CutReport(TypedDict):
    """Effects of a power cut on unsynced data."""

    files: int
    pages: int
    pages_lost: int
    pages_torn: int
    names_undone: int
    pages_rebuilt: int
    rows: list[FaultRow]
