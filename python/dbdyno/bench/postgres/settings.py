"""How each setting of an arm takes effect, and whether the engine would accept its value.

| pg_settings.context | how | needs |
|---|---|---|
| user | session | nothing |
| superuser | session | superuser, or SET on that parameter (PostgreSQL 15+) |
| backend, superuser-backend | connection | sent as `-c name=value` when connecting |
| sighup | reload | ALTER SYSTEM, pg_reload_conf() |
| postmaster | restart | ALTER SYSTEM, and an engine that dbdyno started |
| internal | refused | - |

Values of session settings are tested on the engine itself, in a transaction that is rolled back. The others are checked
against type, range and choices in pg_settings; ALTER SYSTEM checks them again. A user's text is always passed as a
parameter, an identifier or a literal, never as a part of the SQL.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dbdyno.base.errors import TargetError
from dbdyno.bench.postgres.setting_values import (
    LIST_OF_QUOTED,
    SettingFact,
    SettingValue,
    as_text,
    list_elements,
    problem_with,
)

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

SettingMethod = Literal["session", "connection", "reload", "restart"]

HOW: dict[str, SettingMethod] = {
    "user": "session",
    "superuser": "session",
    "backend": "connection",
    "superuser-backend": "connection",
    "sighup": "reload",
    "postmaster": "restart",
}

TRANSACTION_ONLY = {
    "transaction_isolation": "default_transaction_isolation",
    "transaction_read_only": "default_transaction_read_only",
    "transaction_deferrable": "default_transaction_deferrable",
}
"""Settings that last for one transaction only, each with the setting that lasts for the session."""

NOT_OURS = {
    "application_name": "dbdyno sets it in its sessions, to tell the arms apart",
    "data_directory": "the server would start with other data",
    "config_file": "the server would start with another configuration",
    "hba_file": "dbdyno could lose access to the server",
    "ident_file": "dbdyno could lose access to the server",
    "listen_addresses": "dbdyno could lose access to the server",
    "port": "dbdyno could lose access to the server",
    "unix_socket_directories": "dbdyno could lose access to the server",
}
"""Settings that an arm cannot vary, and the reason."""

_FACTS = """
select name, setting, unit, context, vartype, source, min_val, max_val, coalesce(enumvals, '{}'),
       sourcefile, pending_restart
from pg_settings where lower(name) = any(%s)
"""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of an arm: its value, how it takes effect, and its previous value (both as text)."""

    name: str
    value: str
    how: SettingMethod
    context: str
    before: str


def classify(conn: Connection, settings: Mapping[str, SettingValue]) -> list[SettingChange]:
    """Return how each setting would take effect on this engine for this role; nothing is changed.

    `conn` must be in autocommit mode.

    Raises:
        TargetError: A setting is unknown, the engine refuses its value, or a privilege is missing.
    """
    facts = read_facts(conn, settings)
    rights = _rights(conn, [fact.name for fact in facts.values()])
    changes = []
    for name, value in settings.items():
        fact = facts.get(name.lower())
        if fact is None:
            raise _unknown(conn, name)
        text = as_text(value)
        _refuse_impossible(fact)
        _refuse_without_right(fact, rights)
        shown = conn.execute("select current_setting(%s)", [fact.name]).fetchone()
        before = str(shown[0]) if shown else fact.setting
        problem = problem_with(fact, text)
        if problem:
            raise TargetError(
                f"'{_printable(text)}' is not a valid value: {problem}",
                where=f"setting {fact.name}",
                next_step=f"choose another value (in effect now: {before})",
            )
        changes.append(SettingChange(fact.name, text, HOW[fact.context], fact.context, before))
    _try_in_session(conn, [change for change in changes if change.how == "session"])
    return changes


def read_facts(conn: Connection, names: Iterable[str]) -> dict[str, SettingFact]:
    """Return the rows of pg_settings for the named settings by lower-case name; unknown ones are missing."""
    wanted = [name.lower() for name in names if "\0" not in name and name.isprintable()]
    rows = conn.execute(_FACTS, [wanted]).fetchall()
    return {row[0].lower(): SettingFact(*row) for row in rows}


def session_sql(changes: Sequence[SettingChange]) -> list[str]:
    """Return one SQL statement per session setting, to be run at the start of each session of an arm."""
    from psycopg import sql

    template = sql.SQL("select set_config({}, {}, false)")
    return [
        template.format(sql.Literal(change.name), sql.Literal(change.value)).as_string()
        for change in changes
        if change.how == "session"
    ]


def connection_options(changes: Sequence[SettingChange]) -> str | None:
    """Return the `options` of a connection string for the connection settings, or None if there are none."""
    parts = []
    for change in changes:
        if change.how == "connection":
            word = f"{change.name}={change.value}".replace("\\", "\\\\")
            for space in " \t\n\r\f\v":
                word = word.replace(space, "\\" + space)
            parts.append(f"-c {word}")
    return " ".join(parts) or None


