"""Statements that go on under another identifier.

PostgreSQL makes a statement's identifier of the numbers of the objects in it, up to version 17, and each major version
makes another one: after a table was made anew (a load that swaps tables, a restore) and after pg_upgrade the same text
counts under a new identifier. Without this the one would be gone, and the other a new statement. Identifiers of MariaDB
and Oracle are made of the text, and need none of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.snapshot.reading.interval import Interval


def renumbered(old: Iterable[str], new: Iterable[str], prints: Mapping[str, str]) -> dict[str, str]:
    """Which identifier stands for which, of those that one side alone has: a text under identifiers of the old side
    alone, and under others of the new side alone, goes on as the least of the latter."""
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
    """Of PostgreSQL's identifiers: what is the same for the same text on any server."""
    found: dict[str, str] = {}
    for one in stretches:
        if one.after.engine == "postgres" and one.after.file("statement_texts") is not None:
            rows = one.query(f"select queryid::varchar as id, fingerprint from {one.ends('statement_texts')[1]}")
            found |= {row["id"]: row["fingerprint"] for row in rows if row["fingerprint"]}
    return found
