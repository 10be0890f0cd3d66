"""Private folders in the machine's memory (tmpfs), for values that must not be on a disk.

Values in such a folder may still reach a disk through swap space, as all memory of a process may. If a process is
killed, its folder is removed when the same user creates the next one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dbdyno.base.errors import EvidenceError

_PREFIX = "dbdyno-memory-"
_PLACES = ("/dev/shm", "/run/shm")  # noqa: S108 - file systems in memory, not folders for temporary files


@contextlib.contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a new folder in memory that only this user can read; it is removed at the end.

    Raises:
        EvidenceError: This machine has no file system in memory.
    """
    place = _place()
    _remove_left(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place() -> Path:
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        lines = []
    mounted = {words[1] for line in lines if (words := line.split())[2:3] in (["tmpfs"], ["ramfs"])}
    for name in (*_PLACES, os.environ.get("XDG_RUNTIME_DIR", "")):
        if name and any(name == one or name.startswith(f"{one}/") for one in mounted) and os.access(name, os.W_OK):
            return Path(name)
    raise EvidenceError(
        "there is no in-memory file system for values that must not reach a disk",
        where=", ".join(_PLACES),
        next_step="mount a tmpfs at /dev/shm",
    )


def _remove_left(place: Path) -> None:
    for left in place.glob(f"{_PREFIX}*"):
        process = left.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if process.isdigit() and left.stat().st_uid == os.geteuid() and not Path(f"/proc/{process}").exists():
                shutil.rmtree(left, ignore_errors=True)
