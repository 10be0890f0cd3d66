"""A cause, and what causes are looked for in."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.names import USUAL
from dbdyno.snapshot.plans.explain import Explained


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: a code, the sentence about it, the next step, and what was observed for it."""

    code: str
    sentence: str
    next: str = ""
    observed: str = ""


NO_TIME = Cause("time", "there was no time to look for its cause", "give more time (--for)")


@dataclass(frozen=True, slots=True)
class Grounds:
    """What causes are looked for in: both catalogs, both plans as they were executed, and the session's search path."""

    old: Catalog
    new: Catalog
    plans: tuple[Explained | None, Explained | None] = (None, None)
    path: tuple[str, ...] = USUAL
