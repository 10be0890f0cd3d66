"""Declared types of analysis.json: the keys of each part, with the descriptions that docs/reference/analysis.md shows.

    python -m dbdyno.study.analysis.contract      # prints the table of docs/reference/analysis.md

If an older version wrote the file, parts that it did not write are None. If a newer version wrote the file, parts that
this version does not know are ignored. `undeclared_keys` names keys that no type declares: the tests apply it to every
analysis, so that the documented keys always agree with the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from dbdyno.base.json_types import JsonObject
from dbdyno.study.analysis.contract.explanation import Explanation, documented_field
from dbdyno.study.analysis.contract.optional_parts import Database, Device, Law, Order, Race, Resources, Volume

SCHEMA = 1
Many = list[JsonObject]
T = TypeVar("T")
KINDS = (
    "`experiment`, `aa` (`--aa`), `curve` (the study redo-size), `sweep` (the study queue-depth, and plans with "
    "factors), `tune` (a race of `dbdyno tune`), `correlation` (the study hit-ratio), `probe` (one log of a "
    "[probe](../how-to/probe.md)), or `traces` (two sets of [traces](../how-to/trace.md))"
)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about the run: what was run, and how it went."""

    id: str | None = documented_field()
    title: str | None = documented_field()
    question: str | None = documented_field()
    status: str | None = documented_field()
    started_at: str | None = documented_field()
    duration_s: float | None = documented_field()
    tool_version: str | None = documented_field()
    seed: int | None = documented_field()
    virtual_s: float | None = documented_field("on a model")
    blocks_planned: int | None = documented_field()
    blocks_whole: int | None = documented_field()
    warmup_blocks: int | None = documented_field()
    switch: str | None = documented_field("`slices`, `turns`, `reload`, `restart`, `model`")
    slice_ms: float | None = documented_field()
    order: str | None = documented_field()
    randomised: bool | None = documented_field()
    open_loop: bool | None = documented_field()
    threshold: float | None = documented_field()
    plan_toml: str | None = documented_field()
    runs: list[str] | None = documented_field("of a comparison of runs")


@dataclass(frozen=True, slots=True)
class WithheldArm:
    """An arm that gets no verdict."""

    arm: int | None = documented_field()
    decision: str | None = documented_field()
    reason: str | None = documented_field()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The run's answer to its question."""

    decision: str | None = documented_field(
        "`faster`, `slower`, `same`, `unclear`, `provisional`, `no verdict`, `failed`, `found`, `not found`, "
        "`noise floor`, `measured`; [method.md](../explanation/method.md) has the table"
    )
    headline: str | None = documented_field()
    sentences: list[str] | None = documented_field()
    withheld: list[WithheldArm] | None = documented_field("per arm without a verdict", WithheldArm)


@dataclass(frozen=True, slots=True)
class Arm:
    """An arm and its results over all operations that count."""

    index: int | None = documented_field()
    name: str | None = documented_field()
    description: str | None = documented_field()
    changes: JsonObject | None = documented_field()
    sessions: int | None = documented_field()
    rate_per_s: float | None = documented_field()
    baseline: bool | None = documented_field()
    ops: int | None = documented_field()
    errors: int | None = documented_field()
    error_codes: dict[str, int] | None = documented_field("failed transactions by SQLSTATE")
    expected_codes: dict[str, int] | None = documented_field(
        "transactions that ended in an expected error, by SQLSTATE"
    )
    retries: int | None = documented_field()
    skipped: int | None = documented_field()
    throughput_per_s: float | None = documented_field("geometric mean of the blocks, as in `metrics`")
    mean_ns: float | None = documented_field()
    sd_ns: float | None = documented_field()
    quantiles_ns: dict[str, float] | None = documented_field()
    max_ns: float | None = documented_field()


