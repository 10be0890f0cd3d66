"""What is owed to a server: settings that a run altered and that nobody has put back yet.

A record is a small file, written and synced before the change, removed when the settings are back:

    ~/.local/state/dbdyno/owed/<number>.json        ($XDG_STATE_HOME, or $DBDYNO_STATE)

So whoever comes next on this machine sees what a killed run left, even where runner and guardian
were killed both and the run folder is elsewhere: the next run, `dbdyno doctor`, `dbdyno runs` and
`dbdyno restore`. A run's manifest holds the same record, for those who come from another machine.

A record holds no password. Of a setting that may hold one (such as `primary_conninfo`) it keeps
the name only; such a setting cannot be restored from it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.base.errors import Error, TargetError
from dbdyno.base.files import state_folder
from dbdyno.bench.postgres.shown_settings import shown_value
from dbdyno.evidence.files import read_json, write_json
from dbdyno.evidence.manifest import Process
from dbdyno.evidence.run import is_alive, this_process

HIDDEN = "(hidden)"
MARK = "put_back.json"


@dataclass(frozen=True)
class Kept:
    """A setting before the run: its value in effect, its entry in postgresql.auto.conf (None: there
    was none), and the values that the run gives it."""

    was: str
    entry: str | None
    ours: tuple[str, ...]


@dataclass(frozen=True)
class Owed:
    """What is owed to one server. `server` tells it from others whatever it is called;
    `guardian` is the process that tries, `tries` and `problem` how that went."""

    target: str
    server: str
    settings: dict[str, Kept]
    run: str = ""
    since: str = ""
    guardian: Process = field(default_factory=Process)
    runner: Process = field(default_factory=Process)
    tries: int = 0
    problem: str = ""

    @property
    def state(self) -> str:
        """'held' by a run at work, 'retrying' by its guardian, or 'left' by both."""
        if is_alive(self.runner):
            return "held"
        return "retrying" if is_alive(self.guardian) else "left"

    @property
    def names(self) -> str:
        """The settings' names, for a sentence."""
        return ", ".join(self.settings)


def folder() -> Path:
    """Where this user's records are."""
    return state_folder() / "owed"


def begun(target: str, server: str, settings: Mapping[str, Kept], run: str = "") -> Owed:
    """The record of a change that this process is about to make."""
    return Owed(
        target, server, dict(settings), run, datetime.now(UTC).isoformat(timespec="seconds"), runner=this_process()
    )


def write_new(record: Owed) -> Path:
    """Writes a record under a new name, on disk when this returns. Raises `TargetError`: then the
    change must not be made."""
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder() / f"{secrets.token_hex(8)}.json"
        write(path, record)
    except (OSError, Error) as error:
        said = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise TargetError(
            f"what the settings were cannot be noted: {said}; they were not changed",
            where=str(folder()),
            next_step="free space or rights there, or name another folder in DBDYNO_STATE",
        ) from error
    return path


def write(path: Path, record: Owed) -> None:
    """Writes a record whole."""
    write_json(path, to_json(record))


def forget(path: str | Path | None) -> None:
    """The settings are back: removes the record. One that is gone is no error."""
    if path:
        with contextlib.suppress(OSError):
            Path(path).unlink()


def read(path: Path | None) -> Owed | None:
    """The record in a file; None where there is none, or nothing that can be read as one."""
    with contextlib.suppress(Error, KeyError, TypeError, ValueError, AttributeError):
        return None if path is None else from_json(read_json(path))
    return None


def all_records() -> dict[Path, Owed]:
    """All records of this user; what cannot be read as one is passed over."""
    found = {path: read(path) for path in sorted(folder().glob("*.json"))}
    return {path: record for path, record in found.items() if record is not None}


def mark_put_back(run: str) -> None:
    """Notes in a killed run's folder that its settings are back: it can no longer say so itself."""
    if run and (Path(run) / "manifest.json").is_file():
        with contextlib.suppress(Error):
            write_json(Path(run) / MARK, {"settings_put_back_at": datetime.now(UTC).isoformat(timespec="seconds")})


def is_marked(run: Path) -> bool:
    """Whether that was noted."""
    return (run / MARK).is_file()


def to_json(record: Owed) -> dict[str, Any]:
    """The record as plain values, without what may be a secret."""
    plain = asdict(record)
    for name, kept in record.settings.items():
        if HIDDEN in (shown_value(name, kept.was), shown_value(name, kept.entry)):
            plain["settings"][name] = {"was": HIDDEN, "entry": None, "ours": [HIDDEN]}
    return plain


def from_json(plain: Mapping[str, Any]) -> Owed:
    """The record of `to_json`; raises KeyError, TypeError or AttributeError on anything else."""
    settings = {
        str(name): Kept(str(one["was"]), one["entry"], tuple(map(str, one["ours"])))
        for name, one in plain["settings"].items()
    }
    record = replace(Owed(**{**plain, "settings": {}}), settings=settings)
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
            raise TypeError("a process")
    if not all(one.entry is None or isinstance(one.entry, str) for one in settings.values()):
        raise TypeError("entry")
    return record
