"""Plans of power cuts: an engine, its settings, its load and its device.

A plan is built in or a TOML file:

    title = "PostgreSQL with a log that is not synced"
    engine = "postgres"
    sessions = 4

    [settings]
    fsync = "off"
"""

from __future__ import annotations

import difflib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from dbdyno.base.errors import DeviceError, unknown_name
from dbdyno.base.files import user_file_toml
from dbdyno.base.json_types import JsonObject

ENGINES = ("sqlite", "postgres", "mariadb", "evidence")
NAMES = ("with-folders", "with-files")
SECTORS = (512, 4096)


@dataclass(frozen=True)
class CutPlan:
    """A plan of power cuts.

    Attributes:
        title: What the campaign tests.
        engine: `sqlite`, `postgres`, `mariadb`, or `evidence` (dbdyno's own stores).
        settings: Settings of the engine: for PostgreSQL also `data_checksums`, for SQLite its pragmas, for evidence
            `store`.
        sessions: Sessions of the load; SQLite and evidence have one.
        names: When new, removed and renamed files are durable: when their folder is synced, or when any file is synced.
        sector_bytes: Size of a write that the device never writes in part [bytes].
        fail: Faults of the device, as in `dbdyno device mount --fail`.
        recovery_percent: Share of the cuts with another cut during the recovery [%].
        cuts_of_a_database: Number of cuts after which a new database is created.
        after_changes: Number of file changes before the power fails, instead of a random number.
    """

    title: str
    engine: str
    settings: dict[str, str] = field(default_factory=dict)
    sessions: int = 4
    names: str = "with-folders"
    sector_bytes: int = 512
    fail: tuple[str, ...] = ()
    recovery_percent: int = 25
    cuts_of_a_database: int = 10
    after_changes: int | None = None

    def to_toml(self) -> str:
        """Return the plan as a file that `plan_of` reads."""
        given = {key: value for key, value in asdict(self).items() if key != "settings" and value is not None}
        lines = [f"{key} = {_toml(value)}" for key, value in given.items()]
        lines += ["[settings]", *(f"{key} = {_toml(value)}" for key, value in self.settings.items())]
        return "\n".join(lines) + "\n"


BUILT_IN = {
    "postgres": CutPlan("PostgreSQL with its defaults", "postgres"),
    "postgres-fsync-off": CutPlan("PostgreSQL, fsync off", "postgres", {"fsync": "off"}),
    "postgres-synchronous-commit-off": CutPlan(
        "PostgreSQL, synchronous_commit off", "postgres", {"synchronous_commit": "off"}
    ),
    "postgres-full-page-writes-off": CutPlan(
        "PostgreSQL, full_page_writes off", "postgres", {"full_page_writes": "off"}
    ),
    "postgres-lying-flush": CutPlan(
        "PostgreSQL with its defaults on a device that lies", "postgres", fail=("lying-flush",)
    ),
    "postgres-write-hole": CutPlan(
        "PostgreSQL with its defaults on a RAID-5 array with a write hole", "postgres", fail=("write-hole",)
    ),
    **{
        f"postgres-wal-{method.replace('_', '-')}": CutPlan(
            f"PostgreSQL, wal_sync_method {method}", "postgres", {"wal_sync_method": method}
        )
        for method in ("fsync", "open_datasync", "open_sync")
    },
    "postgres-synchronous-commit-local": CutPlan(
        "PostgreSQL, synchronous_commit local", "postgres", {"synchronous_commit": "local"}
    ),
    "postgres-checksums-off": CutPlan("PostgreSQL without page checksums", "postgres", {"data_checksums": "off"}),
    "postgres-checksums-and-full-page-writes-off": CutPlan(
        "PostgreSQL without page checksums, full_page_writes off",
        "postgres",
        {"data_checksums": "off", "full_page_writes": "off"},
    ),
    "mariadb": CutPlan("MariaDB with its defaults", "mariadb"),
    **{
        f"mariadb-flush-{value}": CutPlan(
            f"MariaDB, innodb_flush_log_at_trx_commit {value}",
            "mariadb",
            {"innodb_flush_log_at_trx_commit": value},
        )
        for value in ("0", "2")
    },
    "mariadb-doublewrite-off": CutPlan("MariaDB, innodb_doublewrite OFF", "mariadb", {"innodb_doublewrite": "OFF"}),
    "mariadb-lying-flush": CutPlan("MariaDB with its defaults on a device that lies", "mariadb", fail=("lying-flush",)),
    "mariadb-write-hole": CutPlan(
        "MariaDB with its defaults on a RAID-5 array with a write hole", "mariadb", fail=("write-hole",)
    ),
    **{
        f"evidence-{store}": CutPlan(f"dbdyno's own {words}", "evidence", {"store": store})
        for store, words in {
            "runs": "runs",
            "snapshots": "store of snapshots",
            "moves": "ledger of moves",
            "settings": "records of settings to be restored",
        }.items()
    },
    "sqlite": CutPlan("SQLite, rollback journal, synchronous EXTRA", "sqlite", {"synchronous": "extra"}),
    "sqlite-full": CutPlan("SQLite, rollback journal, synchronous FULL", "sqlite", {"synchronous": "full"}),
    "sqlite-wal": CutPlan("SQLite, WAL, synchronous FULL", "sqlite", {"journal_mode": "wal", "synchronous": "full"}),
    "sqlite-wal-normal": CutPlan(
        "SQLite, WAL, synchronous NORMAL", "sqlite", {"journal_mode": "wal", "synchronous": "normal"}
    ),
    "sqlite-off": CutPlan("SQLite, rollback journal, synchronous OFF", "sqlite", {"synchronous": "off"}),
    "sqlite-lying-flush": CutPlan(
        "SQLite, synchronous EXTRA, on a device that lies", "sqlite", {"synchronous": "extra"}, fail=("lying-flush",)
    ),
}
"""Built-in plans."""