@dataclass(frozen=True, slots=True)
class Metric:
    """Comparison of an arm with its base in one metric."""

    arm: int | None = documented_field()
    baseline: int | None = documented_field()
    metric: str | None = documented_field()
    label: str | None = documented_field()
    unit: str | None = documented_field()
    higher_is_better: bool | None = documented_field()
    base_value: float | None = documented_field("geometric mean over blocks")
    value: float | None = documented_field("geometric mean over blocks")
    ratio: float | None = documented_field()
    low: float | None = documented_field("t interval")
    high: float | None = documented_field()
    boot_low: float | None = documented_field("by bootstrap")
    boot_high: float | None = documented_field()
    level: float | None = documented_field()
    p: float | None = documented_field()
    q: float | None = documented_field()
    blocks: int | None = documented_field()
    decision: str | None = documented_field()
    words: str | None = documented_field()
    smallest_visible: float | None = documented_field()
    blocks_needed: int | None = documented_field()
    tell_low: int | None = documented_field("blocks in total needed to tell a difference of the threshold from none")
    tell_high: int | None = documented_field("null: over 1,000")


@dataclass(frozen=True, slots=True)
class ClassicalTest:
    """A classical statistical test over all operations."""

    arm: int | None = documented_field()
    baseline: int | None = documented_field()
    test: str | None = documented_field("`Welch t`, `Mann-Whitney U`, `Kolmogorov-Smirnov D`")
    statistic: float | None = documented_field()
    df: float | None = documented_field()
    log10_p: float | None = documented_field()
    effect: str | None = documented_field()
    note: str | None = documented_field()


@dataclass(frozen=True, slots=True)
class Failure:
    """Failures of one kind: same arm, statement, SQLSTATE, error number and message."""

    arm: int | None = documented_field()
    kind: str | None = documented_field()
    statement: str | None = documented_field()
    sqlstate: str | None = documented_field()
    meaning: str | None = documented_field("the condition's name in words")
    error_class: str | None = documented_field("the name of its class")
    vendor_code: int | None = documented_field("the engine's own number of the error, where it has one (MariaDB)")
    condition: str | None = documented_field("the engine's own name for that number, such as ER_DUP_ENTRY")
    message: str | None = documented_field("what the engine said, without values")
    expected: bool | None = documented_field("whether the plan declares it an outcome")
    failed: int | None = documented_field()
    tried: int | None = documented_field()


