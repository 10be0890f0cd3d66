"""What rules read: rows of evidence by kind, and why a kind is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from dbdyno.advise.kinds import PLACES, Server, Setting

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lack:
    """Why a kind of evidence is not there, and what would bring it."""

    why: str
    next: str = ""


@dataclass(frozen=True)
class Facts:
    """The evidence of one thing that is judged.

    `title` names it without secrets, `kind` is what it is (`server`, `snapshots`, `run`, `host`, `stack`), `window`
    the time that its counters span, in words. A kind of evidence is in `rows` (empty: it was read, and there is none)
    or in `lacking`.
    """

    title: str
    kind: str
    rows: Mapping[type, Sequence[Any]]
    lacking: Mapping[type, Lack] = field(default_factory=dict)
    window: str = ""

    def all(self, kind: type[T]) -> Sequence[T]:
        """Every row of a kind that a rule named in what it reads."""
        return self.rows[kind]

    def one(self, kind: type[T]) -> T:
        """The row of a kind that has one."""
        row: T = self.rows[kind][0]
        return row

    def lack(self, kind: type) -> Lack | None:
        """Why a kind is not there; None where it is."""
        if kind in self.rows:
            return None
        return self.lacking.get(kind) or Lack(f"{PLACES.get(kind, kind.__name__)}: not part of {self.kind}")

    @cached_property
    def _settings(self) -> dict[str, Setting]:
        return {one.name: one for one in self.rows.get(Setting, ())}

    def setting(self, name: str) -> Setting | None:
        """A setting; None where the server has none of that name, or the role may not see it."""
        return self._settings.get(name)

    @property
    def engine(self) -> str:
        """The engine; empty where none was read."""
        found = self.rows.get(Server)
        return str(found[0].engine) if found else ""

    @property
    def version_num(self) -> int:
        """The server's version as a number (150018); 0 where none was read."""
        found = self.rows.get(Server)
        return int(found[0].version_num) if found else 0
