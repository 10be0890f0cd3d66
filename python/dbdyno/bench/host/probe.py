"""The files of a redo probe and the machine under them: where they go, what is known about them.

The probe itself is in Rust (`crates/dyno-load/src/probe`); here a path that a user gave becomes the
file that is made, and the machine is asked what lies under it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.bench.host.machine import FileSystem, file_system, host_facts

FILE_NAME = "dbdyno-redo.log"
"""Name of the file that is made in a folder."""


@dataclass(frozen=True)
class LogArm:
    """A log writer with its sessions and its files; the values of `ProbeArm` in the Rust core.

    `rule` is 'first' (a race: one durable copy is enough) or 'all'. Sizes in bytes, times in ns.
    """

    name: str
    paths: tuple[Path, ...]
    rule: str = "all"
    sync: str = "direct+dsync"
    size: str = "512"
    block_bytes: int = 4096
    file_bytes: int = 64 << 20
    sessions: int = 1
    think_ns: int = 0
    rate_per_s: float | None = None
    backlog_bytes: int | None = None
    outlier_ns: int = 500_000_000
    hand_over: bool = False
    keep: bool = False

    def spec(self) -> dict[str, Any]:
        """The arm as JSON values for the core."""
        return {**vars(self), "paths": [str(path) for path in self.paths]}

    @classmethod
    def of(cls, spec: dict[str, Any]) -> LogArm:
        """The arm that `spec` told."""
        return cls(**{**spec, "paths": tuple(map(Path, spec["paths"]))})

    def parameters(self) -> dict[str, Any]:
        """The arm as parameters of a typed workload; its name is the arm's."""
        return {key: value for key, value in self.spec().items() if key != "name"}

    def with_files_beside(self, end: str) -> LogArm:
        """The same on files of its own, beside those of an arm that is like it."""
        return replace(self, paths=tuple(Path(f"{path}{end}") for path in self.paths))

    def with_files(self, suffix: str = "") -> LogArm:
        """The same with a file's name in place of each folder, and `suffix` behind each name."""
        return replace(self, paths=tuple(log_file(path, suffix) for path in self.paths))


def log_file(path: Path, suffix: str = "") -> Path:
    """The file that a path means: itself, or one in the folder that it is."""
    path = path.expanduser()
    path = path / FILE_NAME if path.is_dir() else path
    return path.with_name(path.name + suffix) if suffix else path


def place(path: Path) -> FileSystem | None:
    """The file system that a file will lie on."""
    return file_system(path.parent)


def facts(arms: list[LogArm]) -> dict[str, Any]:
    """The machine and what lies under each path, for the manifest."""
    found: dict[str, Any] = {**host_facts(), "settings": []}
    paths = dict.fromkeys(path for arm in arms for path in arm.paths)
    for path in paths:
        disk = place(path)
        if disk is None:
            continue
        device = f" on {disk.device}" if disk.device else ""
        model = f", {disk.model}" if disk.model else ""
        turning = {True: ", turning", False: ", not turning", None: ""}[disk.rotational]
        found[str(path)] = f"{disk.kind}{device}{model}{turning}{cache_mode(disk.device or '')}"
        if disk.in_memory:
            found["data_in_memory"] = True
    return found


def cache_mode(device: str) -> str:
    """How the kernel takes the device's cache: 'write back' must be flushed to be durable."""
    try:
        text = (Path("/sys/class/block") / device / "queue/write_cache").read_text()
    except OSError:
        return ""
    return f", cache: {text.strip()}"


def same_device(arm: LogArm) -> str | None:
    """The device that both paths of an arm lie on; None where there are two, or it is not known."""
    if len(arm.paths) < 2:
        return None
    try:
        numbers = {os.stat(path.parent).st_dev for path in arm.paths}  # noqa: PTH116
    except OSError:
        return None
    if len(numbers) > 1:
        return None
    disk = place(arm.paths[0])
    return disk.device or disk.kind if disk else "?"
