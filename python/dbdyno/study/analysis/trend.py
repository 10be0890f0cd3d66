"""All runs of one plan over time: where an arm changed, on a machine that did not.

The unit is the run: its number is the geometric mean over its blocks. A run whose canaries (a loop on the CPU, an
fsync) lie off the others' says that the machine was another one that day: it is shown, and counts for no change. Nor
does an arm count in a run in which it failed: what is left of its transactions may be the quick ones.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TypedDict

from dbdyno.errors import EvidenceError, StatsError
from dbdyno.evidence.run import Run
from dbdyno.stats.gates_lost import SHARE_MOST
from dbdyno.study.analysis.contract.declared import SCHEMA
from dbdyno.study.analysis.contract.rows import Caution, VerdictRow

CANARIES = {"cpu_ns": 0.15, "fsync_ns": 1.0}
"""By how much (log) the median of a run's canary may lie off that of all runs: 15 % of CPU, 2.7 times of an fsync."""


class RunRow(TypedDict, total=False):
    """A run at its place: by arm the value with both ends of its interval, and the share that failed where it is too
    much; `off` is by how much its canaries lie off those of most, `unread` why nothing could be read."""

    run: str
    started_at: str
    values: dict[str, float | None]
    lows: dict[str, float | None]
    highs: dict[str, float | None]
    failed: dict[str, float]
    blocks: int
    canaries: dict[str, float]
    off: dict[str, float]
    comparable: bool
    unread: str


class Change(TypedDict):
    """A lasting change from a run on; it began with one of the runs `first` to `last`."""

    run: int
    first: int
    last: int
    ratio: float
    low: float
    high: float
    p: float


class ArmRow(TypedDict):
    """An arm: how many of its runs count, where it changed, or from which ratio on that would have been found."""

    name: str
    runs: int
    changes: list[Change]
    found_from: float | None


class Trend(TypedDict):
    """The model of a trend page."""

    schema: int
    kind: str
    title: str
    metric: str
    label: str
    unit: str
    higher_is_better: bool
    level: float
    runs: list[RunRow]
    arms: list[ArmRow]
    verdict: VerdictRow
    warnings: list[Caution]


def trend_of(runs: Sequence[Run], title: str, metric: str | None = None) -> Trend:
    """The model of a trend page, of the runs on the engine of the last. Raises `EvidenceError` where there is no run,
    `StatsError` for an unknown metric."""
    from dbdyno.stats.metrics import metric_named
    from dbdyno.study.analysis.analyse import headline_of

    if not runs:
        raise EvidenceError("has no run yet", where=title, next_step="dbdyno run it, or name another folder: --runs")
    engine, every = runs[-1].manifest.bench, len(runs)
    runs = [run for run in runs if run.manifest.bench == engine]
    headline = metric or headline_of(runs[-1])
    about, level = metric_named(headline), float(runs[-1].manifest.plan["judge"]["level"])
    rows = [_row(run, headline) for run in runs]
    _compare_machines(rows)
    names = [arm["name"] for arm in runs[-1].manifest.arms]
    arms: list[ArmRow] = []
    warnings: list[Caution] = []
    for name in names:
        counting = [at for at, row in enumerate(rows) if _counts(row, name)]
        values = [rows[at]["values"][name] or 0.0 for at in counting]
        own_level = 1 - (1 - level) / len(names)
        try:
            changes = _changes(values, counting, own_level)
        except StatsError as error:
            changes = []
            warnings.append({"code": "trend", "text": f"{name}: {error.message}", "next": error.next_step or ""})
        arms.append(
            {
                "name": name,
                "runs": len(values),
                "changes": changes,
                "found_from": _found_from(values, changes, own_level),
            }
        )
    warnings += _failing(rows, names)
    if len(runs) < every:
        text = f"{every - len(runs)} of {every} runs of this plan were on another engine than the last ({engine})"
        warnings.append({"code": "engine", "text": text, "next": "they are left out"})
    if not any(row["canaries"] for row in rows):
        text = "no run has canaries of its machine: a machine in another state would show as a change"
        warnings.append({"code": "machine", "text": text, "next": "look at what else ran there"})
    left = sum(not row["comparable"] for row in rows)
    if left:
        text = f"{left} of {len(rows)} runs were made on another machine, or on this one in another state"
        warnings.append({"code": "machine", "text": text, "next": "their canaries stand in the table"})
    return {
        "schema": SCHEMA,
        "kind": "trend",
        "title": title,
        "metric": headline,
        "label": about.label,
        "unit": about.unit,
        "higher_is_better": about.higher_is_better,
        "level": level,
        "runs": rows,
        "arms": arms,
        "verdict": _verdict(arms, rows, about.higher_is_better, about.label, level),
        "warnings": warnings,
    }