@dataclass(frozen=True, slots=True)
class Gate:
    """A check on which a verdict depends."""

    name: str | None = documented_field()
    code: str | None = documented_field()
    ok: bool | None = documented_field("true, false, or null if it is not known")
    text: str | None = documented_field()
    next: str | None = documented_field()
    arm: str | int | None = documented_field("empty: the whole run")
    effect: str | None = documented_field("`withholds`, `provisional`, `warns`")


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning for the reader."""

    code: str | None = documented_field()
    text: str | None = documented_field()
    next: str | None = documented_field()
    count: int | None = documented_field("how many similar ones")


@dataclass(frozen=True, slots=True)
class Method:
    """How the run was measured."""

    sentences: list[str] | None = documented_field()
    overhead: dict[str, object] | None = documented_field("cost of watching: `text`, `ratio`, `low`, `high`")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The whole file analysis.json."""

    schema: int | None = documented_field("1; the version of this format")
    kind: str | None = documented_field(KINDS)
    run: RunFacts | None = documented_field("", RunFacts)
    verdict: Verdict | None = documented_field("", Verdict)
    why: list[Explanation] | None = documented_field(
        "per compared arm, what made the difference; for a single arm, its time:", Explanation
    )
    arms: list[Arm] | None = documented_field("per arm, over all operations that count:", Arm)
    metrics: list[Metric] | None = documented_field("per arm and metric:", Metric)
    classical: list[ClassicalTest] | None = documented_field(
        "tests over all operations, which decide nothing:", ClassicalTest
    )
    lines: Many | None = documented_field(
        "of two sets of traces, per event, kind of call and statement: `family`, `name`, `text`, `class`, `only_in` "
        "(0, 1 or null), `sides` (`count`, `total_ns`, `mean_ns`, `max_ns`, `scaled_ns` of each), `difference_ns` (in "
        "all, per execution or per transaction: `account.basis`), `metrics` (as above)"
    )
    account: JsonObject | None = documented_field(
        "of two sets of traces: `basis` (`run`: totals, `execution`: per execution of the client, `transaction`: per "
        "transaction), `has_response`, "
        "`response_ns`, `database_ns` (of each, on that basis), `sides` (of each: `response_ns`, `database_ns`, "
        "`think_ns`, `unexplained_ns`, `executions`, `calls`, `round_trips`, `rows`, `hard_parses`, `commits`)"
    )
    reasons: Many | None = documented_field(
        "of two sets of traces, largest first: `code`, `about` (an event, a statement), `effect_ns` (the effects add "
        "up to the difference of the response times), `text`, `counts`, `times_ns` of each, "
        "`held_ns` (of recordings: what others waited for locks meanwhile, in each set)"
    )
    changes: Many | None = documented_field(
        "of two sets of traces, the statements that changed: `statement`, `text`, `texts` (how many it stands for in "
        "each), `depth`, `what` (`new`, `gone`, `plan`, `executions`, `rows`, `fetches`, `gets`, `reads`, `hard "
        "parses`), `difference_ns`, `sides` (null where it is not; `executions`, `time_ns`, `plans`, `steps`, "
        "`per_execution`), `time` (a metric)"
    )
    pairs: Many | None = documented_field(
        "of two sets of traces paired by `--pair`: `key`, `response_ns`, `database_ns` of each"
    )
    tails: JsonObject | None = documented_field(
        "of two sets of traces, and of two arms where the plan asks for the `longest`: `threshold_ns`, `exceed` "
        "(`counts`, `shares`, and their `difference` over blocks with `low`, `high`, `p`), `longest` (`most`, "
        "`counts`, `expected`), `quantiles`"
    )
    errors: list[Failure] | None = documented_field("the most frequent first:", Failure)
    statements: Many | None = documented_field("per command of a script and arm: `ops`, `mean_ns`, `p50_ns`, `p99_ns`")
    figures: JsonObject | None = documented_field(
        "`distribution`, `quantile_ratio`, `tail`, `blocks`, `heatmap`, `waits`, `over_time`, `contributions`: "
        "parallel arrays, ready to draw; `curve`: `x_label` and `curves`, one per arm (`bins`, `points`, `fit`, "
        "`models`, `period_bytes`, `found`, `sentence`); `sweep`: `x_label`, `operation` and `curves` (`name`, "
        "`points` with `x`, `per_s`, `mean_ns` and their intervals; `x_words` where the levels are no numbers)"
    )
    factors: dict[str, object] | None = documented_field(
        "of a plan with factors: `names`, `axis` (reported first), `answer` (`arm`, `base`: the two that "
        "the headline is about), `metric`, `label`, `unit`, `level`, `comparisons` (over which the level is held); "
        "`curves` (`factor`, `held` (the others' levels), `where` (these in words), `levels` (`arm`, `level`, `x`, "
        "`value`, `share` of the best, `ratio` to the first with `low`, `high`; above 1 is better), `best`, `ordered`, "
        "`may_be_best`, `knee`, `knee_low`, `knee_high` (places in `levels`), `course`, "
        "`told`, `sentence`, `law` (`law`, `holds`, `farthest`, `parameters`, `sentence`)); `interactions` (`one`, "
        "`other`, `effects` at each of `levels`, `apart` with `low`, `high`, `certain`, `none`, `sentence`)"
    )
    tune: dict[str, object] | None = documented_field(
        "of a race: `metric`, `level`, `blocks`, `ran` (turns), `full` (turns of a full design), `end` (`one`, "
        "`equal`, `time`, `blocks`), `leader`, `rows` per arm (`arm`, `name`, `state` (`best`, `in`, `left`, "
        "`failed`), `after`, `by`, `blocks`, `ratio` to the leader with `low`, `high`, `failed`)"
    )
    devices: list[Device] | None = documented_field("on a model, per arm and kind of station:", Device)
    resources: list[Resources] | None = documented_field(
        "on an engine of this host and of commands, per arm:", Resources
    )
    laws: list[Law] | None = documented_field("of a run of operations on a live engine, operational laws:", Law)
    volumes: list[Volume] | None = documented_field("on engines over modelled devices, per device:", Volume)
    beside: Many | None = documented_field(
        "of two runs of one study with as many arms, per arm: `sides`, one per run (`arm`, `mean_ns`, and against its "
        "`base` the `ratio` with `low` and `high`)"
    )
    race: list[Race] | None = documented_field("on a model and on storage cells, per arm with a flash log:", Race)
    databases: list[Database] | None = documented_field("on a model with several, per arm and database:", Database)
    order: list[Order] | None = documented_field("of the study flow-order, per engine and size:", Order)
    logs: Many | None = documented_field(
        "of a run on this host, per arm: `commits`, `writes`, `commits_per_write`, `redo_bytes`, `wasted_bytes`, "
        "`laps`, `write` (the log writer's own: `writes`, `mean_ns`, `max_ns`, `quantiles_ns`), `paths` (the same per "
        "path, with `path`, `file`, `bytes`, `outliers`, `farthest_behind_bytes`), `race` (`races`, `first`, `second`, "
        "`skipped_busy`, `held_back`, `prevented_outliers`, `second_only_outliers`, `actual_outliers`) or null, "
        "`outlier_ns`, `cost_ns` (the probe's own, per write)"
    )
    correlation: JsonObject | None = documented_field(
        "only of that kind: `rows` (per property: `x`, `n`, `pearson` with `low`, `high`, `pearson_log10_p`; "
        "`spearman`, `spearman_log10_p`, `q`), `statements` (`statement`, `text`, `calls`, `mean_ns`, `hit_ratio`, "
        "`blocks`, `reads`, `temp`, `rows`), `assumption`"
    )
    gates: list[Gate] | None = documented_field("a gate that failed is not among the `warnings`:", Gate)
    warnings: list[Caution] | None = documented_field("", Caution)
    method: Method | None = documented_field("", Method)
    engine: JsonObject | None = documented_field(
        "`facts` and `settings` of the engine (the first engine, if arms have several)"
    )


