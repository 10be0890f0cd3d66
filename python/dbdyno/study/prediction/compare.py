"""Comparison of every arm of a live run with the prediction of a calibrated machine.

A live value has an interval over its blocks; the model's value is one number without an interval. The error is model /
live - 1. Whether the model's value is within the live interval is reported separately: a wide interval, from a short
run, does not prove the model right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from dbdyno.base.errors import ModelError
from dbdyno.base.json_types import JsonObject
from dbdyno.base.postgres_types import PostgresScript, PostgresStep
from dbdyno.evidence.run import Run
from dbdyno.model.machine import Machine
from dbdyno.model.postgres import SimulationResult, simulate
from dbdyno.study.prediction.memory import BUFFERS, WORK_MEM, memory_settings
from dbdyno.study.prediction.observation import MARIADB, POSTGRES, engine_of
from dbdyno.study.prediction.reference import SCALING_FACTOR
from dbdyno.study.prediction.scripts import Steps, steps_of
from dbdyno.study.prediction.server import parameters_of, turn_ms_of
from dbdyno.study.prediction.sync_methods import SETTING, method_settings
from dbdyno.study.prediction.volumes import on_devices_of

if TYPE_CHECKING:
    from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures

SCHEMA = 1
LEVEL = 0.95
METRICS = ("throughput", "mean", "p50", "p90", "p99")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
AIMS = {"p50": 0.10, "p99": 0.25}
"""Largest errors up to which a prediction is called good."""
NAMES = {POSTGRES: "PostgreSQL", MARIADB: "MariaDB"}
CPU_QUEUE = "CPU queue"
_OUTSIDE = ("idle",)
"""Wait classes in which the server waits for the client."""


class Metric(TypedDict):
    """Metric of an arm: the live value with its interval, and the model's value; in ns, or per second."""

    metric: str
    live: float
    low: float
    high: float
    model: float
    error: float
    inside: bool


class PredictedArm(TypedDict):
    """An arm of a run, with its live values and those of the model."""

    arm: str
    sessions: int
    calibrated: bool
    changes: dict[str, str]
    transactions: int
    metrics: list[Metric]
    waits: list[JsonObject]
    cores: float
    device: float
    commits_per_flush: float
    notes: list[str]


class PredictionPage(TypedDict):
    """Model of the page about a prediction."""

    schema: int
    kind: str
    page: str
    title: str
    machine: str
    run: str
    arms: list[PredictedArm]
    sentences: list[str]


@dataclass(frozen=True)
class CalibratedMachine:
    """A calibrated machine read from a file.

    Attributes:
        machine: The machine as read from its file.
        statements: Texts of the statements that have costs.
        changes: For each statement, True if it writes log.
        sessions: Number of sessions of the arm from which it was calibrated.
        engine: `postgresql` or `mariadb`.
    """

    machine: Machine
    statements: list[str]
    changes: list[bool]
    sessions: int
    engine: str = POSTGRES

    @classmethod
    def from_machine(cls, machine: Machine) -> CalibratedMachine:
        """Return a machine that was calibrated from a run.

        Raises:
            ModelError: The machine has no calibrated PostgreSQL.
        """
        values = {row["path"]: row["value"] for row in machine.parameters}
        statements = values.get("postgres.statements") or []
        if not statements:
            raise ModelError(
                "has no calibrated PostgreSQL",
                where=machine.name,
                next_step="calibrate the machine from an arm of a run: dbdyno model calibrate RUN --arm ARM -o "
                "mine.toml",
            )
        texts = [str(statement.get("text", "")) for statement in statements]
        changes = [float(statement.get("wal_bytes", 0.0)) > 0 for statement in statements]
        engine = POSTGRES if values.get("postgres.wakes_all", True) else MARIADB
        return cls(machine, texts, changes, int(values.get("postgres.calibrated_sessions") or 0), engine)


