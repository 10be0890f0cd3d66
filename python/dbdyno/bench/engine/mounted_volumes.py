"""Volumes of a server that dbdyno starts: their folders, their mounts, and their state.

    F/volume        where the data's device is mounted, with data/ in it      F/volume.data        the files below
    F/log-volume    where the log's device is mounted, with log/ in it        F/log-volume.data

`F` is the private folder of the server. Files are created on the disk of this machine and are then moved below the
mount, so that using the server takes the device's time, but creating its files does not. Each mount is served by a
separate process. If this process dies, that process unmounts the folder after the guardian has had time to act.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dbdyno.base.device_types import DeviceSpec, DeviceStatus
from dbdyno.base.errors import DeviceError, TargetError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.volumes import DATA, WAL, Volume
from dbdyno.bench.metrics import Metric
from dbdyno.device.mounts import check_machine, check_processors, detach, is_mounted, status
from dbdyno.device.server import start_server

_MOUNTS = {DATA: "volume", WAL: "log-volume"}
_COUNTS = {"read": "reads", "write": "writes", "flush": "flushes"}
LOG = "log"
"""Folder of the log if it is separate from the data."""


class MountedVolumes:
    """The volumes of one server in its private folder."""

    def __init__(self, volumes: Sequence[Volume]) -> None:
        """Check that folders can be mounted here, if there are volumes.

        Raises:
            DeviceError: This machine cannot mount folders, or has too few processors for the devices that poll.
        """
        self.volumes = tuple(volumes)
        self._mounted: list[Path] = []
        if volumes:
            check_machine()
        check_processors(sum(own.polls for own in volumes))

    def __bool__(self) -> bool:
        return bool(self.volumes)

    def mount_of(self, part: str) -> str | None:
        """Return the mount folder's name for a part of the files, or None if the part is not on a device."""
        volume = next((own for own in self.volumes if part in own.parts), None)
        return None if volume is None else _MOUNTS[volume.parts[0]]

    def data_folder(self, folder: Path) -> Path:
        """Return the data folder of a server in its private folder."""
        mount = self.mount_of(DATA)
        return folder / "data" if mount is None else folder / mount / "data"

    def log_folder(self, folder: Path) -> Path | None:
        """Return the folder of the log, or None if it is part of the data folder."""
        mount = self.mount_of(WAL)
        if mount == self.mount_of(DATA):
            return None
        return folder / LOG if mount is None else folder / mount / LOG

    def folders(self, folder: Path) -> list[Path]:
        """Return the folders at which the devices are mounted."""
        return [folder / _MOUNTS[own.parts[0]] for own in self.volumes]

    def make_folders(self, folder: Path, own: Callable[[Path], None]) -> None:
        """Create the mount folders and the log folder if it is separate; `own` sets their mode and owner."""
        for made in [*self.folders(folder), *filter(None, [self.log_folder(folder)])]:
            made.mkdir(mode=0o700, parents=True)
            own(made)

    def mount(self, folder: Path) -> None:
        """Move the created folders aside, and mount the devices in their place.

        Raises:
            DeviceError: A device cannot be mounted; the others are unmounted.
            ModelError: A device or parameter is not valid.
        """
        try:
            for volume, place in zip(self.volumes, self.folders(folder), strict=True):
                start_server(_move_aside(volume, place), lifeline=True)
                self._mounted.append(place)
        except BaseException:
            self.unmount()
            raise

    def unmount(self) -> None:
        """Unmount the devices, even if programs use them."""
        while self._mounted:
            place = self._mounted.pop()
            with contextlib.suppress(DeviceError):
                if is_mounted(place):
                    detach(place)

    def states(self) -> list[tuple[Volume, DeviceStatus]]:
        """Return the state of each mounted volume.

        Raises:
            TargetError: The process that serves a volume is dead.
        """
        try:
            return [(own, status(place)) for own, place in zip(self.volumes, self._mounted, strict=False)]
        except DeviceError as error:
            raise TargetError(
                f"a device that the server uses was lost: {error.message}",
                where=error.where,
                next_step="check in the kernel's log why the process ended (such as lack of memory), then run "
                "the command again",
            ) from error

    def records(self) -> list[JsonObject]:
        """Return the manifest records of the volumes: contents, device, parameters, kernel time of a request."""
        return [
            {
                "carries": own.contents,
                "device": own.device,
                "title": own.device_and_parameters()[0].machine.title,
                "settings": dict(setting.split("=", 1) for setting in own.settings),
                "direct_io": state["direct_io"],
                "polls": state["polls"],
                "floor_ns": state["floor_ns"],
                "kernel_writeback": state["kernel_writeback"],
            }
            for own, state in self.states()
        ]

    def metrics(self) -> list[Metric]:
        """Return counts and times of each volume's requests since it was mounted, and how late replies were."""
        found = []
        for own, state in self.states():
            at_ns = time.time_ns()
            times = {"read": state["read"], "write": state["write"], "flush": state["flush"], "late": state["late"]}
            for kind, one in times.items():
                values = {"p50": one["p50_ns"], "p99": one["p99_ns"], "max": one["max_ns"]}
                found += [_metric(own, f"{kind}_{name}", at_ns, value, "ns", "gauge") for name, value in values.items()]
                if kind != "late":
                    found.append(_metric(own, _COUNTS[kind], at_ns, one["count"], "count", "counter"))
            found.append(_metric(own, "used_bytes", at_ns, state["used_bytes"], "bytes", "gauge"))
        return found


def _metric(volume: Volume, name: str, at_ns: int, value: float, unit: str, kind: str) -> Metric:
    return Metric("device", "volume", volume.contents, name, at_ns, value, unit, kind)


def _move_aside(volume: Volume, place: Path) -> DeviceSpec:
    """Move a folder aside, create an empty one with the same access rights, and return the folder moved aside."""
    back = place.with_name(f"{place.name}.data")
    place.rename(back)
    place.mkdir(mode=0o700)
    seen = back.stat()
    os.chown(place, seen.st_uid, seen.st_gid)
    device, settings = volume.device_and_parameters()
    return {
        "device": device.name,
        "folder": str(place),
        "back": str(back),
        "toml": device.machine.toml,
        "settings": settings,
        "direct_io": volume.direct_io,
        "polls": volume.polls,
    }
