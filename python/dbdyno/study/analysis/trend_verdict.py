"""Words of a trend: the verdict on its changes and drifts.

A change at a run is "slower" or "faster". This also applies to a level that moved if the runs cannot show whether it
moved in one step: the size of the change is known, its position is not. A drift that no step fits is attributed to the
arm if its ratio to a base arm drifts. The drift of a level may come from the machine, so the decision is then
"unclear".
"""

from __future__ import annotations

from typing import TypedDict

from dbdyno.base.decisions import NO_VERDICT
from dbdyno.base.trend_run import TrendRun
from dbdyno.stats.metrics import Metric
from dbdyno.stats.wording import change_of, direction, percent
from dbdyno.study.analysis.contract.rows import VerdictRow


class Change(TypedDict):
    """A lasting change; it began with one of the runs `first` to `last`, most likely `run`."""

    run: int
    first: int
    last: int
    ratio: float
    low: float
    high: float
    p: float


class Drift(TypedDict):
    """A level that moved by `ratio` from the first run to the last; `step` is a change that fits as well, or None."""

    ratio: float
    low: float
    high: float
    p: float
    step: Change | None


class ArmRow(TypedDict):
    """An arm of the trend.

    `base` is set if the arm's ratio to this base is followed. `runs` is the number of runs in which the arm counts;
    `found_from` is the smallest ratio that would be found as a change with 80 % power.
    """

    name: str
    base: str | None
    runs: int
    changes: list[Change]
    drift: Drift | None
    found_from: float | None


def verdict_of(arms: list[ArmRow], rows: list[TrendRun], about: Metric, level: float) -> VerdictRow:
    """Return the verdict: a failure of the last run first, then the latest change, then drifts."""
    changes = sorted(
        ((one["run"], arm, one) for arm in arms for one in arm["changes"]), key=lambda row: row[0], reverse=True
    )
    sentences = [line for _, arm, one in changes for line in _of_change(arm, one, rows, about, level)]
    drifts = [(arm, arm["drift"]) for arm in arms if arm["drift"]]
    drifts.sort(key=lambda pair: pair[1]["step"] is None)
    sentences += [line for arm, one in drifts for line in _of_drift(arm, one, rows, about, level)]
    if failed := rows[-1]["failed"]:
        shares = ", ".join(f"{percent(share)} % of {name}'s" for name, share in failed.items())
        headline = f"{shares} transactions failed in the last run ({rows[-1]['run']})."
        return {"decision": NO_VERDICT, "headline": headline, "sentences": sentences}
    if not sentences:
        return _nothing_found(arms, rows)
    if changes:
        decision = direction(changes[0][2]["ratio"], about.higher_is_better)
    else:
        arm, drift = drifts[0]
        own = drift["step"] is not None or arm["base"] is not None
        decision = direction(drift["ratio"], about.higher_is_better) if own else "unclear"
    return {"decision": decision, "headline": sentences[0], "sentences": sentences[1:]}


def day(row: TrendRun) -> str:
    """Return the start of a run, to the minute."""
    return row["started_at"][:16].replace("T", " ")


def _of_change(arm: ArmRow, change: Change, rows: list[TrendRun], about: Metric, level: float) -> list[str]:
    by = change_of(change["ratio"], change["low"], change["high"], higher_is_better=about.higher_is_better)
    return [
        f"{arm['name']} is {by} in {about.label}{_base_text(arm)} since {day(rows[change['run']])} "
        f"({rows[change['run']]['run']}).",
        f"It began with {_first_runs(change, rows)} ({100 * level:g} %).",
    ]


def _of_drift(arm: ArmRow, drift: Drift, rows: list[TrendRun], about: Metric, level: float) -> list[str]:
    step = drift["step"]
    if step is not None:
        by = change_of(step["ratio"], step["low"], step["high"], higher_is_better=about.higher_is_better)
        return [
            f"{arm['name']} became {by} in {about.label}{_base_text(arm)}, in one step or by a slow drift: these runs "
            "cannot tell which.",
            f"If in one step, it began with {_first_runs(step, rows)} ({100 * level:g} %).",
        ]
    by = change_of(drift["ratio"], drift["low"], drift["high"], higher_is_better=about.higher_is_better)
    told = [f"{arm['name']} drifts: {by} in {about.label}{_base_text(arm)} from the first run to the last."]
    told.append("It did not change at one single run: a steady drift fits better than any step.")
    if arm["base"] is None:
        told.append("The machine may drift: with a base arm in the plan, the ratio would show it.")
    return told


def _base_text(arm: ArmRow) -> str:
    return f" against {arm['base']}" if arm["base"] else ""


def _first_runs(change: Change, rows: list[TrendRun]) -> str:
    """Return a text on the runs with which a change may have begun."""
    first, last = change["first"], change["last"]
    if first == last:
        return "only that run"
    return f"one of the runs from {day(rows[first])} to {day(rows[last])}"


def _nothing_found(arms: list[ArmRow], rows: list[TrendRun]) -> VerdictRow:
    counted = sum(row["comparable"] for row in rows)
    least = [arm["found_from"] for arm in arms if arm["found_from"]]
    if not least:
        few = f"{counted} {'run is' if counted == 1 else 'runs are'} too few for a trend."
        return {"decision": "unclear", "headline": few, "sentences": []}
    change = f"{(max(least) - 1) * 100:.2g}"
    would = f"A lasting change of about {change} % in the middle of them would be found four times out of five."
    return {"decision": "not found", "headline": f"No change found in {counted} runs.", "sentences": [would]}
