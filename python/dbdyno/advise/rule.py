"""A rule: data, and one pure function from evidence to advice.

>>> from dbdyno.advise.rule import Advice, Evidence
>>> Advice("fsync is off", (Evidence("fsync", "off", "text", "pg_settings"),), "none", level="critical").level
'critical'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from dbdyno.advise.facts import Facts

Level = Literal["critical", "warning", "hint"]
LEVELS: tuple[Level, ...] = ("critical", "warning", "hint")
"""The worst first. Critical: data or availability is at stake. Warning: measured time is lost. Hint: worth a look."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A figure and its place: view and column, table and row. `unit` is one of `dbdyno.page`."""

    what: str
    value: int | float | str | None
    unit: str
    place: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding of a rule.

    `stake`: the share of database time that the fix acts on, as far as it was timed (1.0 is all of it); None where it
    was not. `expected` says whether it is a bound of what is saved, or goes with work that nobody times.
    `expected`: the effect in words, with its reasoning. `fix`: statements or settings, for a person to run.
    `subject`: the table, index, statement or setting that it is about. `proposed`: the value to give the rule's
    `setting`, as the server takes it; empty where the fix is something else.
    """

    sentence: str
    evidence: tuple[Evidence, ...]
    expected: str
    fix: tuple[str, ...] = ()
    level: Level = "warning"
    stake: float | None = None
    subject: str = ""
    risk: str = ""
    source: str = ""
    proposed: str = ""


@dataclass(frozen=True, slots=True)
class Unjudged:
    """Evidence was there and does not suffice: why, and what would."""

    why: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a rule is. `condition` is in words what `judge` computes; `least` and `below` are versions of the engine as
    numbers (0: any); `setting` is the one that an experiment would vary, empty where none can test it; `of_statement`:
    it is about single statements, so that no other load can test it; `gains` is false where the fix is expected to
    cost no time rather than to save some."""

    name: str
    family: str
    title: str
    reads: tuple[type, ...]
    condition: str
    expects: str
    risk: str
    source: str
    refuted: str
    judge: Callable[[Facts], Iterable[Advice | Unjudged]]
    engines: tuple[str, ...] = ("postgres",)
    least: int = 0
    below: int = 0
    setting: str = ""
    of_statement: bool = False
    gains: bool = True
