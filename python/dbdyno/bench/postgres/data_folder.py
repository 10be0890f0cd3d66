"""The file system and device of a server's data folder, and of its WAL if that is on another file system."""

from __future__ import annotations

from pathlib import Path

from dbdyno.bench.host.machine import data_disk_facts, file_system


def disk_facts(data: Path | None) -> dict[str, object]:
    """Return facts about the data folder's disk for the manifest; empty if the folder is unknown."""
    facts = data_disk_facts(data) if data else {}
    wal = file_system(data / "pg_wal") if data and facts else None
    if wal and wal.mount != facts.get("data_mount"):
        own = {"wal_file_system": wal.kind, "wal_mount": wal.mount, "wal_device": wal.device}
        facts |= {name: value for name, value in own.items() if value is not None}
    return facts
