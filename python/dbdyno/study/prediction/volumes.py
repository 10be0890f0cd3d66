"""A machine on the modelled devices that a run had mounted for one of its arms, which may differ from its own."""

from __future__ import annotations

from typing import Any

from dbdyno.base.errors import ModelError
from dbdyno.evidence.run import Run
from dbdyno.model.machine import Machine
from dbdyno.model.swap import with_data_device, with_device, with_log_device


def on_devices_of(machine: Machine, run: Run, number: int) -> tuple[str, bool]:
    """Return a machine (TOML) on the devices of an arm, and whether these are known.

    They are known if the arm is on the same devices as the arm from which the machine was calibrated, or if they are
    devices of the catalogue. A data device counts only if it was mounted with direct I/O, since otherwise the kernel's
    cache answers reads.

    Args:
        machine: The calibrated machine.
        run: The run of the arm.
        number: Number of the arm in the run.
    """
    own = _volumes(run, number)
    arms = run.manifest.arms
    same = (at for at, arm in enumerate(arms) if machine.title == f"calibrated from {arm['name']} of {run.id}")
    if any(_volumes(run, at) == own for at in same):
        return machine.toml, True
    if not own:
        return machine.toml, False
    toml = machine.toml
    try:
        for parts, device, settings, direct_io in own:
            if set(parts) == {"data", "log"}:
                toml = with_device(toml, device, settings)
            elif "log" in parts:
                toml = with_log_device(toml, device, settings)
            elif direct_io:
                toml = with_data_device(toml, device, settings)
    except ModelError:
        return machine.toml, False
    return toml, True


def _volumes(run: Run, number: int) -> list[tuple[tuple[str, ...], str, dict[str, Any], bool]]:
    """Return the volumes of an arm's server: the parts of its files, the device, its settings, direct I/O."""
    target = run.manifest.arms[number]["target"]
    return [
        (
            tuple(part for part in ("data", "log") if part in str(one["carries"]).split()),
            str(one["device"]),
            dict(one["settings"]),
            bool(one["direct_io"]),
        )
        for one in run.manifest.volumes
        if one["target"] == target
    ]
