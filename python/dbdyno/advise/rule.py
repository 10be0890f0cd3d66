"""Definition of a rule: data, and one pure function from evidence to advice.

>>> from dbdyno.advise.rule import Advice, Evidence
>>> Advice("fsync is off", (Evidence("fsync", "off", "text", "pg_settings"),), "none", level="critical").level
'critical'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dbdyno.advise.facts import Facts

if TYPE_CHECKING:
    from dbdyno.advise.predictions import PredictedEffect

Level = Literal["critical", "warning", "hint"]
LEVELS: tuple[Level, ...] = ("critical", "warning", "hint")
"""Levels, worst first. Critical: data or availability is at risk. Warning: measured time is lost. Hint: have a look."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A figure and its place: view and column, table and row; `unit` is one of the units of `dbdyno.page`."""

    what: str
    value: int | float | str | None
    unit: str
    place: str


@dataclass(frozen=True, slots=True)
class Advice:
    """One finding of a rule.

    `stake` is the share of database time that the fix acts on, as far as it was timed (1.0 is all of it), or None if it
    was not timed. `expected` is the effect in words with the reasons: whether `stake` bounds the saving, or belongs to
    work that is not timed. `fix` has statements or settings for a person to run. `subject` is the table, index,
    statement or setting concerned. `proposed` is the value for the rule's `setting`, in the form that the server
    accepts, or "" if the fix is something else. `predicted` is the effect that a calibrated machine predicts, if the
    advice comes from such a prediction.
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
    predicted: PredictedEffect | None = None


@dataclass(frozen=True, slots=True)
class InsufficientEvidence:
    """Evidence was present but not sufficient: the reason, and what would be sufficient."""

    why: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Definition of a rule.

    `condition` says in words what `judge` computes. `least` and `below` are versions of the engine as numbers (0: any).
    `setting` is the setting that an experiment would vary, "" if none can test the rule. If `of_statement` is True, the
    rule is about single statements: only a load that runs the statement can test it. `gains` is False if the fix is not
    expected to save time, but only to cost none.
    """

    name: str
    family: str
    title: str
    reads: tuple[type, ...]
    condition: str
    expects: str
    risk: str
    source: str
    refuted: str
    judge: Callable[[Facts], Iterable[Advice | InsufficientEvidence]]
    engines: tuple[str, ...] = ("postgres",)
    least: int = 0
    below: int = 0
    setting: str = ""
    of_statement: bool = False
    gains: bool = True
