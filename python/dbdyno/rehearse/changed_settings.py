"""Settings that a major version of PostgreSQL renamed, removed, or gave another default or meaning, from 12 to 18.

The table is `changed_settings.tsv`, made from the `pg_settings` (names and `boot_val`) of servers of all these versions
and their release notes; a test compares it with servers. Left out are settings of TLS whose defaults depend on how a
server was built.

>>> name_in("force_parallel_mode", 17), name_in("debug_parallel_query", 15)
('debug_parallel_query', 'force_parallel_mode')
>>> change_clause("old_snapshot_threshold", 13, 18)
'old_snapshot_threshold was removed in 17'
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

Kind = Literal["renamed", "removed", "default", "meaning"]


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A change of one setting by a major version.

    Attributes:
        name: Name before the change.
        since: Major version that has the change.
        kind: What changed.
        before: Default before it, in the form that SET takes.
        after: Default since then.
        later: Name since then if it was renamed.
        remark: Further information for the user.
    """

    name: str
    since: int
    kind: Kind
    before: str = ""
    after: str = ""
    later: str = ""
    remark: str = ""


@functools.cache
def changed_settings() -> tuple[ChangedSetting, ...]:
    """Return all changes, in the order of the versions."""
    with (Path(__file__).parent / "changed_settings.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple(
            ChangedSetting(
                row["name"],
                int(row["since"]),
                _kind(row["kind"]),
                row["before"],
                row["after"],
                row["later"],
                row["remark"],
            )
            for row in rows
        )


def _kind(word: str) -> Kind:
    """Return a word from the TSV file as a `Kind`, unchecked: a test compares each row of that file with servers."""
    return cast(Kind, word)


def name_in(name: str, major: int) -> str:
    """Return the name that a setting has in a version."""
    for one in changed_settings():
        if one.kind == "renamed" and name in (one.name, one.later):
            return one.later if major >= one.since else one.name
    return name


def change_clause(name: str, old: int, new: int) -> str | None:
    """Return what became of a setting between two versions, as a clause; None if it has the same name in both."""
    for one in changed_settings():
        if one.name != name or not old < one.since <= new:
            continue
        remark = f": {one.remark}" if one.remark else ""
        if one.kind == "renamed":
            return f"{name} is {one.later} since {one.since}{remark}"
        if one.kind == "removed":
            return f"{name} was removed in {one.since}{remark}"
        if one.kind == "meaning":
            return f"{name} has another meaning since {one.since}{remark}"
    return None


def default_since(name: str, values: tuple[str, str], versions: tuple[int, int]) -> int | None:
    """Return the version whose new default makes a setting differ; None if the values are not the two defaults.

    Args:
        name: The setting.
        values: Its value on the old and on the new server, in the form that SET takes.
        versions: The major versions of both.
    """
    changes = [
        one
        for one in changed_settings()
        if one.name == name and one.kind == "default" and min(versions) < one.since <= max(versions)
    ]
    if not changes:
        return None
    before, after = values if versions[0] < versions[1] else values[::-1]
    return changes[-1].since if (changes[0].before, changes[-1].after) == (before, after) else None


def value_in(name: str, value: str, old: int, new: int) -> str:
    """Return a value converted to the meaning that the setting has in another version.

    >>> value_in("effective_io_concurrency", "4", 12, 15), value_in("effective_io_concurrency", "4", 13, 15)
    ('8', '4')
    """
    if name == "effective_io_concurrency" and old < 13 <= new and value.isdigit():
        # The release notes of 13 give this sum.
        return str(round(sum(int(value) / at for at in range(1, int(value) + 1))))
    return value
