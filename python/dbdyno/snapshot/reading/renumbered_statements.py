"""Statements that continue under another identifier.

PostgreSQL up to version 17 derives a statement's identifier from the oids of the objects in it, and each major version
derives it differently. After a table was recreated (by a load that swaps tables, a restore) and after pg_upgrade, the
same text counts under a new identifier. Without this module, the old statement would seem to have disappeared, and the
new one to be a new statement. Identifiers of MariaDB and Oracle are derived from the text and do not need this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval


def renumbered_identifiers(old: Iterable[str], new: Iterable[str], prints: Mapping[str, str]) -> dict[str, str]:
    """Return, by identifier, the new identifier under which a statement continues.

    A text that has identifiers only on the old side and other identifiers only on the new side continues under the
    smallest of the new ones. `prints` gives the fingerprint of each identifier's text.
    """
    before, after = set(old), set(new)
    sides = [_by_print(side, prints) for side in (before - after, after - before)]
    return {
        one: min(sides[1][known])
        for known in sides[0].keys() & sides[1].keys()
        for one in (*sides[0][known], *sides[1][known])
        if one != min(sides[1][known])
    }


def _by_print(identifiers: Iterable[str], prints: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in identifiers:
        if prints.get(one):
            found[prints[one]].append(one)
    return found


def fingerprints(*stretches: Interval) -> dict[str, str]:
    """Return the fingerprints of PostgreSQL's identifiers, which are the same for the same text on any server."""
    found: dict[str, str] = {}
    for one in stretches:
        if one.after.engine == "postgres" and one.after.file("statement_texts") is not None:
            rows = one.query(f"select queryid::varchar as id, fingerprint from {one.ends('statement_texts')[1]}")
            found |= {row["id"]: row["fingerprint"] for row in rows if row["fingerprint"]}
    return found
