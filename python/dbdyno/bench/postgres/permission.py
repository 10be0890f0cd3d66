"""Reasons why server settings cannot be changed on a target, with the step that would make it possible.

They are looked for twice: when a plan is checked, which changes nothing, and again before each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.setting_values import SettingFact, same_value
from dbdyno.bench.postgres.settings import SettingChange, alter_system_sql, read_facts

if TYPE_CHECKING:
    import psycopg

    from dbdyno.bench.postgres.server import Postgres

    Connection = psycopg.Connection[tuple[Any, ...]]

ALLOW = "allow ALTER SYSTEM"
"""Beginning of a next step that a plan's setting makes unnecessary; callers with a plan name that setting instead."""


def refusal(
    target: Postgres,
    conn: Connection,
    changes: Sequence[SettingChange],
    *,
    allow_alter_system: bool = False,
) -> TargetError | None:
    """Return why these changes cannot be made on this target, with the next step, or None if they can."""
    server = [change for change in changes if change.how in ("reload", "restart")]
    if not server:
        return None
    fixed = [
        fact.name
        for fact in read_facts(conn, [change.name for change in server]).values()
        if fact.source in ("command line", "environment variable")
    ]
    if fixed:
        return TargetError(
            f"{', '.join(fixed)}: set on the server's command line, which has priority over ALTER SYSTEM",
            next_step="start the server without that option",
        )
    if target.is_embedded:
        return None
    commands = "; ".join(alter_system_sql(change.name, change.value) for change in server)
    restart = [change.name for change in server if change.how == "restart"]
    if restart:
        return TargetError(
            f"{', '.join(restart)}: needs a restart, and dbdyno restarts only its own engines",
            next_step=f"run the study on the embedded engine, or ask a DBA to run {commands} and restart the "
            f"server, once per arm",
        )
    if not allow_alter_system:
        return TargetError(
            f"{', '.join(change.name for change in server)}: needs ALTER SYSTEM and a reload, which affects "
            f"every user of this server",
            next_step=f"{ALLOW} if that is acceptable (dbdyno runs: {commands}; select"
            " pg_reload_conf(); and restores the old values)",
        )
    return _missing_right(conn, server) or _others_in_waiting(conn)


def _missing_right(conn: Connection, changes: Sequence[SettingChange]) -> TargetError | None:
    row = conn.execute(
        "select current_user::text, rolsuper, current_setting('server_version_num')::int,"
        " has_function_privilege('pg_reload_conf()', 'execute'),"
        " current_setting('allow_alter_system', true)"
        " from pg_roles where rolname = current_user"
    ).fetchone()
    role, superuser, version_num, may_reload, allowed = row if row else ("?", False, 0, False, None)
    names = ", ".join(change.name for change in changes)
    if allowed == "off":
        return TargetError(
            f"{names}: this server forbids ALTER SYSTEM (allow_alter_system = off)",
            next_step="vary the setting on the embedded engine, or with the tool that manages this server",
        )
    if superuser:
        return None
    denied = [change.name for change in changes]
    if version_num >= 150000:
        asked = "select name from unnest(%s::text[]) name where not has_parameter_privilege(name, 'ALTER SYSTEM')"
        denied = [row[0] for row in conn.execute(asked, [denied]).fetchall()]
    if denied or not may_reload:
        grants = [f'GRANT ALTER SYSTEM ON PARAMETER {name} TO "{role}"' for name in denied]
        if not may_reload:
            grants.append(f'GRANT EXECUTE ON FUNCTION pg_reload_conf() TO "{role}"')
        return TargetError(
            f"{names}: the role '{role}' may not change this setting for the server",
            next_step=f"ask a superuser to run: {'; '.join(grants)}"
            if version_num >= 150000
            else "connect as a superuser",
        )
    return None


def _others_in_waiting(conn: Connection) -> TargetError | None:
    """Return an error if a reload would also apply pending edits that other people made, otherwise None.

    A reload reads the whole configuration, not only dbdyno's changes.
    """
    import psycopg

    try:
        rows = conn.execute(
            "select name, setting, error from pg_file_settings where applied or error is not null"
        ).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return None
    broken = [f"{name}: {error}" if name else error for name, _, error in rows if error and not _passed_over(error)]
    if broken:
        return TargetError(
            f"the server's configuration files have an error, so that a reload changes nothing: {broken[0]}",
            next_step="correct the error (see pg_file_settings), then run again",
        )
    in_files = {name.lower(): setting for name, setting, _ in rows}
    loaded = conn.execute("select name from pg_settings where source = 'configuration file'")
    names = {row[0].lower() for row in loaded.fetchall()} | set(in_files)
    facts = read_facts(conn, names)
    waiting = [fact.name for fact in facts.values() if _waits(fact, in_files)]
    if waiting:
        return TargetError(
            f"a reload would also apply other pending changes: {', '.join(waiting)}",
            next_step="ask a DBA to reload the server first, or undo those changes",
        )
    return None


def _passed_over(error: str) -> bool:
    """Return True for an error in `pg_file_settings` that makes a reload skip only the line with the error.

    A reload skips values that wait for a restart, that the command line overrides, or that are invalid. It does not
    skip lines that cannot be parsed, unknown names, or files that cannot be read.
    """
    return "could not be applied" in error or "restart" in error


def _waits(fact: SettingFact, in_files: dict[str, str]) -> bool:
    if fact.context == "postmaster" or fact.source not in ("configuration file", "default"):
        return False
    written = in_files.get(fact.name.lower())
    if written is None:
        return fact.source == "configuration file"
    if fact.vartype == "string":
        return _fold(fact.setting) != _fold(written)
    return not same_value(fact, written)


def _fold(text: str) -> str:
    return "".join(text.split()).replace('"', "").casefold()
