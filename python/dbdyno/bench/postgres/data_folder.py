"""The file system and device of a server's data folder, and of its WAL if that is on another file system."""

from __future__ import annotations

from pathlib import Path

from dbdyno.bench.host.machine import file_system


def disk_facts(data: Path | None) -> dict[str, object]:
    """Return facts about the data folder's disk for the manifest; empty if the folder is unknown."""
    found = file_system(data) if data else None
    if data is None or found is None:
        return {}
    facts: dict[str, object] = {
        "data_file_system": found.kind,
        "data_mount": found.mount,
        "data_in_memory": found.in_memory,
        "data_device": found.device,
        "data_device_model": found.model,
        "data_device_rotational": found.rotational,
    }
    wal = file_system(data / "pg_wal")
    if wal and wal.mount != found.mount:
        facts |= {"wal_file_system": wal.kind, "wal_mount": wal.mount, "wal_device": wal.device}
    return {name: value for name, value in facts.items() if value is not None}
