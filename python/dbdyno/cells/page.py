"""Types of the pages for cells: results of `cells show`, `diff` and `watch`, and sections of a recording's page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from dbdyno.base.sections import Table


class Section(TypedDict):
    """Section of a page."""

    name: str
    title: str
    about: str
    tables: list[Table]
    not_measured: list[Mapping[str, str]]
    notes: list[str]
    figures: NotRequired[list[str]]


class Verdict(TypedDict):
    """Verdict, shown first, with its reason."""

    word: str
    why: str


class PageWarning(TypedDict):
    """Warning for the reader, with the next step."""

    code: str
    text: str
    next: str


class ShownCell(TypedDict):
    """Queried cell: its collection time by its own clock, and its problem."""

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
    """Metric (of one object, if objects are shown separately): its value per cell, and the aggregate by its rule."""

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
    """Current values of all cells."""

    schema: int
    kind: str
    page: str
    by: str
    cells: list[ShownCell]
    rows: list[ShownMetric]


class CounterChange(TypedDict):
    """Change of a counter between two collections."""

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


class MissingChange(TypedDict):
    """Counter without a difference, and the reason."""

    cell: str
    metric: str
    object: str
    verdict: str


class FlashLog(TypedDict):
    """Flash log statistics between two collections, over all cells with valid differences."""

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
    """Difference between two collections."""

    schema: int
    kind: str
    page: str
    by: str
    seconds: dict[str, float]
    rows: list[CounterChange]
    latencies: list[Latency]
    flash_log: FlashLog | None
    without: list[MissingChange]
    problems: list[str]


class WatchedRow(TypedDict):
    """Current value of a metric, and its average since the watch began."""

    metric: str
    cell: str
    object: str
    kind: str
    now: float | None
    average: float | None
    unit: str


class WatchPage(TypedDict):
    """One round of a watch."""

    schema: int
    kind: str
    page: str
    by: str
    rounds: int
    rows: list[WatchedRow]
    without: list[MissingChange]


class Steps(TypedDict):
    """A cell's means between successive collections, with times in seconds since the recording began."""

    cell: str
    from_s: list[float]
    to_s: list[float]
    value: list[float | None]


class DiskMap(TypedDict):
    """A metric's mean over the recording for every disk of every cell."""

    kind: str
    name: str
    unit: str
    meaning: str
    cells: list[str]
    disks: list[str]
    values: list[list[float | None]]
    median: float


class ConfigurationDifference(TypedDict):
    """Difference in configuration that makes two recordings hard to compare."""

    what: str
    cell: str
    first: str
    second: str


class UnusedIntervals(TypedDict):
    """Number of intervals of a cell that are not used, and the reason."""

    recording: str
    cell: str
    why: str
    intervals: int


class RecordingHead(TypedDict):
    """What the head of a page says about one recording: number, time and note."""

    number: str
    at: str
    note: str


class PageFacts(TypedDict):
    """Head of the page."""

    title: str
    engine: str
    version: str
    first: RecordingHead
    last: RecordingHead
