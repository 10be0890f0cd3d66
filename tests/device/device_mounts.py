"""Mounted folders for tests, or the reason why they are not available here."""

from __future__ import annotations

from pathlib import Path

from dbdyno.base.errors import DeviceError
from dbdyno.device.mounts import check_machine
from skipped import skipped_on


def require_fuse() -> None:
    """Skip the test if folders cannot be mounted."""
    with skipped_on(DeviceError):
        check_machine()


def empty_folder(below: Path, name: str = "mounted") -> Path:
    """Return an empty folder for a mount."""
    folder = below / name
    folder.mkdir(parents=True)
    return folder
