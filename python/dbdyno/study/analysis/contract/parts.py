"""Row types of parts of analysis.json: figures, resources of a transaction, failures, statements, races and logs.

The whole file is `rows.Model`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from dbdyno.stats.comparison import ComparisonRow

OptionalNumbers = list[float | None]
"""Numbers, some of which are unknown (None)."""


class LatencyDistribution(TypedDict):
    """Share of an arm's operations by bucket of latency."""

    arm: int
    low_ns: list[float]
    high_ns: list[float]
    share: list[float]


class QuantileRatios(TypedDict):
    """Ratio of an arm to its base for each quantile, with intervals over blocks."""

    arm: int
    quantile: list[float]
    ratio: list[float]
    low: OptionalNumbers
    high: OptionalNumbers


class Tail(TypedDict):
    """Share of an arm's operations that took at least a given time."""

    arm: int
    exceed_share: list[float]
    elapsed_ns: list[float]


class BlockRatios(TypedDict):
    """Ratio of an arm to its base in a metric, by block."""

    arm: int
    metric: str
    block: list[int]
    at_s: list[float]
    ratio: list[float]
    marked: list[str]


class LatencyHeatmap(TypedDict):
    """Number of an arm's transactions by time and latency."""

    arm: int
    at_s: list[float]
    width_s: float
    low_ns: list[float]
    high_ns: list[float]
    count: list[int]


Waited = TypedDict("Waited", {"arm": int, "class": str, "event": str, "samples": int | None, "share": float})
"""The share of an arm's session time that a wait event takes."""


class TimeSeries(TypedDict):
    """A measure of an arm (null: of all arms together) over time, with one value per stretch of time."""

    measure: str
    unit: str
    arm: int | None
    at_s: list[float]
    seconds: list[float]
    value: list[float]


Contribution = TypedDict(
    "Contribution",
    {
        "name": str,
        "class": str | None,
        "base_ns": float,
        "value_ns": float,
        "counts": list[int],
        "difference_ns": float,
    },
)
"""Contribution of a resource to the difference of two sets of traces."""


class SweepPoint(TypedDict):
    """An arm of a sweep, with intervals over blocks."""

    arm: int
    x: float
    per_s: float
    per_s_low: float
    per_s_high: float
    mean_ns: float
    mean_low_ns: float
    mean_high_ns: float


class LawPoint(TypedDict):
    """Throughput that a curve's law predicts at a position between the measured levels."""

    x: float
    per_s: float


class SweepCurve(TypedDict):
    """The arms that differ only in the factor on the axis.

    `law` is present if a scalability law with a bend was fitted to their throughput.
    """

    name: str
    points: list[SweepPoint]
    law: NotRequired[list[LawPoint]]


class Sweep(TypedDict):
    """The curves of a sweep; `x_words` is present if the levels on the axis are words instead of numbers."""

    x_label: str
    x_words: NotRequired[list[str]]
    operation: str
    curves: list[SweepCurve]


class ScatterPoints(TypedDict):
    """Hit ratio and mean time of each statement."""

    hit_ratio: list[float]
    mean_ns: list[float]
    label: list[str]


Property = Literal["hit_ratio", "blocks", "reads", "temp", "rows"]
"""Property of a statement that may be correlated with its mean time."""


class CorrelatedStatement(TypedDict):
    """The server's counts of a statement, per call."""

    statement: str
    text: str
    calls: int
    mean_ns: float
    hit_ratio: float | None
    blocks: float
    reads: float
    temp: float
    rows: float


class PropertyCorrelation(TypedDict):
    """Correlation of a property with the mean time; `q` is p after control of the false discovery rate."""

    x: str
    property: Property
    n: int
    pearson: float
    low: float
    high: float
    pearson_log10_p: float
    spearman: float
    spearman_log10_p: float
    q: NotRequired[float]


class Correlation(TypedDict):
    """All correlations of statement properties with mean times, and the statements behind them."""

    statements: list[CorrelatedStatement]
    rows: list[PropertyCorrelation]
    assumption: str


class ResourceRow(TypedDict, total=False):
    """Mean resources that an arm uses per transaction; None if the bench cannot measure them."""

    arm: int
    user_ns: float
    system_ns: float
    read_calls: float | None
    write_calls: float | None
    read_bytes: float | None
    write_bytes: float | None
    log_bytes: float | None
    blocks: float | None
    blocks_read: float | None
    temp_blocks: float | None
    plans: float
    plan_ns: float
    executions: float
    kept_statements: int
    kept_bytes: int | None
    session_bytes: int
    kept_whole: int


