"""How each setting of an arm takes effect, and whether the server would accept its value.

| information_schema.system_variables | how | needs |
|---|---|---|
| scope SESSION, SESSION ONLY | session | what the server requires; tested in a separate session |
| scope GLOBAL, can be set | global | SET GLOBAL: rights, and `alter_system = true` on a user's server |
| read-only, has a command-line option | restart | a server that dbdyno started |
| read-only, has no command-line option | refused | - |

A name must be one that the server itself lists; a value must be a number, a word from the setting's own list, or text
without quotes and backslashes. So nothing in a user's text can end a literal.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dbdyno.base.errors import TargetError, errors_as
from dbdyno.bench.mariadb.address import driver, error_text
from dbdyno.bench.mariadb.session import row, rows

if TYPE_CHECKING:
    from dbdyno.bench.mariadb.server import MariaDB

SettingMethod = Literal["session", "global", "restart"]

NOT_OURS = {
    **dict.fromkeys(("port", "socket", "bind_address", "skip_networking"), "dbdyno could lose access to the server"),
    **dict.fromkeys(("datadir", "basedir", "pid_file"), "dbdyno could lose access to the server"),
    **dict.fromkeys(
        ("init_connect", "init_file", "plugin_dir"), "the server would run code that is not part of the load"
    ),
    "proxy_protocol_networks": "dbdyno could lose access to the server",
}
"""Settings that an arm cannot vary, and the reason."""

_FACTS = """
select lower(variable_name), session_value, global_value, variable_scope, variable_type, numeric_min_value,
       numeric_max_value, enum_value_list, read_only = 'YES', command_line_argument is not null
from information_schema.system_variables where variable_name in %s
"""
_WHOLE = re.compile(r"\s*([+-]?\d{1,19})\s*([kmgtp]?)i?b?\s*", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TEXT = re.compile(r"[^'\"\\`\x00-\x1f\x7f]{0,2000}")


@dataclass(frozen=True, slots=True)
class SettingFact:
    """Row of information_schema.system_variables for one setting."""

    name: str
    session_value: str | None
    global_value: str | None
    scope: str
    type: str
    low: str | None
    high: str | None
    choices: str | None
    read_only: bool
    has_option: bool

    @property
    def is_whole(self) -> bool:
        """Return True if the setting's values are integers."""
        return self.type.startswith(("INT", "BIGINT"))

    @property
    def how(self) -> SettingMethod | None:
        """Return how the setting takes effect, or None if it cannot be set."""
        if self.read_only:
            return "restart" if self.has_option else None
        return "global" if self.scope == "GLOBAL" else "session"

    @property
    def value(self) -> str:
        """Return the value in effect: the global value for global settings, otherwise the session's value."""
        found = self.global_value if self.scope == "GLOBAL" else self.session_value
        return "" if found is None else found


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting of an arm, with its values as text.

    Attributes:
        name: Name of the setting.
        value: The arm's value.
        how: How the setting takes effect.
        before: The previous value.
        literal: The arm's value as an SQL literal.
        before_literal: The previous value as an SQL literal; empty unless `how` is 'global'.
    """

    name: str
    value: str
    how: SettingMethod
    before: str
    literal: str
    before_literal: str


def classify(target: MariaDB, settings: Mapping[str, str]) -> list[SettingChange]:
    """Return how each setting would take effect on this server; nothing is changed.

    Raises:
        TargetError: A setting is unknown or cannot be varied, or the server refuses its value.
    """
    with contextlib.closing(target.connect()) as connection:
        facts = read_facts(connection, settings)
        changes = []
        for name, value in settings.items():
            fact = facts.get(name.lower())
            if fact is None:
                raise _unknown(connection, name)
            changes.append(_change(fact, value, target))
        _try_in_session(connection, facts, changes)
    return changes


def read_facts(connection: Any, names: Iterable[str]) -> dict[str, SettingFact]:
    """Return the server's facts about the named settings, by lower-case name; unknown settings are missing."""
    wanted = [name.upper() for name in names]
    found = rows(connection, _FACTS, [wanted]) if wanted else []
    return {row[0]: SettingFact(*row) for row in found}


def session_sql(changes: Sequence[SettingChange]) -> list[str]:
    """Return one SQL statement per session setting, to be run at the start of each session of an arm."""
    return [f"set session {change.name} = {change.literal}" for change in changes if change.how == "session"]


