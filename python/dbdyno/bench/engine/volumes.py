"""Modelled devices below a server that dbdyno starts: which of its files are on which device.

    device = "gp3"                                 data and log on one volume
    device = {data = "gp3", wal = "io2"}           each on a volume of its own
    device = {wal = "flash-2011"}                  the log only; data stay on the disk of this machine
    device = {data = "gp3", wal = "gp3", iops = 6000}
    device = {data = "gp3", wal = {device = "gp3", iops = 16000}}     two volumes: their parameters differ

A table is flat here: `{"data": "gp3", "wal": "gp3", "wal.iops": "16000"}`. Data and log on equal devices with equal
parameters share one volume, and therefore one queue. This module mounts nothing; `mounted_volumes` does.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbdyno.base.errors import DeviceError
from dbdyno.bench.kinds import ON_DEVICE, embedded_of
from dbdyno.device.catalogue import Device, device_of, idle_request_us, settings_of

DATA, WAL, NONE = "data", "wal", "none"
PARTS = (DATA, WAL)
"""The two parts of a server's files that can be on a device: everything except the log, and the log."""
DIRECT_IO = "direct_io"
"""Option of a volume: the kernel caches nothing, so that each read and write reaches the device."""
POLL = "poll"
"""Option of a volume: its mount polls for requests, on a separate processor."""
_SWITCHES = (DIRECT_IO, POLL)
DEVICE = "device"
"""Name of the plan key under which devices are specified."""
WORDS = {DATA: "data", WAL: "log"}


@dataclass(frozen=True)
class Volume:
    """A device that carries a server's data, its log, or both.

    Attributes:
        device: Name of the device, or path of its TOML file.
        settings: Its changed parameters, as a user writes them.
        direct_io: True if the kernel caches nothing.
        polls: True if its mount polls for requests.
        parts: The parts of the server's files on the device.
    """

    device: str
    settings: tuple[str, ...] = ()
    direct_io: bool = False
    polls: bool = False
    parts: tuple[str, ...] = PARTS

    @property
    def contents(self) -> str:
        """Return a description of the files on the device, in words."""
        return " and ".join(WORDS[part] for part in self.parts)

    def device_and_parameters(self) -> tuple[Device, list[tuple[str, str]]]:
        """Return the device, and its changed parameters, each as its path and value.

        Raises:
            DeviceError: There is no such device or parameter.
            ModelError: The device's file is not valid.
        """
        device = device_of(self.device)
        return device, settings_of(device, self.settings)


def single_device_table(device: str) -> dict[str, str]:
    """Return the table for data and log on one device."""
    return dict.fromkeys(PARTS, device)


def target_parts(target: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the engine of a target and the devices below it; a target without devices is returned unchanged.

    >>> target_parts("postgres+device:gp3")
    ('postgres', {'data': 'gp3', 'wal': 'gp3'})
    """
    engine, device = embedded_of(target), (target or "").partition(ON_DEVICE)[2]
    if engine == target:
        return target, {}
    if not device:
        raise DeviceError(
            "does not name a device", where=target, next_step="list the devices with `dbdyno device list`"
        )
    return engine, single_device_table(device)


def volumes_of(devices: Mapping[str, str]) -> list[Volume]:
    """Return the volumes of a table of devices and parameters, after checking every name.

    Raises:
        DeviceError: A device or parameter does not exist, or a parameter has no device.
        ModelError: The file of a device is not valid.
    """
    placed = [part for part in PARTS if devices.get(part, NONE) != NONE]
    if spare := [name for name in devices if name not in PARTS and not _has_place(name, placed)]:
        near = difflib.get_close_matches(spare[0], PARTS, 1)
        raise DeviceError(
            f"{spare[0]!r} is neither a device of this target nor a parameter of one",
            next_step=f"did you mean {near[0]}?" if near else "name its device first: data = ... or wal = ...",
        )
    made = [_volume(devices, part, alone=len(placed) == 1) for part in placed]
    if len(made) == len(PARTS) and len({replace(one, parts=PARTS) for one in made}) == 1:
        return [replace(made[0], parts=PARTS)]
    return made


def check_volumes(devices: Mapping[str, str]) -> None:
    """Check a table of devices completely, including the values of parameters.

    Raises:
        DeviceError: A device or parameter does not exist, or a parameter has no device.
        ModelError: A value or the file of a device is not valid.
    """
    for volume in volumes_of(devices):
        idle_request_us(*volume.device_and_parameters(), reads=True)


def _has_place(name: str, placed: list[str]) -> bool:
    first = name.partition(".")[0]
    return first in placed if first in PARTS else bool(placed)


def _volume(devices: Mapping[str, str], part: str, *, alone: bool) -> Volume:
    given = _parameters(devices, part, alone=alone)
    direct, polls = (_is_on(name, given.pop(name, "off"), devices[part]) for name in _SWITCHES)
    settings = tuple(f"{name}={value}" for name, value in given.items())
    made = Volume(devices[part], settings, direct, polls, (part,))
    made.device_and_parameters()
    return made


def _is_on(name: str, value: str, device: str) -> bool:
    if value not in ("on", "off", "true", "false"):
        raise DeviceError(f"{name} must be on or off, found {value!r}", where=device, next_step="write on or off")
    return value in ("on", "true")


def _parameters(devices: Mapping[str, str], part: str, *, alone: bool) -> dict[str, str]:
    """Return the parameters for a part's device: those that name the part (`wal.iops`), and general ones that fit.

    If there is only one device (`alone`), it gets all parameters, so that an unknown one is an error.
    """
    paths = [row["path"] for row in device_of(devices[part]).machine.parameters]
    elsewhere = set(_SWITCHES)
    if not alone:
        (other,) = (devices[name] for name in PARTS if name != part)
        elsewhere |= {row["path"].rpartition(".")[2] for row in device_of(other).machine.parameters}
    own: dict[str, str] = {}
    for name, value in devices.items():
        first, _, rest = name.partition(".")
        if first in PARTS:
            own |= {rest: value} if first == part and rest else {}
        elif name in _SWITCHES or any(path.endswith(f".{name}") for path in paths) or name not in elsewhere:
            own[name] = value
    return own


def describe_devices(devices: Mapping[str, str]) -> str:
    """Return a description of a table of devices, such as 'data on gp3, log on io2 (iops=6000)', or an empty text."""
    try:
        volumes = volumes_of(devices)
    except DeviceError:
        return ", ".join(f"{name} = {value}" for name, value in devices.items())
    return ", ".join(_describe(volume) for volume in volumes)


def differing_devices(devices: Mapping[str, str]) -> dict[str, str]:
    """Return the devices in the form in which a manifest states how arms differ."""
    return {DEVICE: describe_devices(devices)} if devices else {}


def _describe(volume: Volume) -> str:
    switches = {"direct I/O": volume.direct_io, "polling": volume.polls}
    changed = ", ".join([*volume.settings, *(word for word, is_on in switches.items() if is_on)])
    return f"{volume.contents} on {volume.device}" + (f" ({changed})" if changed else "")
