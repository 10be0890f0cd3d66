"""`wal_sync_method` of a server as a choice of device: the host probe timed each method as a separate device.

A machine calibrated from a run has the log device as the run used it, with one method. It does not show how long
another method takes, because the method determines whether the file system writes its journal and whether the device
flushes its cache.
"""

from __future__ import annotations

from dbdyno.base.errors import ModelError
from dbdyno.model.machine import Machine

SETTING = "wal_sync_method"
USUAL = "fdatasync"
"""Default sync method of PostgreSQL on Linux; its device in the machine is named `log`."""
STORAGE = "storage.redo"
_LOG = "log"


def device_name(method: str) -> str:
    """Return the name of a method's device in a machine."""
    return _LOG if method == USUAL else f"{_LOG}_{method}"


def methods_of(machine: Machine) -> list[str]:
    """Return the methods for which a machine has devices; none if it has only one device."""
    names = [part["name"] for part in machine.parts]
    others = [name.removeprefix(f"{_LOG}_") for name in names if name.startswith(f"{_LOG}_")]
    return [USUAL, *others] if others else []


def method_settings(machine: Machine, method: str) -> tuple[dict[str, str], list[str]]:
    """Return the model's settings for a sync method, or else a sentence that the machine does not have the method."""
    known = methods_of(machine)
    if method in known:
        return {STORAGE: device_name(method)}, []
    has = f"has {', '.join(known)}" if known else "models the device as its run used it"
    return {}, [
        f"{SETTING} = {method} is not in this machine, which {has}, so the effect of the setting is not predicted."
        " `dbdyno model calibrate --host` times each method that this host supports."
    ]


def settings_of(machine: Machine, method: str) -> dict[str, str]:
    """Return the settings of the model with which a machine uses a sync method.

    Raises:
        ModelError: The machine has no such method.
    """
    settings, lacks = method_settings(machine, method)
    if lacks:
        raise ModelError(lacks[0].rstrip("."), where=f"--set {SETTING}={method}")
    return settings
