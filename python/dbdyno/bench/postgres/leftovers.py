"""What runs left changed on a server: found by comparing what they noted with what is there.

Two sources say what a setting was: the records of this user (`owed`), and the manifests of runs
that were cut. The server says what it is. A setting that holds a value of the run is left; one that
holds what it held before is back; anything else was changed by somebody else since, and is theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import unrestored
from dbdyno.bench.engine.unrestored import Kept, Owed
from dbdyno.bench.postgres.setting_values import SettingFact, in_unit, same_value
from dbdyno.bench.postgres.settings import read_facts
from dbdyno.evidence.run import DEFAULT_FOLDER, Run, list_runs

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

State = Literal["ours", "back", "other"]


@dataclass(frozen=True)
class Source:
    """A record and where it stands: a file of `owed`, or the manifest of `run`."""

    record: Owed
    path: Path | None = None
    run: Path | None = None


@dataclass(frozen=True)
class Finding:
    """One setting of a record, as the server has it now."""

    source: Source
    name: str
    kept: Kept
    found: str
    state: State

    @property
    def sentence(self) -> str:
        """What was found, for a message."""
        return f"{self.name} = {self.found} (it was {self.kept.was})"


def sources(folder: Path = DEFAULT_FOLDER) -> list[Source]:
    """All that is owed as far as this user's records and the runs below `folder` know."""
    found = [Source(record, path, _run_of(record)) for path, record in unrestored.all_records().items()]
    known = {one.run for one in found}
    for run in list_runs(folder):
        if run.path.resolve() not in known:
            found += unsettled(run)
    return found


def unsettled(run: Run) -> list[Source]:
    """The records in the manifest of a run that was cut before it could say that all is back."""
    records = run.manifest.server_settings
    if run.status != "aborted" or run.manifest.settings_put_back or unrestored.is_marked(run.path):
        return []
    if run.path.stat().st_uid != os.geteuid():  # a stranger's folder does not tell us what to alter
        return []
    return [Source(unrestored.from_json(record), None, run.path.resolve()) for record in records]


def of_server(target: Postgres, conn: Connection, among: Iterable[Source]) -> list[Source]:
    """Those that are of this server."""
    server = target.identity(conn)
    return [one for one in among if one.record.server == server]


def look(conn: Connection, among: Iterable[Source]) -> list[Finding]:
    """Each setting of the records, as the server has it now."""
    from dbdyno.bench.postgres.altered_settings import read_entries

    found = []
    for source in among:
        facts = read_facts(conn, source.record.settings)
        try:
            entries: dict[str, str | None] | None = read_entries(conn, facts.values())
        except TargetError:  # this role may not see them
            entries = None
        for name, kept in source.record.settings.items():
            fact = facts.get(name.lower())
            if fact is not None:
                state = _state(fact, kept, None if entries is None else (entries[fact.name],))
                found.append(Finding(source, name, kept, in_unit(fact, fact.setting), state))
    return found


def _state(fact: SettingFact, kept: Kept, entry: tuple[str | None] | None) -> State:
    """`entry` is empty where this role may not see what ALTER SYSTEM left."""
    if unrestored.HIDDEN in (kept.was, *kept.ours):
        return "other"
    if same_value(fact, kept.was) and (entry is None or entry[0] == kept.entry):
        return "back"
    ours = any(same_value(fact, value) for value in kept.ours) or (entry is not None and entry[0] in kept.ours)
    return "ours" if ours else "other"


def refuse_leftovers(target: Postgres, folder: Path) -> None:
    """Raises `TargetError` where a run left a setting of this server changed: what is found would
    be taken for what was before. Records of what is back are removed."""
    import contextlib

    known = sources(folder)
    if not known or target.owned:
        return
    with contextlib.closing(target.connect()) as conn:
        findings = look(conn, of_server(target, conn, known))
    settle(findings)
    left = [one for one in findings if one.state == "ours" and one.source.record.state != "held"]
    if left:
        raise _left(target, left)


def settle(findings: Sequence[Finding]) -> None:
    """Removes the records whose settings are all back."""
    for source in {id(one.source): one.source for one in findings}.values():
        own = [one for one in findings if one.source is source]
        if all(one.state == "back" for one in own) and source.record.state == "left":
            forget(source)


def forget(source: Source) -> None:
    """The settings of a record are no longer owed: notes it in the run's folder, too."""
    if source.run is not None:
        unrestored.mark_put_back(str(source.run))
    unrestored.forget(source.path)


def _left(target: Postgres, left: list[Finding]) -> TargetError:
    record = left[0].source.record
    said = ", ".join(one.sentence for one in left)
    if record.state == "retrying":
        return TargetError(
            f"run {_name(record)} was killed and left {said}; its guardian (process {record.guardian['pid']}) is"
            " putting it back",
            where=target.safe_dsn,
            next_step="wait until it is done: `dbdyno doctor --target DSN` shows it; then run again",
        )
    return TargetError(
        f"run {_name(record)} was killed together with its guardian, and left {said}",
        where=target.safe_dsn,
        next_step=f"{restore_command(record)}   (shows what it would put back, and asks)",
    )


def restore_command(record: Owed) -> str:
    """What the user types to put a record's settings back."""
    return f"dbdyno restore {record.run or '--all'} --target DSN"


def describe(record: Owed) -> str:
    """One line on a record, for the doctor."""
    how = {
        "held": "a run is at work",
        "retrying": f"its guardian (process {record.guardian.get('pid')}) tries to put it back",
        "left": "nobody is left to put it back",
    }[record.state]
    tried = f", {record.tries} tries; last: {record.problem}" if record.tries else ""
    return f"{record.names} on {record.target} (run {_name(record)}, since {record.since}): {how}{tried}"


def _name(record: Owed) -> str:
    return Path(record.run).name or "unknown"


def _run_of(record: Owed) -> Path | None:
    return Path(record.run).resolve() if record.run else None
