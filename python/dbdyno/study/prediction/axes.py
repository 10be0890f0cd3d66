"""Axes of a what-if: a device, sessions, cores, or a parameter of the machine, each with its levels.

device=gp3,io2        devices that come with dbdyno; `measured` is the calibrated one
data_device=gp3       the same, only for data and temporary files
shared_buffers=16MB,1GB      for a machine that knows the pages that its statements read
sessions=1..256       1, 2, 4 ... 256
cores=2..64
commit_delay_us=0,200
wal_sync_method=fdatasync,fsync     for a machine that knows several methods
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from dbdyno.base.errors import ModelError
from dbdyno.model.machine import Machine
from dbdyno.model.swap import with_data_device, with_device
from dbdyno.study.prediction.memory import BUFFERS, buffers_setting
from dbdyno.study.prediction.sync_methods import SETTING, settings_of

DEVICE, DATA_DEVICE, SESSIONS, CORES = "device", "data_device", "sessions", "cores"
_OWN = (DEVICE, DATA_DEVICE, SESSIONS, SETTING, BUFFERS)
"""Axes that are not parameters of a machine."""
MEASURED = "measured"
POINTS_MOST = 500
LEVELS_MOST = 64


@dataclass(frozen=True)
class Axis:
    """An axis: its name, and its levels as text."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Point:
    """A combination of levels: the machine (TOML), the settings and the number of sessions."""

    levels: dict[str, str]
    machine: str
    settings: dict[str, str]
    sessions: int


def axes_of(given: Sequence[str]) -> list[Axis]:
    """Return the axes in `NAME=V1,V2` or `NAME=FROM..TO`.

    Raises:
        ModelError: A text is not an axis, a range is empty, or an axis is named twice.
    """
    found: list[Axis] = []
    for text in given:
        name, sign, values = text.partition("=")
        levels = _levels(text, values) if sign and values else ()
        if not levels or not name:
            raise ModelError(
                "is not NAME=V1,V2 or NAME=FROM..TO",
                where=f"--set {text}",
                next_step="write for example --set sessions=1,8,64",
            )
        if any(axis.name == name for axis in found):
            raise ModelError(
                f"{name} is set twice", where=f"--set {text}", next_step="give all its levels in one option"
            )
        found.append(Axis(name, levels))
    return found


def _levels(text: str, values: str) -> tuple[str, ...]:
    if ".." not in values:
        return tuple(value.strip() for value in values.split(","))
    low_text, _, high_text = values.partition("..")
    try:
        low, high = int(low_text), int(high_text)
    except ValueError:
        low, high = 1, 0
    if not 0 < low <= high <= 65_535:
        raise ModelError(
            "a range must be two whole numbers from 1 to 65535",
            where=f"--set {text}",
            next_step="write for example 1..64",
        )
    levels = [low]
    while levels[-1] * 2 < high:
        levels.append(levels[-1] * 2)
    return tuple(str(level) for level in dict.fromkeys([*levels, high]))


def points_of(machine: Machine, axes: Sequence[Axis], sessions: int) -> list[Point]:
    """Return all combinations of levels.

    Args:
        machine: The calibrated machine.
        axes: The axes to combine.
        sessions: Number of sessions if it is not an axis.

    Raises:
        ModelError: There are too many combinations, or a level is not valid for its axis.
    """
    count = 1
    for axis in axes:
        count *= len(axis.levels)
    if count > POINTS_MOST:
        raise ModelError(
            f"{count} combinations are too many", next_step=f"name fewer levels; {POINTS_MOST} combinations at most"
        )
    names = [axis.name for axis in axes]
    if DEVICE in names and SETTING in names:
        raise ModelError(
            f"{DEVICE} and {SETTING} exclude each other: a catalogue device has the same sync time for every method",
            next_step="set only one of the two",
        )
    paths = {name: _path(machine, name) for name in names if name not in _OWN}
    return [
        _point(machine, dict(zip(names, levels, strict=True)), paths, sessions)
        for levels in product(*(axis.levels for axis in axes))
    ]


def _path(machine: Machine, name: str) -> str:
    """Return the full path of a parameter; if several match, that of the modelled PostgreSQL."""
    own = f"postgres.{name}"
    return own if any(row["path"] == own for row in machine.parameters) else machine.path(name, list(_OWN))


def _point(machine: Machine, levels: dict[str, str], paths: Mapping[str, str], sessions: int) -> Point:
    text = machine.toml
    device = levels.get(DEVICE, MEASURED)
    if device != MEASURED:
        text = with_device(text, device)
    data_device = levels.get(DATA_DEVICE, MEASURED)
    if data_device != MEASURED:
        text = with_data_device(text, data_device)
    settings = {paths[name]: value for name, value in levels.items() if name in paths}
    if SETTING in levels:
        settings |= settings_of(machine, levels[SETTING])
    if BUFFERS in levels:
        settings |= buffers_setting(machine, levels[BUFFERS])
    number = levels.get(SESSIONS, str(sessions))
    if not number.isdigit() or not 0 < int(number) <= 65_535:
        raise ModelError(
            "sessions must be a whole number from 1 to 65535",
            where=f"sessions={number}",
            next_step="choose a number in this range",
        )
    return Point(levels, text, settings, int(number))
