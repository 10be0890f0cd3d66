"""Settings of the whole server that are changed for a turn (SET GLOBAL): recorded, read back, restored.

    check_may_alter          checks that the user allows the changes and that the role may make them
    apply_global_settings    claims, records, registers with the guardian, sets and reads back; restores at the end
    differing_values         says what a new session sees instead of the wanted values

SET GLOBAL lasts until the server stops: settings that a killed run left changed are restored by a restart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.mariadb.address import driver
from dbdyno.bench.mariadb.claim import ENGINE
from dbdyno.bench.mariadb.session import rows
from dbdyno.bench.mariadb.settings import SettingChange, read_facts, refused, same_value
from dbdyno.bench.mariadb.undo import MariaUndo
from dbdyno.evidence.run import this_process

if TYPE_CHECKING:
    from dbdyno.bench.guardian import Guardian
    from dbdyno.bench.mariadb.server import MariaDB


def check_may_alter(target: MariaDB, changes: Sequence[SettingChange], *, allowed: bool) -> None:
    """Raise `TargetError` if global settings would be altered without the user's permission or the role's privileges.

    Raises:
        TargetError: The plan does not allow it, or a privilege is missing.
    """
    names = ", ".join(change.name for change in changes if change.how == "global")
    if not names or target.is_embedded:
        return
    if not allowed:
        raise TargetError(
            f"{names}: SET GLOBAL alters the server for everybody, and the plan does not allow it",
            where=target.safe_dsn,
            next_step="set alter_system = true under [target]: dbdyno always restores the values",
        )
    with contextlib.closing(target.connect()) as connection:
        grants = [str(row[0]).upper() for row in rows(connection, "show grants")]
    everywhere = [grant for grant in grants if " ON *.*" in grant]
    if not any(word in grant for grant in everywhere for word in ("ALL PRIVILEGES", "SUPER", " ADMIN")):
        raise TargetError(
            f"the user may not SET GLOBAL {names}",
            where=target.safe_dsn,
            next_step="ask an administrator for GRANT SUPER ON *.* TO the user, or for the ADMIN privilege of that "
            "setting",
        )


def claim_settings(target: MariaDB, guardian: Guardian, run: str = "") -> None:
    """Have the guardian take the lock on the server's settings.

    Raises:
        TargetError: Another run holds the lock.
    """
    guardian.claim({**target.parameters, ENGINE: "mariadb"}, PurePath(run).name)


@contextlib.contextmanager
def apply_global_settings(
    target: MariaDB, changes: Sequence[SettingChange], guardian: Guardian, run: str
) -> Iterator[None]:
    """Put the global changes in effect for the duration of the context.

    Raises:
        TargetError: A change did not take effect, or could not be undone.
    """
    todo = [change for change in changes if change.how == "global"]
    if not todo:
        yield
        return
    undo = _undo(target, todo)
    if not target.is_embedded:
        claim_settings(target, guardian, run)
        undo = replace(undo, record=str(_note(target, todo, guardian, run)), lasting=True)
    try:
        number = guardian.push(undo)
    except BaseException:  # without the guardian nothing is changed
        unrestored_settings.delete_record(undo.record)
        raise
    try:
        with contextlib.closing(target.connect()) as connection:
            for change in todo:
                _set(connection, change)
        if wrong := differing_values(target, {change.name: change.value for change in todo}):
            raise TargetError(f"the value is not in effect in a new session: {wrong}", where=target.safe_dsn)
        yield
    finally:
        if problems := undo.execute():
            raise TargetError(
                "settings could not be restored yet: " + "; ".join(problems),
                next_step=f"{guardian.retry_sentence(undo)}. Manually: {'; '.join(undo.statements)}",
            )
        guardian.discard(number)


def differing_values(target: MariaDB, wanted: Mapping[str, str]) -> str:
    """Return what a new session sees instead of the wanted values, as a sentence; empty if all values are as wanted."""
    with contextlib.closing(target.connect()) as connection:
        facts = read_facts(connection, wanted)
    return "; ".join(
        f"{name} is {facts[name].value}, not {value}"
        for name, value in wanted.items()
        if not same_value(facts[name], value, facts[name].value)
    )


def _set(connection: object, change: SettingChange) -> None:
    try:
        rows(connection, f"set global {change.name} = {change.literal}")
    except driver().Error as error:
        raise refused(change, "the value", error, "choose another value, or remove the setting from the arm") from error


def _undo(target: MariaDB, changes: Sequence[SettingChange]) -> MariaUndo:
    statements = tuple(f"set global {change.name} = {change.before_literal}" for change in changes)
    return MariaUndo("settings " + ", ".join(change.name for change in changes), target.parameters, statements)


def _note(target: MariaDB, changes: Sequence[SettingChange], guardian: Guardian, run: str) -> object:
    """Record the previous values of the settings on disk and return the record's path.

    Raises:
        TargetError: The record cannot be written.
    """
    kept = {
        change.name: unrestored_settings.ChangedSetting(change.before, change.before_literal, (change.value,))
        for change in changes
    }
    with contextlib.closing(target.connect()) as connection:
        record = unrestored_settings.new_record(target.safe_dsn, target.identity(connection), kept, run)
    return unrestored_settings.write_new(replace(record, guardian=this_process(guardian.pid)))
