"""Server settings that are changed for a limited time and then restored exactly.

For engines that dbdyno started, postgresql.auto.conf is restored byte by byte, so that even a value with which the
server does not start can be undone. On other engines settings are changed only by ALTER SYSTEM and a reload, and only
if the caller allows it. Afterwards the previous entry is set again, or the entry is removed if there was none; the
guardian does so if this process dies.

Before the first change the server's settings are claimed, so that no other run alters them, and their previous values
are recorded on disk. Both the change and its undo are verified in new sessions; an error is raised if a value is not in
effect.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.engine import unrestored_settings
from dbdyno.bench.guardian import Guardian
from dbdyno.bench.postgres.permission import refusal
from dbdyno.bench.postgres.setting_values import SettingFact, same_value, with_unit
from dbdyno.bench.postgres.settings import SettingChange, alter_system_sql, read_facts
from dbdyno.bench.undo import SqlUndo, execute
from dbdyno.evidence.run import this_process

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.embedded import EmbeddedPostgres
    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

IN_FORCE_S = 5.0
"""Seconds that a reload may take until new sessions see the new values."""

AUTO_CONF = "postgresql.auto.conf"


@contextlib.contextmanager
def apply_server_settings(
    target: Postgres,
    changes: Sequence[SettingChange],
    *,
    guardian: Guardian | None = None,
    allow_alter_system: bool = False,
    run: str = "",
) -> Iterator[None]:
    """Put the changes that need a reload or a restart in effect for the duration of the context.

    Changes of other kinds are ignored: they are made per session.

    Args:
        target: The server.
        changes: The changes.
        guardian: Guardian that holds the undo; None starts one that lasts as long as the context.
        allow_alter_system: True if ALTER SYSTEM may be used on a server that dbdyno did not start.
        run: Folder of the run, recorded for commands that later find its settings changed.

    Raises:
        TargetError: A privilege is missing, a change did not take effect, or a change could not be undone.
    """
    todo = [change for change in changes if change.how in ("reload", "restart")]
    if not todo:
        yield
        return
    with contextlib.ExitStack() as stack:
        held = guardian or stack.enter_context(Guardian())
        if target.engine is None:
            held.claim(target.libpq_parameters(), PurePath(run).name)
        stack.enter_context(_apply(target, held, todo, allow_alter_system, run))
        yield


@contextlib.contextmanager
def _apply(
    target: Postgres, guardian: Guardian, todo: Sequence[SettingChange], allow_alter_system: bool, run: str
) -> Iterator[None]:
    with contextlib.closing(target.connect()) as conn:
        reason = refusal(target, conn, todo, allow_alter_system=allow_alter_system)
        if reason:
            raise reason
        before = read_facts(conn, [change.name for change in todo])
    if target.engine is not None:
        with _on_own_engine(target, target.engine, todo, before):
            yield
    else:
        with _on_other_engine(target, guardian, todo, before, run):
            yield


@contextlib.contextmanager
def _on_own_engine(
    target: Postgres,
    engine: EmbeddedPostgres,
    changes: Sequence[SettingChange],
    before: dict[str, SettingFact],
) -> Iterator[None]:
    saved = engine.read_auto_conf()
    restart = any(change.how == "restart" for change in changes)
    try:
        with contextlib.closing(target.connect()) as conn:
            for change in changes:
                _alter(conn, change.name, change.value)
        engine.restart() if restart else engine.reload()
        wait_until_in_effect(target, {change.name: change.value for change in changes})
        yield
    finally:
        engine.write_auto_conf(saved)
        engine.restart() if restart or not engine.running else engine.reload()
        wait_until_in_effect(target, {fact.name: fact.setting for fact in before.values()})


@contextlib.contextmanager
def _on_other_engine(
    target: Postgres,
    guardian: Guardian,
    changes: Sequence[SettingChange],
    before: dict[str, SettingFact],
    run: str,
) -> Iterator[None]:
    conn = target.connect()
    number = None
    try:
        entries = read_entries(conn, before.values())
        undo = _undo(target, conn, entries, _record_settings(target, conn, guardian, changes, entries, run))
        try:
            number = guardian.push(undo)
        except BaseException:  # without the guardian nothing is changed
            unrestored_settings.delete_record(undo.record)
            raise
        for change in changes:
            _alter(conn, change.name, change.value)
        conn.execute("select pg_reload_conf()")
        wait_until_in_effect(target, {change.name: change.value for change in changes})
        yield
    finally:
        conn.close()
        if number is not None:
            problems = undo.execute()
            if problems:
                raise TargetError(
                    "settings could not be restored yet: " + "; ".join(problems),
                    next_step=f"{guardian.retry_sentence(undo)}. Manually: {'; '.join(undo.statements)}",
                )
            wait_until_in_effect(target, {fact.name: fact.setting for fact in before.values()})
            with contextlib.closing(target.connect()) as check:
                _compare_entries(entries, read_entries(check, before.values()))
            guardian.discard(number)


def restore_sql(entries: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the statements that restore entries of postgresql.auto.conf (None: remove the entry) and reload it."""
    return (*(alter_system_sql(*entry) for entry in entries.items()), "select pg_reload_conf()")