def predict(
    run: Run,
    measures: Measures,
    machine: CalibratedMachine,
    *,
    only: Sequence[str] = (),
    on_progress: Callable[[str], None] = lambda words: None,
) -> PredictionPage:
    """Return the page that compares every arm of a live run with its prediction.

    Raises:
        ModelError: The run is on another engine than the machine's, or an arm cannot be modelled.
    """
    from dbdyno.study.plan.plan import plan_from_dict

    if engine_of(run) != machine.engine:
        name = NAMES[machine.engine]
        raise ModelError(
            f"is not a run on {name}, which is the engine that the machine models",
            where=run.id,
            next_step=f"name a run on {name}",
        )
    plan = plan_from_dict(run.manifest.plan)
    arms: list[PredictedArm] = []
    waits = _live_waits(run)
    places = _places(run, machine)
    for number, arm in enumerate(plan.arms):
        if only and arm.name not in only:
            continue
        if plan.rate_of(arm) is not None:
            raise ModelError(
                "the model cannot predict an arm with a rate, because the model's sessions never wait between "
                "transactions",
                where=arm.name,
                next_step="choose arms without rate_per_s",
            )
        on_progress(f"arm {arm.name}")
        about = run.manifest.arms[number]
        steps = steps_of(plan, arm)
        scripts, notes = scripts_for(machine, steps)
        changes = {name: str(value) for name, value in about["changes"].items() if places.get(name) != value}
        synced, lacks = method_settings(machine.machine, method) if (method := changes.pop(SETTING, "")) else ({}, [])
        memory, unknown = memory_settings(machine.machine, changes) if machine.engine == POSTGRES else ({}, [])
        changes = {name: value for name, value in changes.items() if name not in (BUFFERS, WORK_MEM)}
        toml, known = on_devices_of(machine.machine, run, number)
        if known:
            changes.pop("device", None)
        settings, left = parameters_of(machine.engine, changes)
        outcome = simulate(
            toml,
            sessions=measures.arms[number].sessions,
            scripts=scripts,
            settings={
                **as_settings({**_threads(measures), "turn_ms": turn_ms_of(run), **settings}),
                **synced,
                **memory,
            },
        )
        said = [*steps.notes, *notes, *left, *lacks, *unknown]
        arms.append(_row(measures.arms[number], outcome, waits.get(arm.name, {}), about, said))
        arms[-1]["calibrated"] = f"calibrated from {arm.name} of {run.id}" == machine.machine.title
    return {
        "schema": SCHEMA,
        "kind": "model",
        "page": "prediction",
        "title": f"{run.manifest.title}: model beside live",
        "machine": f"{machine.machine.name}: {machine.machine.title}",
        "run": run.id,
        "arms": arms,
        "sentences": sentences(arms, machine),
    }


def _places(run: Run, machine: CalibratedMachine) -> dict[str, Any]:
    """Return the server of the calibrated arm, if it is in this run; else an empty result.

    An arm with the same server needs no change of the machine for it.
    """
    own = (arm for arm in run.manifest.arms if machine.machine.title == f"calibrated from {arm['name']} of {run.id}")
    return {name: value for arm in own for name, value in arm["changes"].items() if name == "server"}


def _threads(measures: Measures) -> dict[str, int]:
    """Return the number of threads of the load generator, which the sessions of all arms share."""
    blocks = measures.arms[0].blocks
    return {"client_threads": int(blocks[0].report["threads"])} if blocks else {}


def as_settings(parameters: Mapping[str, bool | int | float]) -> dict[str, str]:
    """Return parameters of the modelled PostgreSQL as settings of the model."""
    return {f"postgres.{name}": str(value).lower() for name, value in parameters.items()}


def scripts_for(machine: CalibratedMachine, steps: Steps) -> tuple[list[PostgresScript], list[str]]:
    """Return an arm's scripts with the machine's statement numbers, and a sentence for each statement without costs."""
    numbers, notes = [], []
    for text, kind, changes in zip(steps.statements, steps.kinds, steps.changes, strict=True):
        if text in machine.statements:
            numbers.append(machine.statements.index(text))
            continue
        at = _like(machine, kind, changes)
        numbers.append(at)
        if kind not in ("begin", "commit"):
            notes.append(
                f"{_short(text)} has no costs in the machine: those of {_short(machine.statements[at])} are used."
            )
    scripts: list[PostgresScript] = []
    for script in steps.scripts:
        own: list[PostgresStep] = [{**step, "statement": numbers[step["statement"]]} for step in script["steps"]]
        scripts.append({"weight": script["weight"], "steps": own})
    return scripts, notes


def _like(machine: CalibratedMachine, kind: str, changes: bool) -> int:
    """Return the number of the machine's statement that is most similar to a statement without costs."""
    ends = {"commit": ("commit", "end"), "begin": ("begin", "start")}.get(kind, ())
    for at, text in enumerate(machine.statements):
        if text.lower().startswith(ends) if ends else machine.changes[at] == changes and not _is_frame(text):
            return at
    return 0


def _is_frame(text: str) -> bool:
    return text.lower().split(" ")[0] in ("begin", "start", "commit", "end", "rollback")


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _row(
    live: ArmMeasures, outcome: SimulationResult, waits: Mapping[str, float], about: Mapping[str, Any], notes: list[str]
) -> PredictedArm:
    done = live.total("transactions")
    return {
        "arm": live.name,
        "sessions": live.sessions,
        "calibrated": False,
        "changes": {name: str(value) for name, value in about["changes"].items()},
        "transactions": done,
        "metrics": list(_metrics(live, outcome)),
        "waits": _waits(waits, done, outcome),
        "cores": outcome.cores,
        "device": outcome.device,
        "commits_per_flush": outcome.commits_per_flush,
        "notes": notes,
    }


