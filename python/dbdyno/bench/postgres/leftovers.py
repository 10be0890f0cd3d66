"""Detection of settings that runs left changed on a server, by comparing records with current values.

Two sources record what a setting was: this user's records (`dbdyno.bench.engine.unrestored_settings`) and the manifests
of interrupted runs. The server has the current value. A setting that has one of the run's values was left changed; one
that has its previous value is restored; any other value was set later by somebody else and is not touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.engine.unrestored_settings import ChangedSetting, UnrestoredSettings
from dbdyno.bench.postgres.setting_values import SettingFact, same_value, with_unit
from dbdyno.bench.postgres.settings import read_facts
from dbdyno.evidence.run import DEFAULT_FOLDER, Run, list_runs

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

State = Literal["ours", "back", "other"]


@dataclass(frozen=True)
class Source:
    """A record and its location: a record file (`path`), or the manifest of `run`."""

    record: UnrestoredSettings
    path: Path | None = None
    run: Path | None = None


@dataclass(frozen=True)
class Finding:
    """One setting of a record, compared with its value on the server.

    Attributes:
        source: The record.
        name: Name of the setting.
        kept: What the record says about the setting.
        found: The current value on the server, with its unit.
        state: 'ours' (still has one of the run's values), 'back' (restored) or 'other' (changed by somebody else).
    """

    source: Source
    name: str
    kept: ChangedSetting
    found: str
    state: State

    @property
    def sentence(self) -> str:
        """Return the comparison in words, as part of a message."""
        return f"{self.name} = {self.found} (it was {self.kept.was})"


def sources(folder: Path = DEFAULT_FOLDER) -> list[Source]:
    """Return the settings still to be restored according to this user's records and the runs in `folder`."""
    found = [Source(record, path, _run_of(record)) for path, record in unrestored_settings.all_records().items()]
    known = {one.run for one in found}
    for run in list_runs(folder):
        if run.path.resolve() not in known:
            found += unsettled_records(run)
    return found


def unsettled_records(run: Run) -> list[Source]:
    """Return the records in the manifest of a run that ended before it could note that all settings are restored."""
    records = run.manifest.server_settings
    if run.status != "aborted" or run.manifest.settings_put_back or unrestored_settings.is_marked_restored(run.path):
        return []
    if run.path.stat().st_uid != os.geteuid():  # another user's folder must not decide what is altered
        return []
    return [Source(unrestored_settings.from_json(record), None, run.path.resolve()) for record in records]


def sources_of_server(target: Postgres, conn: Connection, among: Iterable[Source]) -> list[Source]:
    """Return the sources that belong to this server."""
    server = target.identity(conn)
    return [one for one in among if one.record.server == server]


def compare_with_server(conn: Connection, among: Iterable[Source]) -> list[Finding]:
    """Return each setting of the records, compared with its value on the server."""
    from dbdyno.bench.postgres.altered_settings import read_entries

    found = []
    for source in among:
        facts = read_facts(conn, source.record.settings)
        try:
            entries: dict[str, str | None] | None = read_entries(conn, facts.values())
        except TargetError:  # this role may not see the entries
            entries = None
        for name, kept in source.record.settings.items():
            fact = facts.get(name.lower())
            if fact is not None:
                state = _state(fact, kept, None if entries is None else (entries[fact.name],))
                found.append(Finding(source, name, kept, with_unit(fact, fact.setting), state))
    return found


def _state(fact: SettingFact, setting: ChangedSetting, entry: tuple[str | None] | None) -> State:
    """Return the state of a setting; `entry` is None if this role may not see the entries made by ALTER SYSTEM."""
    if unrestored_settings.HIDDEN in (setting.was, *setting.ours):
        return "other"
    if same_value(fact, setting.was) and (entry is None or entry[0] == setting.entry):
        return "back"
    ours = any(same_value(fact, value) for value in setting.ours) or (entry is not None and entry[0] in setting.ours)
    return "ours" if ours else "other"


def refuse_leftovers(target: Postgres, folder: Path) -> None:
    """Raise `TargetError` if a run left a setting of this server changed; remove records of restored settings.

    The run would take the changed value for the previous one. Servers that dbdyno starts are not checked.

    Raises:
        TargetError: A run left a setting changed.
    """
    import contextlib

    known = sources(folder)
    if not known or target.is_embedded:
        return
    with contextlib.closing(target.connect()) as conn:
        findings = compare_with_server(conn, sources_of_server(target, conn, known))
    delete_settled_records(findings)
    left = [one for one in findings if one.state == "ours" and one.source.record.state != "held"]
    if left:
        raise _leftover_error(target, left)


def delete_settled_records(findings: Sequence[Finding]) -> None:
    """Remove the records whose settings are all restored."""
    for source in {id(one.source): one.source for one in findings}.values():
        own = [one for one in findings if one.source is source]
        if all(one.state == "back" for one in own) and source.record.state == "left":
            delete_record(source)


def delete_record(source: Source) -> None:
    """Remove a record, and note in the run's folder that its settings are restored."""
    if source.run is not None:
        unrestored_settings.mark_restored(str(source.run))
    unrestored_settings.delete_record(source.path)


def _leftover_error(target: Postgres, findings: list[Finding]) -> TargetError:
    record = findings[0].source.record
    said = ", ".join(one.sentence for one in findings)
    if record.state == "retrying":
        return TargetError(
            f"run {_name(record)} was killed and left {said}; its guardian (process {record.guardian['pid']}) "
            f"is restoring it",
            where=target.safe_dsn,
            next_step="wait until `dbdyno doctor --target DSN` shows that the settings are restored, then run again",
        )
    return TargetError(
        f"run {_name(record)} was killed together with its guardian, and left {said}",
        where=target.safe_dsn,
        next_step=f"{restore_command(record)}   (it shows what it would restore, and asks first)",
    )


def restore_command(record: UnrestoredSettings) -> str:
    """Return the command with which the user restores a record's settings."""
    return f"dbdyno restore {record.run or '--all'} --target DSN"


def describe(record: UnrestoredSettings) -> str:
    """Return a one-line description of a record, for the doctor."""
    how = {
        "held": "a run is in progress",
        "retrying": f"its guardian (process {record.guardian.get('pid')}) tries to restore it",
        "left": "no process is left to restore it",
    }[record.state]
    tried = f", {record.tries} tries; last: {record.problem}" if record.tries else ""
    return f"{record.names} on {record.target} (run {_name(record)}, since {record.since}): {how}{tried}"


def _name(record: UnrestoredSettings) -> str:
    return Path(record.run).name or "unknown"


def _run_of(record: UnrestoredSettings) -> Path | None:
    return Path(record.run).resolve() if record.run else None
