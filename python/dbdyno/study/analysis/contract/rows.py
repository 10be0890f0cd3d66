"""Types in which analysis.json is written: its parts as dictionaries with known keys.

`declarations` has the documentation of the keys, and a test requires both to have the same keys; optional parts may be
missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from dbdyno.base.json_types import JsonObject
from dbdyno.stats.comparison import ComparisonRow
from dbdyno.study.analysis.contract import parts


class JudgeRow(TypedDict, total=False):
    """How the verdict is reached, as the manifest records it from the plan: `study.plan.plan.Judge`."""

    level: float
    threshold: float
    headline: str
    operation: str
    longest: int
    accept: list[str]
    equal_work: bool
    factor: str | None
    tail_times: float


class RunRow(TypedDict, total=False):
    """Facts about the run: what was run, and how it went."""

    id: str
    title: str
    question: str
    status: str
    started_at: str | None
    duration_s: float | None
    tool_version: str | None
    seed: int | None
    virtual_s: float | None
    blocks_planned: int | None
    blocks_whole: int | None
    warmup_blocks: int | None
    switch: str | None
    slice_ms: float | None
    order: str
    randomised: bool
    open_loop: bool
    threshold: float
    plan_toml: str | None
    runs: list[str]


class WithheldRow(TypedDict):
    """An arm that gets no verdict."""

    arm: str
    decision: str
    reason: str


class VerdictRow(TypedDict, total=False):
    """The run's answer to its question."""

    decision: str
    headline: str
    sentences: list[str]
    withheld: list[WithheldRow]


class ArmRow(TypedDict, total=False):
    """An arm and its results."""

    index: int
    name: str
    description: str
    changes: Mapping[str, str]
    sessions: int | None
    rate_per_s: float | None
    baseline: bool
    error_codes: dict[str, int]
    expected_codes: dict[str, int]
    ops: int
    errors: int | None
    retries: int
    skipped: int
    throughput_per_s: float | None
    mean_ns: float | None
    sd_ns: float | None
    quantiles_ns: JsonObject
    max_ns: float | None


class MetricRow(ComparisonRow, total=False):
    """Comparison of an arm with its base in one metric."""

    arm: int
    baseline: int


class TestRow(TypedDict):
    """A classical statistical test over all operations."""

    arm: int
    baseline: int
    test: str
    statistic: float
    df: float | None
    log10_p: float
    effect: str
    note: str


class RatioRow(TypedDict):
    """A time as a multiple of another, with its interval."""

    ratio: float
    low: float
    high: float


class OrderRow(TypedDict, total=False):
    """Effect of the order of a data flow's steps on its time, in one engine."""

    engine: str
    lines: int
    floor_ns: float
    written: RatioRow
    given_back: RatioRow
    left: RatioRow
    done: RatioRow
    sentence: str


class DatabaseRow(TypedDict, total=False):
    """What one database got from storage that several databases share."""

    arm: int
    database: str
    transactions_per_s: float | None
    disk_per_s: float | None
    flash_per_s: float | None
    share: float | None
    low: float | None
    high: float | None
    level: float
    blocks: int
    wait_ns: float | None


class DeviceRow(TypedDict, total=False):
    """Stations of one kind in a model (a disk, a card, a channel, cores), in one arm."""

    arm: int
    station: str
    stations: int
    servers: int
    utilisation: float
    utilisation_max: float
    queue: float
    present: float
    present_max: float
    completions: int
    per_s: float | None
    sojourn_ns: float | None
    wait_ns: float | None
    service_ns: float | None
    wait_max_ns: float
    looks: int
    little_broken: int


class GateRow(TypedDict):
    """A check on which a verdict depends."""

    name: str
    code: str
    ok: bool | None
    text: str
    next: str | None
    arm: str
    effect: str


class Caution(TypedDict, total=False):
    """A warning for the reader."""

    code: str
    text: str
    next: str | None
    count: int


class Overhead(TypedDict, total=False):
    """Cost of observation."""

    text: str
    ratio: float
    low: float
    high: float


class MethodRow(TypedDict, total=False):
    """How the run was measured."""

    sentences: list[str]
    overhead: Overhead | None


class Figures(TypedDict, total=False):
    """Data of the figures, as parallel arrays."""

    distribution: list[parts.LatencyDistribution]
    quantile_ratio: list[parts.QuantileRatios]
    tail: list[parts.Tail]
    blocks: list[parts.BlockRatios]
    heatmap: list[parts.LatencyHeatmap]
    waits: list[parts.Waited]
    over_time: list[parts.TimeSeries]
    contributions: list[parts.Contribution]
    curve: JsonObject | None
    sweep: parts.Sweep
    correlation: parts.ScatterPoints


class Model(TypedDict, total=False):
    """The whole file analysis.json."""

    schema: int
    kind: str
    run: RunRow
    verdict: VerdictRow
    why: list[JsonObject]
    arms: list[ArmRow]
    metrics: list[MetricRow]
    classical: list[TestRow]
    lines: list[parts.LineRow]
    account: parts.AccountRow
    reasons: list[JsonObject]
    changes: list[JsonObject]
    pairs: list[JsonObject]
    tails: JsonObject | None
    errors: list[parts.FailureRow]
    statements: list[parts.StatementRow]
    figures: Figures
    factors: JsonObject
    tune: JsonObject
    devices: list[DeviceRow]
    resources: list[parts.ResourceRow]
    laws: list[parts.LawRow]
    volumes: list[parts.VolumeRow]
    beside: list[parts.ArmPairRow]
    race: list[parts.RaceRow]
    databases: list[DatabaseRow]
    order: list[OrderRow]
    logs: list[parts.LogRow]
    correlation: parts.Correlation
    gates: list[GateRow]
    warnings: list[Caution]
    method: MethodRow
    engine: JsonObject
