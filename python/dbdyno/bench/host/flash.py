"""The target of a flash probe: a file that it creates, or a file or device whose content may be destroyed.

The probe itself is in Rust (`crates/dyno-load/src/probe/flash`). A device is refused while anything uses it or a part
of it. In addition the kernel is asked for exclusive access, so that a use that begins later is detected as well.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.core_types import FlashSpec
from dbdyno.base.errors import PlanError, TargetError
from dbdyno.base.files import os_errors_as
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.machine import FileSystem, file_system, host_facts
from dbdyno.bench.host.probe import cache_mode

FILE_NAME = "dbdyno-flash.tmp"
"""Name under which a file is created in a folder; the file is unlinked immediately."""
MADE_BYTES = 1 << 30
OTHER_PATH_STEP = "name a device that is not in use, or a file that does not exist yet"


@dataclass(frozen=True)
class FlashTarget:
    """Where and how the flash probe writes.

    Attributes:
        path: File or device.
        block_bytes: Size of one access.
        file_bytes: Size of the range to use; None means everything that may be destroyed, or 1 GiB of a new file.
        depth: Number of concurrent accesses.
        sync: How writes are made durable.
        destroy: True if the content of `path` may be destroyed.
    """

    path: Path
    block_bytes: int = 4096
    file_bytes: int | None = None
    depth: int = 1
    sync: str = "direct"
    destroy: bool = False

    def spec(self, seed: int) -> FlashSpec:
        """Return the target as JSON values for the core."""
        made = None if self.destroy else MADE_BYTES
        return {
            "seed": seed,
            "path": str(self.path),
            "block_bytes": self.block_bytes,
            "file_bytes": self.file_bytes or made,
            "depth": self.depth,
            "sync": self.sync,
            "destroy": self.destroy,
        }

    def parameters(self) -> JsonObject:
        """Return the target as parameters for the manifest."""
        return {**vars(self), "path": str(self.path)}


def flash_path(path: Path, destroy: bool) -> Path:
    """Return the file or device to write to.

    Links to something that may be destroyed are resolved, so that the question to the user names what will be
    destroyed.

    Args:
        path: Path that the user named.
        destroy: True if its content may be destroyed.

    Raises:
        TargetError: The path does not exist or is in use.
        PlanError: The path is a folder and `destroy` is True.
    """
    path = path.expanduser()
    if not destroy:
        return path / FILE_NAME if path.is_dir() else path
    with os_errors_as(TargetError, "cannot be overwritten", path, "leave --destroy out for a new file"):
        real = path.resolve(strict=True)
        kind = real.stat().st_mode
    if stat.S_ISDIR(kind):
        raise PlanError(
            "is a folder, but --destroy needs one file or device to overwrite",
            where=str(path),
            next_step="leave --destroy out; the probe then makes a file in the folder",
        )
    if stat.S_ISBLK(kind) and (user := device_users(real)):
        raise TargetError(f"is in use: {user}", where=str(real), next_step=OTHER_PATH_STEP)
    return real


def device_users(device: Path, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> str:
    """Return what uses a block device or a part of it, in words; empty if the kernel reports no use."""
    names = {device.name, *(part.parent.name for part in (sys / "class/block" / device.name).glob("*/partition"))}
    for name in sorted(names):
        for holder in sorted((sys / "class/block" / name / "holders").glob("*")):
            return f"{holder.name} is made of {name}"
        for mount in _mount_points(name, proc, sys):
            return f"{name} is mounted at {mount}"
        if any(Path(line.split()[0]).name == name for line in _lines(proc / "swaps")[1:]):
            return f"{name} is swap space"
    return ""


def _mount_points(name: str, proc: Path, sys: Path) -> list[str]:
    """Return where a block device is mounted, found by its device number or by its name.

    The name is needed for file systems that have their own device numbers.
    """
    numbers = next(iter(_lines(sys / "class/block" / name / "dev")), "")
    places = []
    for line in _lines(proc / "self/mountinfo"):
        left, _, right = line.partition(" - ")
        fields, source = left.split(), right.split()[1:2]
        if fields[2] == numbers or source == [f"/dev/{name}"]:
            places.append(fields[4])
    return places


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text().splitlines() if line.strip()]
    except OSError:
        return []


def file_system_of(path: Path) -> FileSystem | None:
    """Return the file system that holds a file, or None for a device."""
    return None if path.is_block_device() else file_system(path.parent)


def flash_facts(target: FlashTarget) -> dict[str, object]:
    """Return facts about the machine and the storage of the path, for the manifest."""
    disk = file_system_of(target.path)
    if disk is None:
        about = f"block device {target.path}{cache_mode(target.path.name)}"
    else:
        parts = [disk.kind, *(f"on {name}" for name in (disk.device,) if name), *(m for m in (disk.model,) if m)]
        about = " ".join(parts) + cache_mode(disk.device or "")
    found: dict[str, object] = {**host_facts(), "settings": [], str(target.path): about}
    if disk is not None and disk.in_memory:
        found["data_in_memory"] = True
    return found


def share_of(target: FlashTarget, span_bytes: int) -> dict[str, object]:
    """Return the number of bytes used and their share of the file system (None instead of the share for a device)."""
    if target.path.is_block_device():
        return {"span_bytes": span_bytes, "share": None}
    room = os.statvfs(target.path.parent)
    return {"span_bytes": span_bytes, "share": span_bytes / max(room.f_blocks * room.f_frsize, 1)}


def capacity(path: Path) -> int:
    """Return the size of a file or block device in bytes.

    Raises:
        TargetError: The path cannot be opened.
    """
    step = "name a file or device that you may write to"
    with os_errors_as(TargetError, "cannot be opened", path, step), path.open("rb") as file:
        return file.seek(0, os.SEEK_END)
