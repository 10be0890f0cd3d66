"""Undo of a mount by the guardian: the folder is unmounted even if its serving process has died."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dbdyno.base.errors import DeviceError


@dataclass(frozen=True, slots=True)
class MountUndo:
    """Undo that unmounts a folder even while programs use it."""

    label: str
    folder: str

    def execute(self) -> list[str]:
        """Unmount the folder and return problems as sentences; it is no problem if the folder is not mounted."""
        from dbdyno.device.mounts import detach, is_mounted

        folder = Path(self.folder)
        try:
            while is_mounted(folder):
                detach(folder)
        except DeviceError as error:
            return [f"{self.label}: {error.message}"]
        return []
