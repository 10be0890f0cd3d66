"""Trend of all runs of one plan over time: where an arm changed, on a machine that did not change.

The unit is the run (`trend_rows`). In a plan with a base arm, each other arm is followed by its ratio to the base of
the same run, so that what affects all arms alike cancels; the level of the base is examined only for a warning. With
`levels`, or with a single arm, each arm's own level is followed. The tests are in `stats.changes`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from dbdyno.base.errors import EvidenceError, StatsError
from dbdyno.base.trend_run import TrendRun
from dbdyno.evidence.run import Run
from dbdyno.stats import changes as found
from dbdyno.study.analysis.contract.declarations import SCHEMA
from dbdyno.study.analysis.contract.rows import Caution, VerdictRow
from dbdyno.study.analysis.trend_rows import bases_of, counts, rows_of
from dbdyno.study.analysis.trend_verdict import ArmRow, Change, Drift, verdict_of


class Trend(TypedDict):
    """Model of a trend page; `follows` says whether the values of its runs are a "ratio" or a "level"."""

    schema: int
    kind: str
    title: str
    metric: str
    label: str
    unit: str
    follows: str
    higher_is_better: bool
    level: float
    runs: list[TrendRun]
    arms: list[ArmRow]
    verdict: VerdictRow
    warnings: list[Caution]


def trend_of(runs: Sequence[Run], title: str, metric: str | None = None, *, levels: bool = False) -> Trend:
    """Return the model of a trend page from the runs on the engine of the last run.

    Raises:
        EvidenceError: There is no run.
        StatsError: The metric is unknown.
    """
    from dbdyno.stats.metrics import metric_named
    from dbdyno.study.analysis.analyse import headline_of

    if not runs:
        raise EvidenceError(
            "has no run yet",
            where=title,
            next_step="run the study with `dbdyno run`, or name another folder with --runs",
        )
    engine, every = runs[-1].manifest.bench, len(runs)
    runs = [run for run in runs if run.manifest.bench == engine]
    headline = metric or headline_of(runs[-1])
    about, level = metric_named(headline), float(runs[-1].manifest.plan["judge"]["level"])
    bases = {} if levels else bases_of(runs[-1])
    rows = rows_of(runs, headline, bases)
    names = [str(arm["name"]) for arm in runs[-1].manifest.arms]
    followed = [name for name in names if name in bases or not bases]
    warnings: list[Caution] = []
    arms = [_arm(name, bases.get(name), rows, 1 - (1 - level) / len(followed), warnings) for name in followed]
    warnings += _base_moves(sorted(set(bases.values())), rows, level, about.higher_is_better)
    warnings += _failure_warnings(rows, names)
    if len(runs) < every:
        text = f"{every - len(runs)} of {every} runs of this plan used a different engine from the last run ({engine})"
        warnings.append({"code": "engine", "text": text, "next": "they are left out"})
    warnings += _machines(rows) + _dates(runs)
    return {
        "schema": SCHEMA,
        "kind": "trend",
        "title": title,
        "metric": headline,
        "label": about.label,
        "unit": "ratio" if bases else about.unit,
        "follows": "ratio" if bases else "level",
        "higher_is_better": about.higher_is_better,
        "level": level,
        "runs": rows,
        "arms": arms,
        "verdict": verdict_of(arms, rows, about, level),
        "warnings": warnings,
    }


def _arm(name: str, base: str | None, rows: list[TrendRun], level: float, warnings: list[Caution]) -> ArmRow:
    """Return the trend of an arm; if nothing can be tested, the reason is added to the warnings."""
    counting = [at for at, row in enumerate(rows) if counts(row, name, base)]
    values = [rows[at]["values"][name] or 0.0 for at in counting]
    row: ArmRow = {
        "name": name,
        "base": base,
        "runs": len(values),
        "changes": [],
        "drift": None,
        "found_from": None,
    }
    try:
        moves = found.level_changes(values, level=level)
    except StatsError as error:
        warnings.append({"code": "trend", "text": f"{name}: {error.message}", "next": error.next_step or ""})
        return row
    row["changes"] = [_change(one, counting) for one in moves.changes]
    row["drift"] = _drift(moves.drift, counting)
    if not moves.changes and moves.drift is None:
        least = found.detectable_step(values, level=level)
        row["found_from"] = least if math.isfinite(least) else None
    return row


def _change(change: found.Change, places: list[int]) -> Change:
    return {
        "run": places[change.at],
        "first": places[change.first],
        "last": places[change.last],
        "ratio": change.ratio,
        "low": change.low,
        "high": change.high,
        "p": change.p,
    }


def _drift(drift: found.Drift | None, places: list[int]) -> Drift | None:
    if drift is None:
        return None
    step = None if drift.step is None else _change(drift.step, places)
    return {"ratio": drift.ratio, "low": drift.low, "high": drift.high, "p": drift.p, "step": step}


def _base_moves(bases: list[str], rows: list[TrendRun], level: float, higher: bool) -> list[Caution]:
    """Return a warning for each base whose own level changed, because ratios do not show such a change."""
    from dbdyno.stats.wording import change_of

    warnings: list[Caution] = []
    for name in bases:
        values = [
            row["levels"][name] or 0.0
            for row in rows
            if row["comparable"] and name not in row["failed"] and row["levels"].get(name)
        ]
        if len(values) < found.LEAST:
            continue
        moves = found.level_changes(values, level=1 - (1 - level) / len(bases))
        last = moves.drift or (moves.changes[-1] if moves.changes else None)
        if last is not None:
            by = change_of(last.ratio, last.low, last.high, higher_is_better=higher)
            text = f"{name}, the base, itself became {by}: check the machine, the server and what all arms share"
            warnings.append(
                {"code": "base", "text": text, "next": "use `dbdyno trend --level` to follow each arm by itself"}
            )
    return warnings


def _failure_warnings(rows: list[TrendRun], names: list[str]) -> list[Caution]:
    """Return a warning for each arm that had failures in a run."""
    from dbdyno.stats.wording import percent

    warnings: list[Caution] = []
    for name in names:
        shares = [row["failed"][name] for row in rows if name in row["failed"]]
        if shares:
            most = f"up to {percent(max(shares))} % of its transactions failed in {len(shares)} of {len(rows)} runs"
            text = f"{name}: {most}: these runs are not judged"
            warnings.append({"code": "errors", "text": text, "next": "see the errors with `dbdyno report RUN`"})
    return warnings


def _machines(rows: list[TrendRun]) -> list[Caution]:
    """Return warnings about runs on other machines, and about missing canaries."""
    warnings: list[Caution] = []
    if not any(row["canaries"] for row in rows):
        text = "no run has canaries of its machine: a change of the machine's state would look like a change"
        warnings.append({"code": "machine", "text": text, "next": "check what else ran there"})
    left = sum(not row["comparable"] for row in rows)
    if left:
        text = f"{left} of {len(rows)} runs were made on another machine, or on this one in another state"
        warnings.append({"code": "machine", "text": text, "next": "compare their canaries in the table"})
    return warnings


def _dates(runs: Sequence[Run]) -> list[Caution]:
    """Return a warning if imported runs are ordered by the modification time of their files."""
    count = sum(run.manifest.dated_by == "file" for run in runs)
    if not count:
        return []
    text = f"{count} of {len(runs)} runs are dated by the modification time of an imported file, which a copy changes"
    return [{"code": "date", "text": text, "next": "set the time with `dbdyno runs import --started TIME`"}]
