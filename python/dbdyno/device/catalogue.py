"""Built-in devices, and devices in TOML files: names, parameters and sources.

A device is a machine of the model (`dbdyno.model.machine`) of which only the storage of the data files is used.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from dbdyno.base.errors import DeviceError, unknown_name
from dbdyno.model.machine import Machine, machine_of, parse_machine

PAGE_BYTES = 4096
"""Size of the request whose time is listed [bytes]."""


@dataclass(frozen=True)
class Device:
    """A device: its name, and the machine file that describes it."""

    name: str
    machine: Machine


class ListedDevice(TypedDict):
    """A device as a row of a list; times are those of a 4 KB request on the idle device."""

    name: str
    title: str
    read_us: float
    write_us: float


class DeviceParameter(TypedDict):
    """A parameter of a device as a row of a table."""

    parameter: str
    value: str
    unit: str
    meaning: str
    source: str


def device_names() -> list[str]:
    """Return the names of the built-in devices."""
    from dbdyno import _core

    return [name for name, _ in _core.device_texts()]


def device_of(name: str) -> Device:
    """Return a device given its name or the path of its TOML file.

    Raises:
        DeviceError: no device has this name.
        ModelError: the file cannot be read, or a key or value in it is not valid.
    """
    from dbdyno import _core

    if name.endswith(".toml") or "/" in name:
        return Device(Path(name).stem, machine_of(f"model:{name}"))
    texts = dict(_core.device_texts())
    if name not in texts:
        raise unknown_name(DeviceError, "device", name, texts)
    return Device(name, parse_machine(f"device {name}", texts[name]))


def settings_of(device: Device, given: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return `KEY=VALUE` settings with complete parameter paths.

    Raises:
        DeviceError: a setting has no `=`, or names no parameter of the device or more than one.
    """
    paths = [row["path"] for row in device.machine.parameters if row["path"].startswith("devices.")]
    found = []
    for text in given:
        name, sign, value = text.partition("=")
        ends = [path for path in paths if path == name or path.endswith(f".{name}")]
        if sign and len(ends) == 1:
            found.append((ends[0], value))
            continue
        near = difflib.get_close_matches(name, [path.rpartition(".")[2] for path in paths], 3)
        known = f"did you mean {' or '.join(near)}? " if near else ""
        problem = (
            "is not KEY=VALUE"
            if not sign
            else f"names {len(ends)} parameters: {', '.join(ends)}"
            if ends
            else "names no parameter of the device"
        )
        raise DeviceError(
            problem,
            where=f"--set {text}",
            next_step=f"{known}list all parameters with `dbdyno device show {device.name}`",
        )
    return found


def idle_request_us(device: Device, settings: list[tuple[str, str]], *, reads: bool) -> float:
    """Return the time of a 4 KB request on the idle device [us].

    Raises:
        ModelError: a setting is not valid.
    """
    from dbdyno import _core

    return _core.device_alone_ns(device.machine.toml, settings, reads, PAGE_BYTES) / 1e3


def list_devices() -> list[ListedDevice]:
    """Return the built-in devices, one row each."""
    rows: list[ListedDevice] = []
    for name in device_names():
        device = device_of(name)
        rows.append(
            {
                "name": name,
                "title": device.machine.title,
                "read_us": round(idle_request_us(device, [], reads=True), 1),
                "write_us": round(idle_request_us(device, [], reads=False), 1),
            }
        )
    return rows


def parameters(device: Device) -> list[DeviceParameter]:
    """Return the parameters of a device with value, unit, meaning and source."""
    rows = [row for row in device.machine.parameters if row["path"].startswith("devices.")]
    return [
        {
            "parameter": row["path"].removeprefix("devices."),
            "value": "" if row["value"] is None else str(row["value"]),
            "unit": row["unit"],
            "meaning": row["meaning"],
            "source": row["source"],
        }
        for row in rows
        if not row["path"].endswith((".over", ".count"))
    ]