def _metrics(live: ArmMeasures, outcome: SimulationResult) -> Iterator[Metric]:
    import numpy as np

    pooled = live.pooled_latencies()
    for name in METRICS:
        low, middle, high = interval(live.values[name])
        if name in QUANTILES:
            value, model = float(np.quantile(pooled, QUANTILES[name])), outcome.quantile_ns(QUANTILES[name])
        elif name == "mean":
            value, model = float(pooled.mean()), outcome.mean_ns
        else:
            value, model = middle, outcome.throughput_per_s
        # The interval is one of a typical block; pooled values may lie beside it.
        low, high = min(low, value), max(high, value)
        yield {
            "metric": name,
            "live": value,
            "low": low,
            "high": high,
            "model": model,
            "error": model / value - 1 if value else math.nan,
            "inside": low <= model <= high,
        }


def interval(values: Any) -> tuple[float, float, float]:
    """Return the low end, the geometric mean, and the high end of an interval over the values of blocks."""
    import numpy as np

    from dbdyno.stats.means import mean_interval

    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known) & (known > 0)]
    mean, low, high = mean_interval(np.log(known), LEVEL)
    return math.exp(low), math.exp(mean), math.exp(high)


def _waits(live: Mapping[str, float], done: int, outcome: SimulationResult) -> list[JsonObject]:
    """Return the waits of a transaction in server processes by class [ns], live and in the model."""
    from dbdyno.evidence.events import wait_class

    model: dict[str, float] = {}
    for (event_type, event), ns in outcome.waits_ns.items():
        if event == CPU_QUEUE:
            name = CPU_QUEUE
        elif event == "CommitDelay":
            name = "commit"
        else:
            name = wait_class("postgresql", event_type, event)
        model[name] = model.get(name, 0.0) + ns
    names = [name for name in dict.fromkeys([*model, *live]) if name not in _OUTSIDE and name != "network"]
    rows = []
    for name in names:
        seen = live[name] / max(done, 1) if name in live else None
        if (seen or 0.0) > 0 or model.get(name, 0.0) > 0:
            rows.append({"class": name, "live": seen, "model": model.get(name, 0.0)})
    return rows


_LIVE_WAITS = """
select arm, class, sum(elapsed_ns) from waits
where object = 'client backend' and block in (select block from slices where counts) group by all
"""


def _live_waits(run: Run) -> dict[str, dict[str, float]]:
    """Return the time of each wait class by arm [ns]; samples give unbiased times as well."""
    from dbdyno.evidence.query import connect

    connection, _ = connect(run)
    try:
        tables = {row[0] for row in connection.execute("show tables").fetchall()}
        rows = connection.execute(_LIVE_WAITS).fetchall() if "waits" in tables else []
    finally:
        connection.close()
    found: dict[str, dict[str, float]] = {}
    for arm, name, ns in rows:
        if name != "CPU":
            found.setdefault(arm, {})[name] = float(ns)
    return found


def sentences(arms: Sequence[PredictedArm], machine: CalibratedMachine) -> list[str]:
    """Return sentences on the comparison: how many predictions are good, the worst, and how far it extrapolates."""
    others = [arm for arm in arms if not arm["calibrated"]]
    said = []
    for metric, aim in AIMS.items():
        errors = {arm["arm"]: _error(arm, metric) for arm in others}
        known = {name: error for name, error in errors.items() if math.isfinite(error)}
        if known:
            good = sum(abs(error) <= aim for error in known.values())
            worst = max(known, key=lambda name: abs(known[name]))
            said.append(
                f"{metric}: {good} of {len(known)} arms that were not fitted are within {aim:.0%};"
                f" the worst is {worst}, {known[worst]:+.1%}."
            )
    most = max((arm["sessions"] for arm in others), default=0)
    if not machine.sessions:
        said.append(host_assumptions())
    if machine.sessions and most > machine.sessions:
        said.append(
            f"Calibrated at {machine.sessions} session(s): {most} are {most / machine.sessions:.3g} times that, and "
            "effects of many sessions (caches, latches) could not be measured."
        )
    return said


def host_assumptions() -> str:
    """Return a sentence on the assumptions behind a machine that was made without a database."""
    return (
        "The machine was made of a host without a database: the CPU of statements and client is a default, scaled"
        f" to its processor and assumed to be right within a factor of {SCALING_FACTOR:g}."
    )


def _error(arm: PredictedArm, metric: str) -> float:
    return next((row["error"] for row in arm["metrics"] if row["metric"] == metric), math.nan)