class LawRow(TypedDict):
    """An operational law: both sides, and whether it holds; `arm` is None if it applies to the whole run."""

    arm: int | None
    law: str
    left: float
    right: float
    holds: bool
    sentence: str


class VolumeRow(TypedDict):
    """A modelled device below a server: its requests in blocks that count, and its times since it was mounted."""

    arms: list[int]
    carries: str
    device: str
    settings: dict[str, str]
    direct_io: bool
    polls: bool
    floor_ns: int
    reads: float | None
    writes: float | None
    flushes: float | None
    read_p50_ns: float | None
    write_p50_ns: float | None
    late_p50_ns: float | None
    late_p99_ns: float | None
    late_max_ns: float | None


class ArmSide(TypedDict):
    """An arm of one of two runs, compared with the base of that run; the last three keys are missing for a base."""

    arm: str
    mean_ns: float
    ratio: float | None
    base: NotRequired[str]
    low: NotRequired[float]
    high: NotRequired[float]


class ArmPairRow(TypedDict):
    """The same arm in two runs of one study."""

    sides: list[ArmSide]


class RaceRow(TypedDict, total=False):
    """Log writes of one arm to flash and disk at once, by which ended first; only cells have the last three keys."""

    arm: int
    races: int
    disk_first: int
    flash_first: int
    share: float
    low: float
    high: float
    level: float
    blocks: int
    prevented: int
    outliers: int
    flash_outliers: int
    passed: dict[str, int]
    served_ns: float
    request_ns: float


class FailureRow(TypedDict, total=False):
    """Failures of one kind: same arm, statement, SQLSTATE, error number and message."""

    arm: int
    kind: str
    statement: str
    sqlstate: str
    meaning: str
    error_class: str
    vendor_code: int
    condition: str
    message: str
    expected: bool
    failed: int
    tried: int


class StatementArm(TypedDict):
    """Times of a statement in one arm."""

    arm: int
    ops: int
    mean_ns: float
    p50_ns: float
    p99_ns: float


class StatementRow(TypedDict):
    """A statement of the workload, with its times in each arm."""

    statement: str
    kind: str
    arms: list[StatementArm]


class Writes(TypedDict, total=False):
    """Durations of writes; empty if there were none."""

    writes: int
    mean_ns: float
    max_ns: float
    quantiles_ns: dict[str, float]


class LogPath(Writes):
    """A path on which a log writer writes, such as a disk or a flash device."""

    path: str
    file: str
    bytes: int
    outliers: int
    farthest_behind_bytes: int


class LogRace(TypedDict):
    """Result of the race of a log's two paths."""

    races: int
    first: int
    second: int
    skipped_busy: int
    held_back: int
    prevented_outliers: int
    second_only_outliers: int
    actual_outliers: int


class LogRow(TypedDict):
    """A log writer on real files."""

    arm: int
    commits: int
    writes: int
    commits_per_write: float | None
    redo_bytes: int
    wasted_bytes: int
    laps: int
    write: Writes
    paths: list[LogPath]
    race: LogRace | None
    outlier_ns: int
    cost_ns: int


class LineSide(TypedDict):
    """A line of one set of traces; `scaled_ns` is the time per execution by the client, or the total time."""

    count: int
    total_ns: int
    max_ns: int | None
    mean_ns: float | None
    scaled_ns: float


LineRow = TypedDict(
    "LineRow",
    {
        "family": str,
        "name": str,
        "class": str | None,
        "text": str | None,
        "only_in": int | None,
        "sides": list[LineSide],
        "difference_ns": float,
        "metrics": list[ComparisonRow],
    },
)
"""A line in two sets of traces, or in one (`only_in`); `difference_ns` is per client execution or the total."""


class HighQuantile(TypedDict):
    """A high quantile in both sets of traces; None if fewer than ten values are beyond it."""

    name: str
    values_ns: OptionalNumbers


class ExceedanceDifference(TypedDict):
    """Difference between two sets of traces in the share of values beyond a threshold, with an interval over blocks."""

    difference: float | None
    low: float | None
    high: float | None
    p: float | None


class AccountRow(TypedDict):
    """Response times in two sets of traces, and the counts of each set."""

    basis: str
    has_response: bool
    response_ns: list[float]
    database_ns: list[float]
    sides: list[dict[str, float | None]]
