"""The evidence that rules read: rows by kind, and the reason why a kind is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from dbdyno.advise.kinds import PLACES, Server, Setting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MissingEvidence:
    """The reason why a kind of evidence is missing, and what would provide it."""

    why: str
    next: str = ""


@dataclass(frozen=True)
class Facts:
    """The evidence about one subject.

    `title` names the subject without secrets, `kind` is its kind (`server`, `snapshots`, `run`, `host`, `stack`),
    `window` is the period of its counters in words. A kind of evidence is either in `rows` (an empty list: it was read
    and there is none) or in `lacking`.
    """

    title: str
    kind: str
    rows: Mapping[type, Sequence[Any]]
    lacking: Mapping[type, MissingEvidence] = field(default_factory=dict)
    window: str = ""

    def rows_of(self, kind: type[T]) -> Sequence[T]:
        """Return all rows of a kind that the rule has declared in `reads`."""
        return self.rows[kind]

    def row_of(self, kind: type[T]) -> T:
        """Return the only row of a kind that has exactly one row."""
        row: T = self.rows[kind][0]
        return row

    def missing_evidence(self, kind: type) -> MissingEvidence | None:
        """Return the reason why a kind is missing, or None if it is present."""
        if kind in self.rows:
            return None
        return self.lacking.get(kind) or MissingEvidence(f"{PLACES.get(kind, kind.__name__)}: not part of {self.kind}")

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        return {one.name: one for one in self.rows.get(Setting, ())}

    def setting(self, name: str) -> Setting | None:
        """Return a setting, or None if the server does not have it or does not show it to the role."""
        return self._settings.get(name)

    @property
    def engine(self) -> str:
        """Return the engine, or "" if no server was read."""
        found = self.rows.get(Server)
        return str(found[0].engine) if found else ""

    @property
    def version_num(self) -> int:
        """Return the server's version as a number (150018), or 0 if no server was read."""
        found = self.rows.get(Server)
        return int(found[0].version_num) if found else 0