def plan_of(name: str) -> CutPlan:
    """Return a plan by its name or from its TOML file.

    Raises:
        DeviceError: there is no such plan, or a key or value in the file is not valid.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if not name.endswith(".toml") and "/" not in name:
        raise unknown_name(DeviceError, "plan of power cuts", name, BUILT_IN)
    return check_plan(user_file_toml(Path(name), DeviceError), name)


def check_plan(values: JsonObject, where: str) -> CutPlan:
    """Check the values of a plan file, and return them as a plan.

    Raises:
        DeviceError: a key is unknown or missing, or a value is not valid.
    """
    kinds = {one.name: one.type for one in fields(CutPlan)}
    for key, value in values.items():
        if key not in kinds:
            near = difflib.get_close_matches(key, kinds, 1)
            hint = f"did you mean {near[0]}? " if near else ""
            raise DeviceError(
                f"unknown key {key!r}", where=where, next_step=f"{hint}use only the keys {', '.join(kinds)}"
            )
        _check(key, value, str(kinds[key]), where)
    for key in ("title", "engine"):
        if key not in values:
            raise DeviceError(f"the plan has no key {key!r}", where=where, next_step="add the key to the plan")
    settings = {name: _word(value) for name, value in values.get("settings", {}).items()}
    return CutPlan(**{**values, "settings": settings, "fail": tuple(values.get("fail", ()))})


def _check(key: str, value: Any, kind: str, where: str) -> None:
    allowed = {"engine": ENGINES, "names": NAMES, "sector_bytes": SECTORS}.get(key)
    if allowed is not None and value not in allowed:
        raise DeviceError(
            f"{key} cannot be {value!r}", where=where, next_step=f"use one of {', '.join(map(str, allowed))}"
        )
    ranges = {
        "sessions": (1, 64),
        "recovery_percent": (0, 100),
        "cuts_of_a_database": (1, 1000),
        "after_changes": (1, 1_000_000),
    }
    if key in ranges:
        low, high = ranges[key]
        if type(value) is not int or not low <= value <= high:
            raise DeviceError(
                f"{key} must be a whole number from {low} to {high}, found {value!r}",
                where=where,
                next_step="choose a number in this range",
            )
    right = {"str": str, "dict[str, str]": dict, "tuple[str, ...]": list}.get(kind)
    if right is not None and not isinstance(value, right):
        raise DeviceError(
            f"{key} is not of type {right.__name__}: {value!r}", where=where, next_step="write a value of this type"
        )


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _toml(value: Any) -> str:
    """Return a text, a whole number or a list of texts in TOML syntax."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)