def read(model: Mapping[str, Any]) -> Analysis:
    """Return an analysis, written by this or an older version, in the declared types."""
    return _record(Analysis, model)


def _record(made: type[T], given: Mapping[str, Any]) -> T:
    found = {}
    for one in fields(made):  # type: ignore[arg-type]
        value, record = given.get(one.name), one.metadata["record"]
        if record is not None and isinstance(value, Mapping):
            value = _record(record, value)
        elif record is not None and isinstance(value, list):
            value = [_record(record, entry) for entry in value]
        found[one.name] = value
    return made(**found)


def undeclared_keys(model: Mapping[str, Any], of: type = Analysis, where: str = "") -> Iterator[str]:
    """Yield the keys of an analysis that no type declares, such as `run.colour`."""
    declared = {one.name: one.metadata["record"] for one in fields(of)}
    for name, value in model.items():
        if name not in declared:
            yield f"{where}{name}"
            continue
        entries = value if isinstance(value, list) else [value]
        for entry in entries:
            if declared[name] is not None and isinstance(entry, Mapping):
                yield from undeclared_keys(entry, declared[name], f"{where}{name}.")


def table() -> str:
    """Return the table of docs/reference/analysis.md."""
    rows = ["| key | holds |", "|---|---|"]
    for one in fields(Analysis):
        says, record = one.metadata["says"], one.metadata["record"]
        parts = ", ".join(_name_of(part) for part in fields(record)) if record is not None else ""
        rows.append(f"| `{one.name}` | {' '.join(word for word in (says, parts) if word)} |")
    return "\n".join(rows)


def _name_of(part: Any) -> str:
    says = part.metadata["says"]
    return f"`{part.name}` ({says})" if says else f"`{part.name}`"
