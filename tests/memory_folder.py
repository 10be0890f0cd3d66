"""A folder in memory for servers whose storage is not what a test is about."""

from __future__ import annotations

import shutil
from pathlib import Path


def roomy_memory() -> Path | None:
    """Return a folder in memory if it has room for several servers: databases are made and dropped there in a third of
    the processor time."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 8 << 30 else None
