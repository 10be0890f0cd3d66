"""Analysis of a sweep: throughput and time as functions of one factor, with one curve per setting.

The factor on the axis is the one with the most levels, preferably the sessions (`factors.axis_of`). The curves are
named after all other differences between the arms. Intervals are over blocks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.evidence.manifest import ArmRecord
from dbdyno.evidence.run import Run
from dbdyno.study.analysis.contract.parts import Sweep, SweepPoint
from dbdyno.study.analysis.contract.rows import Model, VerdictRow
from dbdyno.study.analysis.measured.evidence_kind import reads
from dbdyno.study.analysis.measured.measures import ArmMeasures, Measures
from dbdyno.study.analysis.questions import factors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SESSIONS = "sessions"


def add(model: Model, measures: Measures, run: Run, headline: str) -> None:
    """Add the curves and the resulting verdict to the model."""
    planned = factors.levels_of(run)
    every = planned or [set_by(own) for own in run.manifest.arms]
    asked = run.manifest.plan["judge"].get("factor")
    axis, names = axes(every, asked if planned else None)
    places, words = _places([own[axis] for own in every])
    level = run.manifest.plan["judge"]["level"]
    curves: dict[str, list[SweepPoint]] = {}
    for at, arm in enumerate(measures.arms):
        curves.setdefault(names[at], []).append(_point(at, places[at], arm, level))
    for points in curves.values():
        points.sort(key=lambda point: point["x"])
    model["figures"]["sweep"] = {
        "x_label": axis.rpartition(".")[2].replace("_", " "),
        "operation": measures.arms[0].operation,
        "curves": [{"name": name, "points": points} for name, points in curves.items()],
    }
    if words:
        model["figures"]["sweep"]["x_words"] = words
    model["figures"] |= {"distribution": [], "quantile_ratio": [], "tail": []}
    if planned:
        factors.add(model, measures, run, headline)
        _laws(model["figures"]["sweep"], model["factors"]["curves"])
    else:
        model["verdict"] = _verdict(model["figures"]["sweep"])
    model["verdict"]["sentences"] += _limits(run)


def _laws(sweep: Sweep, curves: list[Mapping[str, Any]]) -> None:
    """Add to each curve of the sweep the law that it follows, so that the figure shows it."""
    drawn = {
        frozenset(row["arm"] for row in curve["levels"]): (curve["law"] or {}).pop("drawn", []) for curve in curves
    }
    for curve in sweep["curves"]:
        if points := drawn.get(frozenset(point["arm"] for point in curve["points"])):
            curve["law"] = points


def set_by(arm: ArmRecord) -> dict[str, str]:
    """Return what an arm of a manifest sets, including sessions."""
    return {**arm["changes"], SESSIONS: str(arm["sessions"])}


def axes(every: list[dict[str, str]], asked: str | None = None) -> tuple[str, list[str]]:
    """Return the factor of the horizontal axis, and the name of each arm's curve.

    `every` has the levels of each arm; `asked` is the factor that the plan names.
    """
    keys = list(dict.fromkeys(key for own in every for key in own))
    varying = [key for key in keys if len({own.get(key) for own in every}) > 1]
    axis = asked or factors.axis_of(every)
    others = [key for key in varying if key != axis]
    names = [", ".join(f"{key.rpartition('.')[2]} {own.get(key)}" for key in others) for own in every]
    return axis, [name or "all" for name in names]


def _places(levels: list[str]) -> tuple[list[float], list[str] | None]:
    """Return the position of each arm on the axis, and the words on the axis, or None if it has numbers.

    The position is the level's number. If not all levels are numbers above 0, the axis has words, and the position is
    the index of the word.
    """
    numbers = factors.numbers_of(levels)
    if numbers is not None and min(numbers) > 0:
        return numbers, None
    words = list(dict.fromkeys(levels))
    return [words.index(level) + 1.0 for level in levels], words


def _point(at: int, x: float, arm: ArmMeasures, level: float) -> SweepPoint:
    rate, mean = arm.values["throughput"], arm.values["mean"]
    middle, low, high = _interval(rate, level)
    mean_middle, mean_low, mean_high = _interval(mean, level)
    return {
        "arm": at,
        "x": x,
        "per_s": middle,
        "per_s_low": low,
        "per_s_high": high,
        "mean_ns": mean_middle,
        "mean_low_ns": mean_low,
        "mean_high_ns": mean_high,
    }


def _interval(values: NDArray[np.float64], level: float) -> tuple[float, float, float]:
    """Return the geometric mean over blocks with Student's interval of the logarithms."""
    import numpy as np

    from dbdyno.stats.means import mean_interval

    middle, low, high = mean_interval(np.log(values[np.isfinite(values) & (values > 0)]), level)
    return math.exp(middle), math.exp(low), math.exp(high)


def _verdict(sweep: Sweep) -> VerdictRow:
    """Return the verdict: the best curve compared with the first at the highest load, and where each stops growing."""
    from dbdyno.stats.wording import duration

    curves = sweep["curves"]
    ends = [curve["points"][-1] for curve in curves]
    best = max(range(len(curves)), key=lambda at: ends[at]["per_s"])
    x, label = ends[best]["x"], sweep["x_label"]
    factor = ends[best]["per_s"] / ends[0]["per_s"]
    if len(curves) == 1 or best == 0:
        headline = f"At {x:g} {label}: {ends[best]['per_s']:.4g} a second, {curves[best]['name']}."
    else:
        fold = "as much" if f"{factor:.3g}" == "1" else f"{factor:.3g} times as much"
        headline = f"At {x:g} {label} {curves[best]['name']} does {fold} as {curves[0]['name']}."
    sentences = [
        f"{curve['name']}: {end['per_s']:.4g} a second at {end['x']:g} {label}, "
        f"{duration(end['mean_ns'])} each; {_knee(curve['points'], label)}."
        for curve, end in zip(curves, ends, strict=True)
    ]
    return {"decision": "found", "headline": headline, "sentences": sentences}


def _knee(points: list[SweepPoint], label: str) -> str:
    """Return a text on the point from which there is no further gain in throughput."""
    most = max(point["per_s"] for point in points)
    at = next(point["x"] for point in points if point["per_s"] >= 0.95 * most)
    if at == points[-1]["x"]:
        return "still growing there"
    return f"within 5 % of its maximum from {at:g} {label} on"


def _limits(run: Run) -> list[str]:
    if "limits" not in reads(run).parts:
        return []
    machine = run.manifest.machine
    from dbdyno.model.limits import sentences
    from dbdyno.model.machine import parse_machine

    return sentences(
        parse_machine(machine["target"], machine["toml"]), [arm["settings"] for arm in run.manifest.plan["arms"]]
    )
