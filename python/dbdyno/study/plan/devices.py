"""Modelled devices below a plan's servers: `device = "gp3"`, or a table that says what is on which device.

    device = "gp3"                                  data and log on one volume
    device = {data = "gp3", wal = {device = "io2", iops = 16000}}
    [[factor]]
    device = ["gp3", "io2", "nvme-2024"]            also device.wal = [...] and device.iops = [...]

Plans keep the values as they were written; `bench.engine.volumes` interprets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import DeviceError, Error, ModelError, PlanError
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.engine.volumes import DATA, DEVICE, PARTS, WAL, check_volumes, single_device_table, target_parts
from dbdyno.study.plan.factors import Level, option_values
from dbdyno.study.plan.key import Key

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.reader import PlanReader

KEYS = (
    Key(DATA, "str", "the device of the data, by its name (`dbdyno device list`) or as a TOML file", '"gp3"'),
    Key(
        WAL,
        "str",
        'the device of the log; if it is that of the data, both share one volume; "none": the disk of this machine',
        '"io2"',
    ),
)
"""Keys with a special meaning; any other key is a parameter of the device, `direct_io` or `poll`."""


OF_TARGET = (
    Key(
        DEVICE,
        DEVICE,
        'modelled devices below the servers that dbdyno starts; dsn = "postgres+device:gp3" says the same',
        None,
    ),
)
"""Key that is allowed in the table [target]."""
OF_ARM = (Key(DEVICE, DEVICE, "modelled devices below its server: data and log on one device, or a table"),)
"""Key that is allowed in an arm."""
TYPE_WORDS = {DEVICE: 'a name such as "gp3", or a table such as {data = "gp3", wal = "io2"}'}
"""Description of the type of these keys, for error messages."""


def read(reader: PlanReader, value: Any, where: str, at: int) -> dict[str, str]:
    """Return the table of devices after checking it; errors are raised by the plan's reader."""
    if isinstance(value, str):
        value = single_device_table(value)
    given = {name: _word(one) for name, one in _flat(value).items()}
    given = {name: _device_path(reader.path, one) if name in PARTS else one for name, one in given.items()}
    if any(name in PARTS for name in given):  # else it changes parameters of a device that is named elsewhere
        try:
            check_volumes(given)
        except (DeviceError, ModelError) as error:
            reader.fail(error.message, where, DEVICE, at, error.next_step)
    return given


def _flat(value: Mapping[str, Any]) -> JsonObject:
    """Return the nested table `{wal = {device = "io2", iops = 1}}` as `{"wal": "io2", "wal.iops": 1}`."""
    found: JsonObject = {}
    for name, one in value.items():
        inner = one if isinstance(one, dict) else {DEVICE: one}
        found |= {name if key == DEVICE else f"{name}.{key}": own for key, own in inner.items()}
    return found


def _device_path(plan_file: Path, name: str) -> str:
    """Return the path of a device's file relative to the plan's folder; the name of a built-in device is unchanged."""
    return str(plan_file.parent / name) if name.endswith(".toml") else name


def _word(value: Any) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def level(name: str, value: str) -> Level:
    """Return a device, the device of one part of a server (`wal`), or a parameter (`iops`) as a level of a factor."""
    if name == DEVICE:
        return Level(value, device=single_device_table(value))
    return Level(f"{name} {value}", device={name: value})


def plan_on_devices(plan: Plan, options: Mapping[str, str]) -> Plan:
    """Return the plan with the devices and parameters from `--set`; each combination of values becomes an arm.

    Raises:
        PlanError: A device or parameter does not exist, or there are too many arms.
    """
    from dbdyno.study.plan.factors import cross_levels

    single = {name: value for name, value in options.items() if "," not in value}
    plan = replace(plan, device={**plan.device, **single})
    several = [
        [level(name, value) for value in option_values(text, name)] for name, text in options.items() if "," in text
    ]
    plan = cross_levels(plan, several) if several else plan
    for arm in plan.arms:
        try:
            check_volumes(plan.device_of(arm))
        except (DeviceError, ModelError) as error:
            name = next(iter(options), "--target")
            where = f"--set {name}" if options else "--target"
            raise PlanError(error.message, where=error.where or where, next_step=error.next_step) from error
    return plan


def split_target(target: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the engine and the devices of a target.

    Raises:
        PlanError: A device of the target does not exist.
    """
    try:
        engine, devices = target_parts(target)
        check_volumes(devices)
    except Error as error:
        raise PlanError(error.message, where="--target", next_step=error.next_step) from error
    return engine, devices
