"""Folders mounted on devices: checks before a mount, the mounts of this machine, status and unmount.

    with mounted(spec) as mount: ...        in this process; unmounted at the end

A mount is served by one process. If that process is killed the folder stays mounted and answers every access with an
error; `unmount` removes it, and `dbdyno doctor` names it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.device_types import DeviceSpec, DeviceStatus
from dbdyno.base.errors import DeviceError
from dbdyno.base.files import os_errors_as
from dbdyno.base.processes import child_environment, find_program

if TYPE_CHECKING:
    from dbdyno import _core

MOUNT_TYPES = (["fuse", "dbdyno"], ["fuse.dbdyno", "dbdyno"])
"""File system type and source of dbdyno's mounts in /proc/self/mountinfo."""
STATUS = ".dbdyno-device"
"""Hidden file in a mounted folder that contains the status."""
FUSE = Path("/dev/fuse")
URING = Path("/sys/module/fuse/parameters/enable_uring")
"""Kernel file that shows whether FUSE over io_uring is enabled; it exists from Linux 6.14 on."""
THREADS = 4
"""Number of threads that take requests from the kernel."""
_DEAD = (errno.ENOTCONN, errno.EIO, errno.ECONNABORTED)
"""Error numbers of accesses to a mount whose process is dead."""
UNMOUNT_S = 10.0
"""Maximum time for the process of a mount to end after the unmount [s]."""


@dataclass(frozen=True)
class MountedFolder:
    """A folder of this machine that is mounted on a device."""

    folder: Path

    def process(self) -> int | None:
        """Return the process that serves the folder; None if it is dead, or if another user has mounted the folder."""
        return _process(self.folder)

    def is_dead(self) -> bool:
        """Return True if the process that served the folder is dead, so that every access fails."""
        try:
            (self.folder / STATUS).stat()
        except OSError as error:
            return error.errno in _DEAD
        return False


def check_machine() -> None:
    """Raise an error unless this machine and user can mount folders.

    Raises:
        DeviceError: the system is not Linux or has no FUSE, or the user may not mount folders or open the FUSE device.
    """
    if sys.platform != "linux":
        raise DeviceError(
            "devices need Linux: other systems have no FUSE without an additional driver",
            next_step="run dbdyno on Linux",
        )
    if not FUSE.exists():
        raise DeviceError(
            f"there is no {FUSE}: this kernel or container has no FUSE",
            next_step="run `modprobe fuse`, or start the container with --device /dev/fuse --cap-add SYS_ADMIN",
        )
    if os.geteuid() != 0 and find_program("fusermount3") is None and find_program("fusermount") is None:
        raise DeviceError(
            "fusermount3 is not installed; an ordinary user needs it to mount a device",
            next_step="run `apt-get install fuse3`, or run dbdyno as root",
        )
    if not os.access(FUSE, os.R_OK | os.W_OK):
        raise DeviceError(
            f"this user may not open {FUSE}; fusermount3 does not change that",
            next_step=f"run `chmod 666 {FUSE}` as root, which sets the usual mode, or run dbdyno as root",
        )


def check_folders(folder: Path, backing: Path) -> None:
    """Raise an error unless `folder` is empty and not mounted, and `backing` is neither inside nor around it.

    Raises:
        DeviceError: a folder is missing, not empty, mounted already, or inside the other, or the user may not use it.
    """
    if is_mounted(folder):
        raise DeviceError(
            "is mounted on a device already",
            where=str(folder),
            next_step=f"unmount it first: dbdyno device unmount {folder}",
        )
    with os_errors_as(DeviceError, "cannot be used as a mount point", folder, f"create the folder: mkdir -p {folder}"):
        content = next(folder.iterdir(), None)
    if content is not None:
        raise DeviceError(
            f"is not empty ({content.name}): a mount would hide its files",
            where=str(folder),
            next_step="name an empty folder, and name the folder with the device's data with --back",
        )
    if not backing.is_dir():
        raise DeviceError(
            "the data folder is a file" if backing.exists() else "the data folder does not exist",
            where=str(backing),
            next_step=f"create it with `mkdir -p {backing}`, or leave --back out",
        )
    for own in (folder, backing):
        if not os.access(own, os.R_OK | os.W_OK | os.X_OK):
            raise DeviceError(
                "this user may not write to it", where=str(own), next_step="name a folder that you may write to"
            )
    inner, outer = backing.resolve(), folder.resolve()
    if inner == outer or inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise DeviceError(
            "the folder of the data and the mounted folder must not contain each other",
            where=str(backing),
            next_step="name two separate folders",
        )


def check_processors(polling: int) -> None:
    """Raise an error unless this machine has more processors than mounts that poll.

    Raises:
        DeviceError: there are too few processors.
    """
    cores = len(os.sched_getaffinity(0))
    if 0 < polling >= cores:
        mounts = "a mount that polls keeps" if polling == 1 else f"{polling} mounts that poll keep"
        raise DeviceError(
            f"{mounts} {polling} of {cores} processor{'s' if cores > 1 else ''} busy, so no processor is left for the "
            "program",
            next_step="poll on fewer devices, or on none",
        )


@contextlib.contextmanager
def mount_folder(spec: DeviceSpec) -> Iterator[_core.DeviceMount]:
    """Mount a folder in this process, yield the mount, and unmount the folder at the end of the `with` block.

    Raises:
        DeviceError: the folder cannot be mounted or unmounted.
        ModelError: the device or a setting is not valid.
    """
    mount = open_mount(spec)
    try:
        yield mount
    finally:
        mount.unmount()


