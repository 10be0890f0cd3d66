"""Causes of a change in a statement's result or time, and the data from which they are derived."""

from __future__ import annotations

from dataclasses import dataclass

from dbdyno.rehearse.catalog import Catalog
from dbdyno.rehearse.names import DEFAULT_PATH
from dbdyno.snapshot.plans.explain import ExplainedPlan


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause: its code, a sentence, the next step, and the observations behind it."""

    code: str
    sentence: str
    next: str = ""
    observed: str = ""


NO_TIME = Cause("time", "there was no time to look for its cause", "give more time (--for)")


@dataclass(frozen=True, slots=True)
class CauseContext:
    """Data from which causes are derived: both catalogs, both executed plans, and the session's search path."""

    old: Catalog
    new: Catalog
    plans: tuple[ExplainedPlan | None, ExplainedPlan | None] = (None, None)
    path: tuple[str, ...] = DEFAULT_PATH
