"""The files of a redo probe and the storage under them.

The probe itself is in Rust (`crates/dyno-load/src/probe`); this module turns a path that a user gave into the file that
is created, and finds out what storage it is on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbdyno.base.json_types import JsonObject
from dbdyno.bench.host.machine import FileSystem, file_system, host_facts

FILE_NAME = "dbdyno-redo.log"
"""Name of the file that is created in a folder."""


@dataclass(frozen=True)
class LogArm:
    """A log writer with its sessions and its files; the fields are those of `ProbeArm` in the Rust core.

    `rule` is 'first' (a race: one durable copy is enough) or 'all'. Sizes are in bytes, times in ns.
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

    def spec(self) -> JsonObject:
        """Return the arm as JSON values for the core."""
        return {**vars(self), "paths": [str(path) for path in self.paths]}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> LogArm:
        """Return the arm that `spec` describes."""
        return cls(**{**spec, "paths": tuple(map(Path, spec["paths"]))})

    def parameters(self) -> JsonObject:
        """Return the arm as parameters of a typed workload, without its name."""
        return {key: value for key, value in self.spec().items() if key != "name"}

    def with_separate_files(self, end: str) -> LogArm:
        """Return a copy of the arm with separate files in the same folders, with `end` appended to their names."""
        return replace(self, paths=tuple(Path(f"{path}{end}") for path in self.paths))

    def with_files(self, suffix: str = "") -> LogArm:
        """Return a copy of the arm with a file path instead of each folder, and `suffix` appended to each file name."""
        return replace(self, paths=tuple(log_file(path, suffix) for path in self.paths))


def log_file(path: Path, suffix: str = "") -> Path:
    """Return the log file for a path: the path itself, or a file in it if the path is a folder."""
    path = path.expanduser()
    path = path / FILE_NAME if path.is_dir() else path
    return path.with_name(path.name + suffix) if suffix else path


def file_system_for(path: Path) -> FileSystem | None:
    """Return the file system on which a file will be, or None if unknown."""
    return file_system(path.parent)


def facts(arms: list[LogArm]) -> JsonObject:
    """Return facts about the machine and the storage of each path, for the manifest."""
    found: JsonObject = {**host_facts(), "settings": []}
    paths = dict.fromkeys(path for arm in arms for path in arm.paths)
    for path in paths:
        disk = file_system_for(path)
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
    """Return the kernel's setting of the device's cache, as a phrase; a 'write back' cache must be flushed."""
    try:
        text = (Path("/sys/class/block") / device / "queue/write_cache").read_text()
    except OSError:
        return ""
    return f", cache: {text.strip()}"


def same_device(arm: LogArm) -> str | None:
    """Return the device that all of an arm's paths share; None for one path, several devices or a missing folder."""
    if len(arm.paths) < 2:
        return None
    try:
        numbers = {os.stat(path.parent).st_dev for path in arm.paths}  # noqa: PTH116
    except OSError:
        return None
    if len(numbers) > 1:
        return None
    disk = file_system_for(arm.paths[0])
    return disk.device or disk.kind if disk else "?"
