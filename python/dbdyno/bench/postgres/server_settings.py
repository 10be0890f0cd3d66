"""Settings of servers that dbdyno did not start, during a run: claimed, recorded, read back, restored.

claim_servers               takes a lock against other runs; it is held until the guardian exits
refuse_leftover_settings    refuses values left by a killed run, which would be taken for the previous values
settings_to_restore         returns the previous values, for the manifest
record_settings             stores them before the first change, and at the end whether all settings are restored
read_back                   checks the values in every turn, at its beginning and its end
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine.turns import SERVER_LOST_STEP, SettingMismatchError
from dbdyno.bench.postgres.prepare import PreparedPlan
from dbdyno.evidence.run import Run

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.postgres.server import Postgres


def _altered_settings(ready: PreparedPlan) -> dict[str, tuple[Postgres, dict[str, str]]]:
    """Return, for each server not started by dbdyno, the settings that arms alter there and their previous values."""
    found: dict[str, tuple[Postgres, dict[str, str]]] = {}
    for arm in ready.arms:
        for change in arm.server_changes():
            if not arm.target.is_embedded:
                _, before = found.setdefault(arm.target.safe_dsn, (arm.target, {}))
                before[change.name] = change.before
    return found


def claim_servers(ready: PreparedPlan, guardian: Guardian, run: str = "") -> bool:
    """Take the lock of each server that the plan alters, and return True if there is any.

    Raises:
        TargetError: Another run holds a lock.
    """
    altered = _altered_settings(ready)
    for target, _ in altered.values():
        guardian.claim(target.libpq_parameters(), run)
    return bool(altered)


def refuse_leftover_settings(ready: PreparedPlan, folder: Path) -> None:
    """Raise `TargetError` if a killed run left settings of one of the servers changed.

    Raises:
        TargetError: A killed run left settings changed.
    """
    from dbdyno.bench.postgres.leftovers import refuse_leftovers

    for target in {arm.target.safe_dsn: arm.target for arm in ready.arms}.values():
        refuse_leftovers(target, folder)


def settings_to_restore(ready: PreparedPlan, run: Run) -> dict[str, object]:
    """Return the manifest's entry about the settings that the run alters, which is enough to restore them."""
    from dbdyno.bench.engine import unrestored_settings
    from dbdyno.bench.postgres.altered_settings import read_entries
    from dbdyno.bench.postgres.settings import read_facts

    records = []
    for name, (target, before) in _altered_settings(ready).items():
        with contextlib.closing(target.connect()) as conn:
            entries = read_entries(conn, read_facts(conn, before).values())
            server = target.identity(conn)
        values: dict[str, list[str]] = {}
        for arm in ready.arms:
            for change in arm.server_changes():
                if arm.target.safe_dsn == name:
                    values.setdefault(change.name, []).append(change.value)
        kept = {n: unrestored_settings.ChangedSetting(was, entries[n], tuple(values[n])) for n, was in before.items()}
        records.append(
            unrestored_settings.to_json(unrestored_settings.new_record(name, server, kept, str(run.path.resolve())))
        )
    return {"server_settings": records, "settings_put_back": False} if records else {}


@contextlib.contextmanager
def record_settings(run: Run, ready: PreparedPlan, guardian: Guardian) -> Iterator[None]:
    """Record previous settings in the manifest before the first change, and at the end whether they are restored.

    While the context lasts, the lock carries the run's name.
    """
    from dbdyno.base.errors import Error

    claim_servers(ready, guardian, run.id)
    run.save(**settings_to_restore(ready, run))
    try:
        yield
    finally:
        if run.manifest.server_settings:
            owing = any(getattr(undo, "record", "") for undo in guardian.pending)
            with contextlib.suppress(Error):
                run.save(settings_put_back=not owing)


def read_back(ready: PreparedPlan, number: int) -> None:
    """Check in a new session that every setting that any arm alters has this arm's value.

    Raises:
        SettingMismatchError: A setting has another value.
    """
    from dbdyno.bench.postgres.altered_settings import differing_values

    arm = ready.arms[number]
    wanted = dict(_altered_settings(ready).get(arm.target.safe_dsn, (arm.target, {}))[1])
    wanted |= {change.name: change.value for change in arm.server_changes()}
    differing = differing_values(arm.target, wanted) if wanted else ""
    if differing:
        raise SettingMismatchError(
            f"another user changed a setting while the arm {arm.arm.name!r} ran: {differing}",
            where=arm.target.safe_dsn,
            next_step="find out who alters the setting (see pg_file_settings and the server's log), then run again",
        )


@contextlib.contextmanager
def server_errors() -> Iterator[None]:
    """Return a context that turns the loss of a server or its connection into a `TargetError` with a next step."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise TargetError(f"the server closed the connection: {said}", next_step=SERVER_LOST_STEP) from error