def open_mount(spec: DeviceSpec) -> _core.DeviceMount:
    """Mount a folder in this process; the caller unmounts it.

    Raises:
        DeviceError: the folder cannot be mounted.
        ModelError: the device or a setting is not valid.
    """
    from dbdyno import _core

    check_machine()
    check_folders(Path(spec["folder"]), Path(spec["back"]))
    check_processors(1 if spec.get("polls") else 0)
    try:
        return _core.DeviceMount({"threads": THREADS, **spec})
    except DeviceError as error:
        raise DeviceError(error.message, where=error.where or spec["folder"], next_step=_step(error)) from error


def _step(error: DeviceError) -> str:
    if "faster than this machine" in error.message:
        return "make the device slower with --set, or choose another one: `dbdyno device list`"
    if "ermission" in error.message or "not permitted" in error.message:
        return "run as root, or where fusermount3 may mount: a container needs --cap-add SYS_ADMIN"
    return error.next_step or "`dbdyno doctor` shows what is missing here"


def mounted_folders(table: Path = Path("/proc/self/mountinfo")) -> list[MountedFolder]:
    """Return the folders of this machine that are mounted on devices, including those whose process is dead."""
    try:
        lines = table.read_text().splitlines()
    except OSError:
        return []
    parts = [line.partition(" - ") for line in lines]
    found = [place.split() for place, _, kind in parts if kind.split()[:2] in MOUNT_TYPES]
    return [MountedFolder(Path(_plain(words[4]))) for words in found]


def _plain(text: str) -> str:
    """Return a path of the mount table with its escapes decoded (`\\040` is a space)."""
    return text.encode().decode("unicode_escape").encode("latin-1").decode()


def _process(folder: Path) -> int | None:
    try:
        return status(folder)["process"]
    except DeviceError:
        return None


def status(folder: Path) -> DeviceStatus:
    """Return the state of a mounted folder.

    Raises:
        DeviceError: the folder is not mounted on a device, another user has mounted it, or the process that served it
            is dead.
    """
    try:
        found: DeviceStatus = json.loads((folder / STATUS).read_text())
    except OSError as error:
        if error.errno in _DEAD:
            raise DeviceError(
                "the process that served this folder is dead",
                where=str(folder),
                next_step=f"run `dbdyno device unmount {folder}`; the files are still in the data folder",
            ) from error
        if error.errno == errno.EACCES and is_mounted(folder):
            raise DeviceError(
                "another user has mounted this folder",
                where=str(folder),
                next_step="run this command as that user: FUSE hides a user's mount from all others, root included",
            ) from error
        raise DeviceError(
            "is not mounted on a device",
            where=str(folder),
            next_step="mount one with `dbdyno device mount NAME DIR`",
        ) from error
    return found


def transport(state: DeviceStatus, switch: Path = URING) -> str:
    """Return in words how requests reach the process of a mount, and whether the kernel has FUSE over io_uring."""
    words = "polls for requests" if state["polls"] else "woken for requests"
    if state["transport"] == "ring":
        return f"{words}, over io_uring"
    try:
        has = "off" if switch.read_text().strip() == "N" else "on"
    except OSError:
        return f"{words}, by read and write (this kernel has no FUSE over io_uring)"
    return f"{words}, by read and write (FUSE over io_uring is {has} in this kernel)"


def unmount(folder: Path) -> int | None:
    """Unmount a folder, wait for its process to end, and return the process; None if it was dead or another user's.

    Raises:
        DeviceError: the folder is not mounted on a device, or a program still uses it.
    """
    path = _resolved(folder)
    if not is_mounted(path):
        raise DeviceError(
            "is not mounted on a device",
            where=str(folder),
            next_step="list the mounted devices with `dbdyno device list --mounted`",
        )
    process = _process(path)
    if MountedFolder(path).is_dead():
        detach(path)
    else:
        _run_unmount(path, at_once=False)
    deadline = time.monotonic() + UNMOUNT_S
    while process is not None and Path(f"/proc/{process}").exists() and time.monotonic() < deadline:
        if process == os.getpid() or _is_zombie(process):
            break
        time.sleep(0.01)
    return process


def is_mounted(folder: Path) -> bool:
    """Return True if a folder is mounted on a device, even if its process is dead."""
    path = _resolved(folder)
    return any(mount.folder == path for mount in mounted_folders())


def detach(folder: Path) -> None:
    """Unmount a folder even if programs use it; they get errors.

    Raises:
        DeviceError: the system refuses.
    """
    _run_unmount(_resolved(folder), at_once=True)


def _resolved(folder: Path) -> Path:
    """Return the path with links in its parents resolved, because a dead mount itself cannot be accessed."""
    return folder.absolute().parent.resolve() / folder.name


def _run_unmount(folder: Path, *, at_once: bool) -> None:
    done = subprocess.run(
        _unmount_command(folder, lazy=at_once),
        env=child_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DeviceError(
            f"cannot be unmounted: {(done.stderr or done.stdout).strip()}",
            where=str(folder),
            next_step=f"end the processes that use the folder; list them with: fuser -vm {folder}",
        )


def _is_zombie(process: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def _unmount_command(folder: Path, *, lazy: bool) -> list[str]:
    helper = find_program("fusermount3") or find_program("fusermount")
    if os.geteuid() != 0 and helper is not None:
        return [str(helper), "-uz" if lazy else "-u", "--", str(folder)]
    program = find_program("umount") or Path("/bin/umount")
    # By force: a program that waits for a dead process would wait for ever.
    return [str(program), *(["-f", "-l"] if lazy else []), "--", str(folder)]
