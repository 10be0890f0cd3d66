"""Records of settings that a run changed on a server and that have not been restored yet.

A record is a small file, written and synced before the change and removed when the settings are restored:

    ~/.local/state/dbdyno/owed/<number>.json        ($XDG_STATE_HOME, or $DBDYNO_STATE)

It shows later commands on this machine which settings a killed run left changed, even if both runner and guardian were
killed and the run folder is elsewhere: the next run, `dbdyno doctor`, `dbdyno runs` and `dbdyno restore`. A run's
manifest holds the same record for commands on other machines.

A record holds no password. For a setting that may hold one (such as `primary_conninfo`) only the name is recorded; such
a setting cannot be restored from the record.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.base.errors import Error, TargetError
from dbdyno.base.files import state_folder
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.postgres.shown_settings import shown_value
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import Process
from dbdyno.evidence.run import is_alive, this_process

HIDDEN = "(hidden)"
RESTORED_FILE = "put_back.json"


@dataclass(frozen=True)
class ChangedSetting:
    """State of a setting before the run, and the values that the run gives it.

    Attributes:
        was: The value that was in effect.
        entry: The setting's previous entry in postgresql.auto.conf, or None if it had none.
        ours: The values that the run sets.
    """

    was: str
    entry: str | None
    ours: tuple[str, ...]


@dataclass(frozen=True)
class UnrestoredSettings:
    """Record of the settings to be restored on one server.

    Attributes:
        target: The server's address, without a password.
        server: Identity of the server, independent of the address used to reach it.
        settings: The changed settings, by name.
        run: Folder of the run.
        since: Time of the change, in ISO format.
        guardian: The guardian process that restores the settings.
        runner: The process that made the change.
        tries: Number of attempts to restore the settings.
        problem: Why the latest attempt failed.
    """

    target: str
    server: str
    settings: dict[str, ChangedSetting]
    run: str = ""
    since: str = ""
    guardian: Process = field(default_factory=Process)
    runner: Process = field(default_factory=Process)
    tries: int = 0
    problem: str = ""

    @property
    def state(self) -> str:
        """Return 'held' while the run is alive, 'retrying' while only its guardian is, or 'left' if neither is."""
        if is_alive(self.runner):
            return "held"
        return "retrying" if is_alive(self.guardian) else "left"

    @property
    def names(self) -> str:
        """Return the settings' names, joined by commas."""
        return ", ".join(self.settings)


def folder() -> Path:
    """Return the folder of this user's records."""
    return state_folder() / "owed"


def new_record(target: str, server: str, settings: Mapping[str, ChangedSetting], run: str = "") -> UnrestoredSettings:
    """Return the record of a change that this process is about to make."""
    return UnrestoredSettings(
        target, server, dict(settings), run, datetime.now(UTC).isoformat(timespec="seconds"), runner=this_process()
    )


def write_new(record: UnrestoredSettings) -> Path:
    """Write a record to a new file and return its path; the file is synced to disk when this returns.

    Raises:
        TargetError: The record cannot be written; the change must then not be made.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder() / f"{os.urandom(8).hex()}.json"
        write(path, record)
    except (OSError, Error) as error:
        said = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise TargetError(
            f"the previous settings cannot be saved: {said}; no setting was changed",
            where=str(folder()),
            next_step="free disk space or check the permissions, or name another folder in DBDYNO_STATE",
        ) from error
    return path


def write(path: Path, record: UnrestoredSettings) -> None:
    """Write a record, replacing the whole file."""
    write_json(path, to_json(record))


def delete_record(path: str | Path | None) -> None:
    """Remove a record because its settings are restored; a record that is already gone is not an error."""
    if path:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def read(path: Path | None) -> UnrestoredSettings | None:
    """Return the record in a file, or None if there is no file or it is not a valid record."""
    with contextlib.suppress(Error, KeyError, TypeError, ValueError, AttributeError):
        return None if path is None else from_json(read_json(path))
    return None


def all_records() -> dict[Path, UnrestoredSettings]:
    """Return all valid records of this user, by the path of their file."""
    found = {path: read(path) for path in sorted(folder().glob("*.json"))}
    return {path: record for path, record in found.items() if record is not None}


def mark_restored(run: str) -> None:
    """Note in a killed run's folder that its settings are restored: the run itself can no longer do so."""
    if run and (Path(run) / "manifest.json").is_file():
        with contextlib.suppress(Error):
            write_json(
                Path(run) / RESTORED_FILE, {"settings_put_back_at": datetime.now(UTC).isoformat(timespec="seconds")}
            )


def is_marked_restored(run: Path) -> bool:
    """Return True if the run's folder notes that its settings are restored."""
    return (run / RESTORED_FILE).is_file()


def to_json(record: UnrestoredSettings) -> JsonObject:
    """Return the record as plain values, without values that may be secret."""
    plain = asdict(record)
    for name, kept in record.settings.items():
        if HIDDEN in (shown_value(name, kept.was), shown_value(name, kept.entry)):
            plain["settings"][name] = {"was": HIDDEN, "entry": None, "ours": [HIDDEN]}
    return plain


def from_json(plain: Mapping[str, Any]) -> UnrestoredSettings:
    """Return the record that `to_json` wrote.

    Raises:
        KeyError: A field is missing.
        TypeError: A field is unknown or has the wrong type.
        AttributeError: A value that should be a JSON object is something else.
    """
    settings = {
        str(name): ChangedSetting(str(one["was"]), one["entry"], tuple(map(str, one["ours"])))
        for name, one in plain["settings"].items()
    }
    record = replace(UnrestoredSettings(**{**plain, "settings": {}}), settings=settings)
    for name, kind in (
        ("target", str),
        ("server", str),
        ("run", str),
        ("since", str),
        ("problem", str),
        ("tries", int),
    ):
        if type(getattr(record, name)) is not kind:
            raise TypeError(name)
    for process in (record.guardian, record.runner):
        if not isinstance(process, dict):
            raise TypeError("a process is not an object")
    if not all(one.entry is None or isinstance(one.entry, str) for one in settings.values()):
        raise TypeError("an entry is neither a text nor null")
    return record