def alter_system_sql(name: str, value: str | None) -> str:
    """Return an ALTER SYSTEM statement for one setting; None removes the entry; lists are passed element by element."""
    from psycopg import sql

    identifier = sql.Identifier(*name.split("."))
    if value is None:
        return sql.SQL("ALTER SYSTEM RESET {}").format(identifier).as_string()
    elements = list_elements(value) if name in LIST_OF_QUOTED else [value]
    literals = sql.SQL(", ").join(sql.Literal(element) for element in elements)
    return sql.SQL("ALTER SYSTEM SET {} TO {}").format(identifier, literals).as_string()


def _try_in_session(conn: Connection, changes: Sequence[SettingChange]) -> None:
    """Check that the engine accepts the values, all in one transaction that is rolled back."""
    import psycopg

    with conn.transaction(force_rollback=True):
        for change in changes:
            try:
                conn.execute("select set_config(%s, %s, true)", [change.name, change.value])
            except (psycopg.Error, UnicodeError) as error:
                said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
                hint = getattr(getattr(error, "diag", None), "message_hint", None)
                raise TargetError(
                    f"the engine refuses '{_printable(change.value)}': {said}",
                    where=f"setting {change.name}",
                    next_step=hint or f"see pg_settings for the range of {change.name}",
                ) from error


@dataclass(frozen=True, slots=True)
class _Rights:
    role: str
    superuser: bool
    version_num: int
    may_set: frozenset[str]


def _rights(conn: Connection, names: Sequence[str]) -> _Rights:
    row = conn.execute(
        "select current_user::text, rolsuper, current_setting('server_version_num')::int"
        " from pg_roles where rolname = current_user"
    ).fetchone()
    role, superuser, version_num = row if row else ("?", False, 0)
    may_set: list[str] = []
    if version_num >= 150000 and not superuser:
        rows = conn.execute(
            "select name from unnest(%s::text[]) name where has_parameter_privilege(name, 'SET')",
            [list(names)],
        ).fetchall()
        may_set = [row[0] for row in rows]
    return _Rights(role, superuser, version_num, frozenset(may_set))


def _refuse_impossible(fact: SettingFact) -> None:
    place = f"setting {fact.name}"
    if fact.context not in HOW:
        raise TargetError(
            "the setting is fixed when the server is built or its data folder is made",
            where=place,
            next_step="compare two servers instead, with an arm for each DSN",
        )
    if fact.name in TRANSACTION_ONLY:
        lasting = TRANSACTION_ONLY[fact.name]
        raise TargetError("the setting lasts for one transaction only", where=place, next_step=f"use {lasting}")
    if fact.name in NOT_OURS:
        raise TargetError(
            f"an arm cannot vary this setting: {NOT_OURS[fact.name]}",
            where=place,
            next_step="remove the setting from the arm",
        )


def _refuse_without_right(fact: SettingFact, rights: _Rights) -> None:
    if not fact.context.startswith("superuser") or rights.superuser or fact.name in rights.may_set:
        return
    grant = (
        f'have a superuser run: GRANT SET ON PARAMETER {fact.name} TO "{rights.role}"'
        if rights.version_num >= 150000
        else "connect as a superuser"
    )
    raise TargetError(
        f"the role '{rights.role}' may not change this setting (context: {fact.context})",
        where=f"setting {fact.name}",
        next_step=grant,
    )


def _unknown(conn: Connection, name: str) -> TargetError:
    import psycopg

    place = f"setting {_printable(name)}"
    try:
        conn.execute("select current_setting(%s)", [name.replace("\0", "")])
        return TargetError(
            "the engine does not list this name among its settings",
            where=place,
            next_step="set the value in the arm's SQL",
        )
    except psycopg.errors.InsufficientPrivilege:
        return TargetError(
            "this role may not see the setting",
            where=place,
            next_step="ask a superuser to grant pg_read_all_settings to the role",
        )
    except (psycopg.Error, UnicodeError):
        pass
    known = {row[0].lower(): row[0] for row in conn.execute("select name from pg_settings")}
    near = [known[one] for one in difflib.get_close_matches(name.lower(), known, 3, 0.6)]
    if near:
        step = f"did you mean {' or '.join(near)}?"
    elif "." in name:
        step = (
            "load the library first if the setting is of an extension; a variable of your own belongs in the arm's SQL"
        )
    else:
        step = "see `select name from pg_settings`"
    return TargetError("this engine has no such setting", where=place, next_step=step)


def _printable(text: str) -> str:
    """Return a user's text for use in a message: without control characters, at most 80 characters."""
    plain = "".join(char if char.isprintable() else "?" for char in text)
    return plain if len(plain) <= 80 else plain[:77] + "..."
