"""All keys of a stack's description: unit, range, default and meaning; descriptions are checked against this table."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 1e6


@dataclass(frozen=True, slots=True)
class Key:
    """Declaration of one key; `whole` allows only whole numbers; a key without default may be `required` or omitted."""

    unit: str
    least: float
    most: float
    meaning: str
    default: float | None = None
    required: bool = False
    whole: bool = True


def _count(meaning: str, default: float | None = None, *, required: bool = False) -> Key:
    return Key("", 1, MOST, meaning, default, required)


KEYS: dict[str, dict[str, Key]] = {
    "demand": {
        "jobs": _count("jobs that read or write at once", required=True),
        "ios": _count("requests that each job has under way", 1),
        "io_kb": Key("KB", 0.5, 1048576, "size of a request", required=True, whole=False),
        "file_systems": _count("file systems over which the jobs are spread", 1),
        "write_share": Key("", 0, 1, "share of writes (0 to 1)", 0, whole=False),
    },
    "host": {
        "count": _count("hosts that share the array's ports", 1),
        "max_io_kb": Key(
            "KB", 0.5, 1048576, "largest request that the host sends (max_sectors_kb, maxphys)", whole=False
        ),
        "queue_limit": _count("requests under way of the whole host"),
    },
    "hba": {
        "count": _count("host bus adapters in use", 1),
        "queue_limit": _count("commands under way of each", required=True),
    },
    "stripe": {
        "stripe_kb": Key("KB", 0.5, 1048576, "stripe width", required=True, whole=False),
        "luns": _count("LUNs that a file system is striped over", required=True),
    },
    "lun": {
        "count": _count("LUNs of the host", required=True),
        "queue_limit": _count("commands under way of each LUN (queue_depth, sd_max_throttle)", required=True),
    },
    "channel": {
        "count": _count("ports of the array that the LUNs are spread over", required=True),
        "queue_limit": _count("commands that a port accepts from all hosts and LUNs"),
        "rate_mb_s": Key("MB/s", 1, MOST, "rate of each", whole=False),
    },
    "array": {
        "queue_limit": _count("commands that the array accepts in total"),
        "hit_ms": Key("ms", 0, 10000, "time of a command that the array's cache answers", 0, whole=False),
        "cached_share": Key("", 0, 1, "share of reads that the array's cache answers (0 to 1)", 0, whole=False),
    },
    "disk": {
        "per_lun": _count("disks that a LUN is spread over", required=True),
        "count": _count("total number of disks, if LUNs share them"),
        "service_ms": Key("ms", 0.001, 10000, "time of one command on an idle disk", required=True, whole=False),
    },
    "measured": {
        "iops": Key("/s", 0.001, 1e9, "commands a second, as the host counts them", required=True, whole=False),
        "latency_ms": Key("ms", 0.0001, 1e6, "their mean time, as the host counts it", required=True, whole=False),
    },
}
REQUIRED = ("demand", "lun")
"""Sections that a description must have."""
CHOICES: dict[str, tuple[str, ...]] = {
    "host.os": ("linux", "solaris"),
    "disk.raid": ("0", "1", "10", "5", "6"),
}
"""Keys whose values are words; the first word is the default."""
PENALTY = {"0": 1, "1": 2, "10": 2, "5": 4, "6": 6}
"""Disk commands per small write, by RAID level: for copies, or to read old data and parity and write both."""
