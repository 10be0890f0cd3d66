"""Model of the page about a search among commits."""

from __future__ import annotations

from typing import TypedDict

SCHEMA = 1


class Ratio(TypedDict):
    """A factor of improvement with its interval; an unknown end of the interval is None."""

    ratio: float
    low: float | None
    high: float | None


class Suspect(TypedDict):
    """A commit that may be the first with the change."""

    commit: str
    subject: str


class TestRow(TypedDict):
    """A test in the search; `change` is set only if two builds were compared directly."""

    commit: str
    subject: str
    result: str
    blocks: int
    change: Ratio | None
    run: str


class Verdict(TypedDict):
    """The result of the search in words."""

    headline: str
    sentences: list[str]
    next: str


class BisectModel(TypedDict):
    """A search among commits.

    `direction` is "slower" or "faster", or "" if it is not known whether the ends differ. `change` is the change from
    the good to the bad commit, `step` the change from the parent of the commit found to that commit. `suspects` has a
    single commit if the search is complete.
    """

    schema: int
    kind: str
    title: str
    direction: str
    good: str
    bad: str
    commits: int
    alpha: float
    change: Ratio
    step: Ratio | None
    suspects: list[Suspect]
    tests: list[TestRow]
    verdict: Verdict