def literal(fact: SettingFact, value: str) -> str:
    """Return a value as an SQL literal.

    Raises:
        ValueError: The value does not fit the setting; the message says why.
    """
    if fact.is_whole:
        number = _whole(value)
        low, high = int(fact.low or -(2**63)), int(fact.high or 2**64)
        if not low <= number <= high:
            raise ValueError(f"outside {low:,} to {high:,}")
        return str(number)
    if fact.type == "DOUBLE":
        return repr(float(value))
    if fact.type in ("BOOLEAN", "ENUM"):
        choices = [word for word in (fact.choices or "").split(",") if word]
        words = {"1": "ON", "true": "ON", "0": "OFF", "false": "OFF"} if set(choices) >= {"ON", "OFF"} else {}
        word = words.get(value.lower(), value)
        found = next((choice for choice in choices if choice.lower() == word.lower()), None)
        if found is None:
            raise ValueError(f"expected one of {', '.join(choices)}")
        return f"'{found}'"
    if not _TEXT.fullmatch(value):
        raise ValueError("a value cannot contain a quote, a backslash or a control character")
    return f"'{value}'"


def same_value(fact: SettingFact, wanted: str, found: str) -> bool:
    """Return True if the value in effect equals the wanted one, even if it is written differently.

    For sets and flags, all wanted elements must be in effect; other elements may be in effect as well.
    """
    if fact.is_whole:
        return _whole(wanted) == _whole(found)
    if fact.type == "DOUBLE":
        return abs(float(wanted) - float(found)) < 1e-6
    if fact.type in ("SET", "FLAGSET"):
        return _parts(wanted) <= _parts(found)
    if fact.type in ("BOOLEAN", "ENUM"):
        return literal(fact, wanted) == literal(fact, found)
    return wanted.rstrip("/") == found.rstrip("/")


def _parts(text: str) -> set[str]:
    return {part.strip().lower() for part in text.split(",") if part.strip()}


def _whole(text: str) -> int:
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError("expected a whole number, such as 64M")
    return int(int(found[1]) * 1024 ** _UNITS[found[2].lower()])


def _change(fact: SettingFact, value: str, target: MariaDB) -> SettingChange:
    place = f"setting {fact.name}"
    if fact.name in NOT_OURS:
        raise TargetError(
            f"an arm cannot vary this setting: {NOT_OURS[fact.name]}",
            where=place,
            next_step="remove the setting from the arm",
        )
    how = fact.how
    if how is None:
        raise TargetError(
            "the setting shows how the server was built and cannot be changed",
            where=place,
            next_step="remove the setting from the arm",
        )
    if how == "restart" and not target.is_embedded:
        raise TargetError(
            "the setting takes effect only with a restart, and dbdyno restarts only servers that it started",
            where=place,
            next_step="use the embedded server: --target mariadb",
        )
    step = f"choose another value (in effect now: {fact.value})"
    with errors_as(TargetError, ValueError, f"{value!r:.80} is not a valid value", place, step):
        own = literal(fact, value)
    problem, step = "the present value of the setting could not be restored later", "remove the setting from the arm"
    with errors_as(TargetError, ValueError, problem, place, step):
        before = literal(fact, fact.value) if how == "global" else ""
    return SettingChange(fact.name, value, how, fact.value, own, before)


def _try_in_session(connection: Any, facts: Mapping[str, SettingFact], changes: Sequence[SettingChange]) -> None:
    """Let the server accept or refuse the values of session settings, in a session that ends afterwards."""
    for change, sql in zip([one for one in changes if one.how == "session"], session_sql(changes), strict=True):
        try:
            rows(connection, sql)
            found = str(row(connection, f"select @@session.{change.name}")[0])
        except driver().Error as error:
            raise refused(change, f"{change.value!r:.80}", error, "choose another value") from error
        wanted, fact = change.value, facts[change.name]
        if fact.type not in ("BOOLEAN", "ENUM") and not same_value(fact, wanted, found):
            raise _rounding_error(change.name, wanted, found)


def refused(change: SettingChange, what: str, error: Exception, step: str) -> TargetError:
    """Return the error for a setting whose value the server refuses."""
    return TargetError(
        f"the server refuses {what}: {error_text(error)}", where=f"setting {change.name}", next_step=step
    )


def _rounding_error(name: str, wanted: str, found: str) -> TargetError:
    return TargetError(f"the server changed {wanted} to {found}", where=f"setting {name}", next_step=f"write {found}")


def _unknown(connection: Any, name: str) -> TargetError:
    known = [row[0] for row in rows(connection, "select lower(variable_name) from information_schema.system_variables")]
    near = difflib.get_close_matches(name.lower(), known, 3, 0.6)
    step = f"did you mean {' or '.join(near)}?" if near else "see `show variables`"
    return TargetError("this server has no such setting", where=f"setting {name!r:.80}", next_step=step)
