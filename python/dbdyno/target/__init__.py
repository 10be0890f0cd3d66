"""Targets: where a workload runs. Today: live PostgreSQL, embedded or anybody's.

Names are imported on first use, so that asking for help does not load a database driver.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "binaries": ("Binaries", "find_binaries"),
    "embedded": ("EmbeddedPostgres",),
    "guardian": ("Guardian",),
    "undo": ("ServerUndo", "SqlUndo"),
    "setting_values": ("SettingFact", "SettingValue"),
    "settings": (
        "SettingChange",
        "classify",
        "connection_options",
        "read_facts",
        "session_sql",
    ),
    "permission": ("refusal",),
    "alter": ("apply_server_settings",),
    "postgres": ("Postgres", "open_target"),
    "watch": ("Watcher", "application_names"),
    "metrics": ("Metric", "counters", "host_counters"),
    "canary": ("Canaries", "canaries", "canary_folder"),
    "events": ("wait_class",),
    "check": ("Check",),
    "doctor": ("examine",),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # the table above is the one list


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
