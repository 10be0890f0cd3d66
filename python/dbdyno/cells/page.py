"""The pages of cells as types: what `cells show`, `diff` and `watch` give to whoever draws them or writes JSON, and
what a section of a recording's page is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict


class Heading(TypedDict):
    """A column of a table."""

    name: str
    label: str
    unit: str
    page_only: NotRequired[bool]


class Table(TypedDict):
    """A table; `left_out` counts the rows that are not in it."""

    title: str
    columns: list[Heading]
    rows: list[Mapping[str, object]]
    left_out: int


class Section(TypedDict):
    """A section of a page."""

    name: str
    title: str
    about: str
    tables: list[Table]
    not_measured: list[Mapping[str, str]]
    notes: list[str]
    figures: NotRequired[list[str]]


class Verdict(TypedDict):
    """What is to be said first, and why."""

    word: str
    why: str


class Warned(TypedDict):
    """What a reader has to know, and what to do about it."""

    code: str
    text: str
    next: str


class ShownCell(TypedDict):
    """A cell that was asked: when it collected, by its own clock, and what went wrong."""

    name: str
    readings: int
    address: str
    collected_ns: int | None
    asked_ns: int | None
    age_s: float | None
    seconds: float | None
    started_ns: int | None
    problem: str | None
    next_step: str | None


class ShownMetric(TypedDict):
    """A metric (of an object, where objects are kept): by cell, and what stands for all of them by its rule."""

    metric: str
    family: str
    object: str
    unit: str
    kind: str
    rule: str
    description: str
    values: dict[str, float | None]
    notes: dict[str, str]
    all: float | None
    note: str
    n: int
    low: float | None
    mean: float | None
    high: float | None


class ShowPage(TypedDict):
    """What the cells say now."""

    schema: int
    kind: str
    page: str
    by: str
    cells: list[ShownCell]
    rows: list[ShownMetric]


class Moved(TypedDict):
    """A counter between two collections."""

    metric: str
    cell: str
    object: str
    delta: float
    per_s: float | None
    unit: str
    description: str


class Latency(TypedDict):
    """Time per request between two collections."""

    metric: str
    cell: str
    object: str
    value: float | None
    unit: str
    requests: float


class Without(TypedDict):
    """A counter that has no difference, and why."""

    cell: str
    metric: str
    object: str
    verdict: str


class FlashLog(TypedDict):
    """Who was first between two collections, over all cells whose counters hold."""

    writes: float
    disk_first: float
    flash_first: float
    flash_share: float
    flash_share_low: float
    flash_share_high: float
    identity_holds: bool
    prevented_outliers: float | None
    actual_outliers: float | None
    flash_only_outliers: float | None
    passed_by: dict[str, float]


class DiffPage(TypedDict):
    """Two collections against each other."""

    schema: int
    kind: str
    page: str
    by: str
    seconds: dict[str, float]
    rows: list[Moved]
    latencies: list[Latency]
    flash_log: FlashLog | None
    without: list[Without]
    problems: list[str]


class WatchedRow(TypedDict):
    """A metric now, and on average since the watch began."""

    metric: str
    cell: str
    object: str
    kind: str
    now: float | None
    average: float | None
    unit: str


class WatchPage(TypedDict):
    """A round of a watch."""

    schema: int
    kind: str
    page: str
    by: str
    rounds: int
    rows: list[WatchedRow]
    without: list[Without]


class Steps(TypedDict):
    """A cell's means between two of its collections, on the clock of the recording."""

    cell: str
    from_s: list[float]
    to_s: list[float]
    value: list[float | None]


class DiskMap(TypedDict):
    """A metric of every disk of every cell, by its mean over the recording."""

    kind: str
    name: str
    unit: str
    meaning: str
    cells: list[str]
    disks: list[str]
    values: list[list[float | None]]
    median: float


class Unlike(TypedDict):
    """Something that makes two recordings unlike."""

    what: str
    cell: str
    first: str
    second: str


class Lost(TypedDict):
    """How many intervals of a cell do not count, and why."""

    recording: str
    cell: str
    why: str
    intervals: int


class End(TypedDict):
    """A recording in the head of the page."""

    number: str
    at: str
    note: str


class PageFacts(TypedDict):
    """The head of the page."""

    title: str
    engine: str
    version: str
    first: End
    last: End