def _undo(target: Postgres, conn: Connection, entries: Mapping[str, str | None], record: Path) -> SqlUndo:
    label = "settings " + ", ".join(entries)
    undo = target.sql_undo(label, restore_sql(entries), (conn.info.backend_pid,))
    return replace(undo, lasting=True, claimed=True, record=str(record))


def _record_settings(
    target: Postgres,
    conn: Connection,
    guardian: Guardian,
    changes: Sequence[SettingChange],
    entries: Mapping[str, str | None],
    run: str,
) -> Path:
    """Record the previous values of the settings on disk and return the record's path.

    Raises:
        TargetError: The record cannot be written.
    """
    settings = {
        change.name: unrestored_settings.ChangedSetting(change.before, entries[change.name], (change.value,))
        for change in changes
    }
    record = unrestored_settings.new_record(target.safe_dsn, target.identity(conn), settings, run)
    return unrestored_settings.write_new(replace(record, guardian=this_process(guardian.pid)))


def read_entries(conn: Connection, facts: Iterable[SettingFact]) -> dict[str, str | None]:
    """Return the text that postgresql.auto.conf holds for each setting, or None if it has no entry.

    Raises:
        TargetError: This role cannot see whether there is an entry.
    """
    import psycopg

    known = {fact.name: fact for fact in facts}
    try:
        rows = conn.execute(
            "select name, setting, sourcefile from pg_file_settings where lower(name) = any(%s) order by seqno",
            [[name.lower() for name in known]],
        ).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return {name: _entry_by_source(fact) for name, fact in known.items()}
    canonical = {name.lower(): name for name in known}
    entries: dict[str, str | None] = dict.fromkeys(known)
    for name, setting, path in rows:
        if PurePath(path).name == AUTO_CONF:
            entries[canonical[name.lower()]] = setting
    return entries


def _entry_by_source(fact: SettingFact) -> str | None:
    if fact.source != "configuration file":
        return None
    if fact.source_file is None:
        raise TargetError(
            "this role cannot see whether ALTER SYSTEM set the setting before, so it could not be restored exactly",
            where=f"setting {fact.name}",
            next_step="ask a superuser to grant pg_read_all_settings to the role",
        )
    if PurePath(fact.source_file).name != AUTO_CONF:
        return None
    return fact.setting + (fact.unit if fact.unit and not fact.unit[0].isdigit() else "")


def _compare_entries(wanted: dict[str, str | None], found: dict[str, str | None]) -> None:
    differing = [name for name in wanted if wanted[name] != found[name]]
    if differing:
        raise TargetError(
            f"{AUTO_CONF} does not contain the previous values of {', '.join(differing)}; another user is "
            f"changing settings at the same time",
            next_step="check pg_file_settings and correct the errors",
        )


def differing_values(target: Postgres, wanted: Mapping[str, str]) -> str:
    """Return what a new session sees instead of the wanted values, as a sentence; empty if all values are as wanted."""
    with contextlib.closing(target.connect()) as conn:
        facts = read_facts(conn, wanted).values()
    return "; ".join(
        _why_not_in_force(fact, wanted[fact.name]) for fact in facts if not _in_force(fact, wanted[fact.name])
    )


def wait_until_in_effect(target: Postgres, wanted: dict[str, str]) -> None:
    """Wait until new sessions see the wanted values.

    Raises:
        TargetError: New sessions do not see them within `IN_FORCE_S` seconds.
    """
    deadline = time.monotonic() + IN_FORCE_S
    while True:
        with contextlib.closing(target.connect()) as conn:
            facts = read_facts(conn, wanted)
            late = [f for f in facts.values() if not _in_force(f, wanted[f.name])]
            if not late:
                return
            if time.monotonic() > deadline:
                reason = "; ".join(_why_not_in_force(fact, wanted[fact.name]) for fact in late)
                raise TargetError(
                    f"the values are not in effect in a new session after {IN_FORCE_S:.0f} s: {reason}",
                    next_step="check pg_file_settings.error and ALTER ROLE/DATABASE ... SET",
                )
        time.sleep(0.05)


def _in_force(fact: SettingFact, wanted: str) -> bool:
    """Return True if the value is in effect, or if the engine computed it itself (`override`), as it does for -1."""
    return same_value(fact, wanted) or fact.source == "override"


def _why_not_in_force(fact: SettingFact, wanted: str) -> str:
    pending = ", waiting for a restart" if fact.pending_restart else ""
    return f"{fact.name} is {with_unit(fact, fact.setting)} (from: {fact.source}{pending}), not {wanted}"


def _alter(conn: Connection, name: str, value: str) -> None:
    import psycopg

    try:
        execute(conn, alter_system_sql(name, value))
    except (psycopg.Error, UnicodeError) as error:
        raise TargetError(
            f"the engine refuses the setting: {str(error).splitlines()[0]}",
            where=f"setting {name}",
            next_step="choose another value, or remove the setting from the arm",
        ) from error
