"""Facts about this machine: CPU, memory, kernel, and the disk under a folder; complete on Linux, fewer elsewhere.

Each fact is read independently: what cannot be read is left out. No privilege is needed.
"""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path

MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The file system of a folder.

    Attributes:
        kind: Type of the file system, such as `ext4`.
        mount: Mount point.
        device: Name of the block device, such as `vda`, or None.
        model: Model of the disk, or None.
        rotational: True for a rotating disk, None if unknown.
    """

    kind: str
    mount: str
    device: str | None
    model: str | None
    rotational: bool | None

    @property
    def in_memory(self) -> bool:
        """Return True if the file system is in memory, where an fsync costs nothing and proves nothing."""
        return self.kind in MEMORY_FILE_SYSTEMS


def file_system(path: Path, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> FileSystem | None:
    """Return the file system that holds this path (which need not be readable), or None if unknown."""
    real = os.path.realpath(path)
    best: tuple[int, str, str, str] | None = None
    try:
        lines = (proc / "self" / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        mount = fields[4].encode().decode("unicode_escape")
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and (best is None or len(mount) >= best[0]):
            best = (len(mount), mount, fields[2], right.split()[0])
    if best is None:
        return None
    _, mount, numbers, kind = best
    device, model, rotational = _block_device(sys / "dev" / "block" / numbers)
    return FileSystem(kind, mount, device, model, rotational)


def data_disk_facts(data: Path) -> dict[str, object]:
    """Return the known facts about the file system and device of a server's data folder, for the manifest."""
    found = file_system(data)
    if found is None:
        return {}
    facts: dict[str, object] = {
        "data_file_system": found.kind,
        "data_mount": found.mount,
        "data_in_memory": found.in_memory,
        "data_device": found.device,
        "data_device_model": found.model,
        "data_device_rotational": found.rotational,
    }
    return {name: value for name, value in facts.items() if value is not None}


def host_facts(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> dict[str, str | int]:
    """Return CPU, memory, kernel, clock source and frequency governor of this machine, as far as known."""
    facts: dict[str, str | int] = {
        "host_kernel": f"{platform.system()} {platform.release()}",
        "host_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
    cpu = _field(proc / "cpuinfo", "model name") or platform.machine()
    if cpu:
        facts["host_cpu"] = cpu
    memory = _field(proc / "meminfo", "MemTotal")
    if memory:
        facts["host_memory_bytes"] = int(memory.split()[0]) * 1024
    for name, value in (("host_clock", clock_source(sys)), ("host_governor", cpu_governor(sys))):
        if value:
            facts[name] = value
    return facts


def clock_source(sys: Path = Path("/sys")) -> str | None:
    """Return the kernel's clock source, such as `tsc`; any other than tsc or a paravirtual one is slow to read."""
    return _text(sys / "devices/system/clocksource/clocksource0/current_clocksource")


def cpu_governor(sys: Path = Path("/sys")) -> str | None:
    """Return the frequency governor of the first CPU, such as `performance`; None in most virtual machines."""
    return _text(sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor")


def steal_share(proc: Path = Path("/proc")) -> float | None:
    """Return the share of CPU time since boot that the hypervisor gave to other machines, or None if unknown."""
    line = (_text(proc / "stat") or "").splitlines()
    if not line or len(line[0].split()) < 9:
        return None
    ticks = [int(part) for part in line[0].split()[1:9]]
    return ticks[7] / sum(ticks) if sum(ticks) else None


def server_is_here(pid: int, proc: Path = Path("/proc"), program: str = "postgres") -> bool:
    """Return True if this machine has a process with this ID that runs this program."""
    return (_text(proc / str(pid) / "comm") or "").startswith(program)


def _block_device(link: Path) -> tuple[str | None, str | None, bool | None]:
    """Return name, model and rotational flag of a block device; a partition has the model and flag of its disk."""
    try:
        folder = link.resolve(strict=True)
    except OSError:
        return None, None, None
    disk = folder.parent if (folder / "partition").exists() else folder
    turning = _text(disk / "queue" / "rotational")
    model = _text(disk / "device" / "model")
    return folder.name, model, None if turning is None else turning == "1"


def _field(path: Path, name: str) -> str | None:
    with contextlib.suppress(OSError), path.open(errors="replace") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    return None


def _text(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace").strip() or None
    return None
