"""Benches, which run workloads: one folder per kind of target, all with the same protocol.

Names are imported on first use, so that `--help` does not load a database driver.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "postgres.binaries": ("Binaries", "find_binaries"),
    "postgres.embedded": ("EmbeddedPostgres",),
    "guardian": ("Guardian",),
    "undo": ("ServerUndo", "SqlUndo"),
    "postgres.setting_values": ("SettingFact", "SettingValue"),
    "postgres.settings": (
        "SettingChange",
        "classify",
        "connection_options",
        "read_facts",
        "session_sql",
    ),
    "postgres.permission": ("refusal",),
    "postgres.altered_settings": ("apply_server_settings",),
    "postgres.server": ("Postgres", "open_target"),
    "postgres.watch": ("Watcher", "application_names"),
    "metrics": ("Metric", "counters", "host_counters"),
    "canary": ("Canaries", "canaries", "canary_folder"),
    "check": ("Check",),
    "doctor": ("examine",),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605  # the table above is the only list of names


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
