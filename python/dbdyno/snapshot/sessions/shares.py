"""Rows like those of one look, made from sums over many looks: a thousand looks take the space of one.

    shares = Shares(random.Random(seed))
    shares.rows([(("IO:WALSync", 4711, 3), 0.3, row), ...])      # at the end of each period

A row stands for one session during one period. A session that a thousand looks found in one wait for 300 of them gets
three tenths of a row, and so a row in three of ten periods. What remains is carried over: over any time, the rows of an
event differ from its sum by less than one. So the rows of a short wait do not depend on chance. Within an event, the
rows go to the statements that have most of it, and then to the sessions.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable
from typing import TypeVar

KEPT_MOST = 20_000
"""Number of remainders above which those of absent statements and sessions are dropped."""

_Row = TypeVar("_Row")
Path = tuple[Hashable, ...]


class Shares:
    """Remainders of each event, statement and session: what has not yet added up to a whole row.

    A new event begins with a remainder drawn by `dice`, so that its first row is as often too early as too late.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._left: dict[Path, float] = {}

    def rows(self, sums: Iterable[tuple[Path, float, _Row]]) -> list[_Row]:
        """Return the rows of a period from its sums.

        A sum has its path (event, statement, session), its share of the period's looks, and the row. Each row is
        returned at most once.
        """
        rows: dict[Path, _Row] = {}
        below: dict[Path, list[Path]] = {(): []}
        for path, share, row in sums:
            rows[path] = row
            for depth in range(1, len(path) + 1):
                part = path[:depth]
                begin = self._dice.random() if depth == 1 else 0.0
                self._left[part] = self._left.get(part, begin) + share
                if part not in below:
                    below[part] = []
                    below[part[:-1]].append(part)
        found = []
        for event in below[()]:
            while self._left[event] >= 1 and (first := self._first(event, below)) is not None:
                found.append(rows[first])
        self._forget(below)
        return found

    def _first(self, event: Path, below: dict[Path, list[Path]]) -> Path | None:
        """Return the path with the largest remainder and subtract a row from it; None if the event has no path left."""
        if not below[event]:
            return None
        way = [event]
        while below[way[-1]]:
            way.append(max(below[way[-1]], key=self._left.__getitem__))
        for part in way:
            self._left[part] -= 1
        for part in reversed(way[1:]):
            if not below[part]:
                below[part[:-1]].remove(part)
        return way[-1]

    def _forget(self, there: dict[Path, list[Path]]) -> None:
        if len(self._left) > KEPT_MOST:
            self._left = {path: left for path, left in self._left.items() if len(path) == 1 or path in there}