def _row(run: Run, headline: str) -> RunRow:
    from dbdyno.stats.means import mean_interval
    from dbdyno.study.analysis.measured.measures import measure

    row: RunRow = {
        "run": run.id,
        "started_at": str(run.manifest.started_at),
        "values": {},
        "lows": {},
        "highs": {},
        "failed": {},
    }
    try:
        measures = measure(run)
    except EvidenceError as error:
        return {**row, "blocks": 0, "canaries": {}, "unread": error.message}
    level = float(run.manifest.plan["judge"]["level"])
    for arm in measures.arms:
        logs = [math.log(value) for value in arm.values[headline] if value > 0 and math.isfinite(value)]
        mean, low, high = mean_interval(logs, level)
        for ends, value in ((row["values"], mean), (row["lows"], low), (row["highs"], high)):
            ends[arm.label] = math.exp(value) if math.isfinite(value) else None
        failed, good = arm.of("failed"), arm.of("transactions")
        if failed > SHARE_MOST * (failed + good):
            row["failed"][arm.label] = failed / (failed + good)
    blocks = measures.arms[0].blocks
    row["canaries"] = {
        name: statistics.median(known)
        for name in CANARIES
        if (known := [block.canaries[name] for block in blocks if block.canaries.get(name)])
    }
    return {**row, "blocks": len(blocks)}


def _counts(row: RunRow, arm: str) -> bool:
    return row["comparable"] and arm not in row["failed"] and bool(row["values"].get(arm))


def _failing(rows: list[RunRow], names: list[str]) -> list[Caution]:
    """A warning for each arm that failed in some run."""
    from dbdyno.stats.words import percent

    warnings: list[Caution] = []
    for name in names:
        shares = [row["failed"][name] for row in rows if name in row["failed"]]
        if shares:
            most = f"up to {percent(max(shares))} % of its transactions failed in {len(shares)} of {len(rows)} runs"
            text = f"{name}: {most}: it counts for no change there"
            warnings.append({"code": "errors", "text": text, "next": "`dbdyno report RUN` names the errors"})
    return warnings


def _compare_machines(rows: list[RunRow]) -> None:
    """Marks the runs whose canaries are like those of most."""
    usual = {
        name: statistics.median(known)
        for name in CANARIES
        if (known := [row["canaries"][name] for row in rows if name in row["canaries"]])
    }
    for row in rows:
        off = {name: row["canaries"][name] / usual[name] for name in row["canaries"]}
        row["off"] = off
        row["comparable"] = row["blocks"] > 0 and all(
            abs(math.log(ratio)) <= CANARIES[name] for name, ratio in off.items()
        )


def _changes(values: list[float], places: list[int], level: float) -> list[Change]:
    from dbdyno.stats.changes import change_points

    return [
        {
            "run": places[one.at],
            "first": places[one.first],
            "last": places[one.last],
            "ratio": one.ratio,
            "low": one.low,
            "high": one.high,
            "p": one.p,
        }
        for one in change_points(values, level=level)
    ]


def _found_from(values: list[float], changes: list[Change], level: float) -> float | None:
    """From which ratio on a change would have been found, where there is none; None where none of any size would."""
    from dbdyno.stats.changes import LEAST, detectable_step

    least = detectable_step(values, level=level) if len(values) >= LEAST and not changes else math.inf
    return least if math.isfinite(least) else None


def _verdict(arms: list[ArmRow], rows: list[RunRow], higher: bool, label: str, level: float) -> VerdictRow:
    from dbdyno.stats.words import change_of

    told = sorted(
        ((one["run"], arm["name"], one) for arm in arms for one in arm["changes"]), key=lambda row: row[0], reverse=True
    )
    sentences = []
    for at, name, one in told:
        by = change_of(one["ratio"], one["low"], one["high"], higher_is_better=higher)
        sentences.append(f"{name} is {by} in {label} since {_day(rows[at])} ({rows[at]['run']}).")
        sentences.append(f"{_begun(one, rows)} ({100 * level:g} %).")
    from dbdyno.decisions import NO_VERDICT
    from dbdyno.stats.words import percent

    counted = sum(row["comparable"] for row in rows)
    if failed := rows[-1]["failed"]:
        shares = ", ".join(f"{percent(share)} % of {name}'s" for name, share in failed.items())
        headline = f"{shares} transactions failed in the last run ({rows[-1]['run']})."
        return {"decision": NO_VERDICT, "headline": headline, "sentences": sentences}
    if not told:
        least = [arm["found_from"] for arm in arms if arm["found_from"]]
        if not least:
            return {"decision": "unclear", "headline": _too_few(counted), "sentences": []}
        change = f"{(max(least) - 1) * 100:.2g}"
        would = f"A lasting change of about {change} % in the middle of them would be found four times out of five."
        return {"decision": "not found", "headline": f"No change found in {counted} runs.", "sentences": [would]}
    last = told[0][2]
    worse = (last["ratio"] < 1) == higher
    decision = "slower" if worse else "faster"
    return {"decision": decision, "headline": sentences[0], "sentences": sentences[1:]}


def _begun(change: Change, rows: list[RunRow]) -> str:
    """Which runs may be the first of a change."""
    first, last = change["first"], change["last"]
    if first == last:
        return "It began with that run and no other"
    return f"It began with one of the runs from {_day(rows[first])} to {_day(rows[last])}"


def _day(row: RunRow) -> str:
    return row["started_at"][:16].replace("T", " ")


def _too_few(runs: int) -> str:
    return f"{runs} {'run is' if runs == 1 else 'runs are'} too few for a trend."
