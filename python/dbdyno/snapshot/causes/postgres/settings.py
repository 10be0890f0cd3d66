"""Rules that find causes in settings that the server stores for a role, a database or a function.

Settings that a session sets for itself are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dbdyno.base.sections import Row
from dbdyno.snapshot.causes.change import Cause, Change, Key
from dbdyno.snapshot.wording import setting_change

STORED_SETTINGS_VIEW, FUNCTIONS = "pg_db_role_setting", "pg_proc"
STORED_SETTING_WEIGHT = 2.7
"""Weight of a stored setting whose statements became slower: above that of changed plans, which are its effect."""


def stored_settings(change: Change) -> Iterator[Cause]:
    """Yield a cause for the settings of each role and database that ALTER ROLE or ALTER DATABASE changed.

    It covers the statements of that role and database that became slower or do more work now.
    """
    rows = _changed(change, STORED_SETTINGS_VIEW, "setrole, setdatabase, name", ("role", "of_database"))
    for (role, database), some in groupby(rows, key=lambda row: (int(row["setrole"]), int(row["setdatabase"]))):
        changed = list(some)
        whose = f" of role {changed[0]['role'] or role}" if role else ""
        whose += f" in database {changed[0]['of_database']}" if database else ""
        slow = _slower_of(change, role, database)
        words = ", ".join(setting_change(row["name"], row["old"], row["new"]) for row in changed)
        plural = "" if len(changed) == 1 else "s"
        yield Cause(
            f"setting{plural}{whose}: {words}", _count(slow), slow, weight=STORED_SETTING_WEIGHT if slow else 0.4
        )


def function_settings(change: Change) -> Iterator[Cause]:
    """Yield a cause for each function whose stored settings changed, with the slower statements that name it.

    ALTER FUNCTION stores these settings. A function that was created or dropped does not count.
    """
    for row in _changed(change, FUNCTIONS, "datid, oid", ("name",), value="settings"):
        name = str(row["name"])
        slow = frozenset(n for n in change.heavier_statements_of_table(name) if n in change.statements)
        words = f"settings of function {name}: {row['old'] or '(none)'} → {row['new'] or '(none)'}"
        yield Cause(words, _count(slow), slow, weight=STORED_SETTING_WEIGHT if slow else 0.4)


def _changed(change: Change, view: str, key: str, shown: tuple[str, ...], value: str = "setting") -> list[Row]:
    """Return the rows of a view whose value changed; a created or dropped function is not a change of its settings."""
    columns = ", ".join(f"coalesce(b.{name}, a.{name}) as {name}" for name in shown)
    join = "join" if view == FUNCTIONS else "full join"
    return change.rows_of_ends(
        view,
        f"select {key}, {columns}, a.{value} as old, b.{value} as new from {{before}} a {join} {{after}} b"
        f" using ({key}) where a.{value} is distinct from b.{value} order by {key}",
    )


def _slower_of(change: Change, role: int, database: int) -> frozenset[Key]:
    """Return the statements of a role in a database that take longer or do more work; 0 means any role or database."""
    which = " and ".join(f"{column} = {number}" for column, number in (("userid", role), ("dbid", database)) if number)
    rows = change.after.query(
        f"select distinct queryid from {change.view} where calls > 0{' and ' + which if which else ''}", change.view
    )
    found = (int(row["queryid"]) for row in rows if row["queryid"] is not None)
    known = ((number, change.statements[number]) for number in found if number in change.statements)
    return frozenset(number for number, one in known if one.is_heavier() or one.is_slower())


def _count(slow: frozenset[Key]) -> str:
    if not slow:
        return ""
    return (
        "1 of its statements takes longer since then"
        if len(slow) == 1
        else f"{len(slow)} of its statements take longer since then"
    )


RULES = (stored_settings, function_settings)
