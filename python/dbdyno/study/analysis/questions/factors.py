"""Analysis of a plan's factors: the best level, the knee and the course of each curve; interactions of two factors.

A curve is one factor at fixed levels of the others. All comparisons of a run hold jointly at the confidence level: 1 -
level is divided equally among the curves, and within a curve equally among its pairs of levels (`stats/levels.py`).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dbdyno.base.decisions import PROVISIONAL
from dbdyno.base.json_types import JsonObject
from dbdyno.evidence.run import Run
from dbdyno.stats.gates import enough_blocks
from dbdyno.stats.wording import change_of, duration, size
from dbdyno.study.analysis.checks.base_level import times_if_base_drifted_s
from dbdyno.study.analysis.contract.rows import ArmRow, JudgeRow, Model, VerdictRow
from dbdyno.study.analysis.measured.measures import Measures
from dbdyno.study.analysis.questions.laws import LawRow, law_of
from dbdyno.study.analysis.questions.level_sentences import LOADS, is_conclusive, level_text, sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.stats.levels import Interaction, Levels

    Array = NDArray[np.float64]

_SIZES = {unit + end: 1 << 10 * at for at, unit in enumerate(("", "k", "m", "g", "t")) for end in ("b", "ib")[: at + 1]}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_WORDS: dict[str, Callable[[float], str]] = {
    "number": "{:.3g}".format,
    "size": size,
    "time": lambda seconds: duration(seconds * 1e9),
}
_OURS = {"the", "it", "at", "whether", "no", "scalability", "saturates", "bends", "constant", "a", "sessions"}
"""Words with which dbdyno's own sentences begin; a sentence with another first word keeps that word's case."""
_DRIFTED = (
    "The base drifted by half or more during the run: levels that are called different, or alike, are so from its "
    "beginning to its end, and intervals are as wide as that takes."
)
_NUMBER = re.compile(r"\s*([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def levels_of(run: Run) -> list[dict[str, str]]:
    """Return the level of each factor for each arm; empty if the plan has no factors."""
    plan = run.manifest.plan
    return [arm["levels"] for arm in plan["arms"]] if plan.get("factors") else []


def curves_of(run: Run) -> list[list[int]]:
    """Return the indexes of the arms of each curve."""
    names = list(run.manifest.plan.get("factors") or [])
    return [arms for _, _, arms in _groups(levels_of(run), names)]


def numbers_of(levels: list[str]) -> list[float] | None:
    """Return the levels as numbers if all are numbers, sizes or durations of one kind; else None.

    >>> numbers_of(["64kB", "4MB"])
    [65536.0, 4194304.0]
    """
    return next((numbers for _, numbers in _read(levels)), None)


def _read(levels: list[str]) -> Iterator[tuple[str, list[float]]]:
    """Yield the levels as numbers, with their kind: `number`, `size` [bytes] or `time` [s]."""
    found = [_NUMBER.fullmatch(level) for level in levels]
    units = [one[2].lower() if one else "?" for one in found]
    for kind, known in (("number", {"": 1.0}), ("size", _SIZES), ("time", _TIMES)):
        if all(unit in known for unit in units):
            yield kind, [float(one[1]) * known[unit] for one, unit in zip(found, units, strict=True) if one]


def add(model: Model, measures: Measures, run: Run, headline: str) -> None:
    """Add `factors` and the resulting verdict to the model."""
    from dbdyno.base.errors import StatsError
    from dbdyno.stats.levels import compare_levels
    from dbdyno.stats.metrics import metric_named

    about, judge = levels_of(run), run.manifest.plan["judge"]
    metric, names = metric_named(headline), list(run.manifest.plan["factors"])
    values = _larger_is_better(measures, headline, metric.higher_is_better)
    drifted = times_if_base_drifted_s(measures, run, headline)
    at_s = None if drifted is None else drifted[: len(values)]
    groups = list(_groups(about, names))
    level = 1 - (1 - judge["level"]) / max(len(groups), 1)
    curves, comparisons, blocks = [], 0, len(values)
    for factor, held, arms in groups:
        try:
            found = compare_levels(values[:, arms], threshold=judge["threshold"], level=level, at_s=at_s)
        except StatsError:
            continue
        own = _curve(factor, held, arms, about, found)
        comparisons, blocks = comparisons + found.pairs, min(blocks, found.blocks)
        own["where"] = _held_levels(own)
        own["law"] = _law(own, measures, values, judge["level"], headline)
        curves.append(own)
    axis = judge.get("factor") or axis_of(about)
    acting = list(_interactions(about, names, values, judge, at_s))
    model["factors"] = {
        "names": names,
        "axis": axis,
        "metric": headline,
        "label": metric.label,
        "unit": metric.unit,
        "level": judge["level"],
        "comparisons": comparisons,
        "curves": curves,
        "interactions": acting,
    }
    _fill(model["factors"], model["arms"], headline)
    model["factors"]["answer"] = _answer(_of_axis(model["factors"]))
    model["verdict"] = verdict = _verdict(model["factors"], judge)
    if at_s is not None:
        verdict["sentences"].append(_DRIFTED)
    if verdict["decision"] == "found" and enough_blocks(blocks, judge["level"]).ok is False:
        verdict["decision"] = PROVISIONAL


def _larger_is_better(measures: Measures, headline: str, higher: bool) -> Array:
    """Return the headline metric as an array of blocks by arms, inverted if smaller values are better."""
    import numpy as np

    columns = measures.metric(headline)
    n = min(len(column) for column in columns)
    table = np.column_stack([column[:n] for column in columns])
    with np.errstate(divide="ignore", invalid="ignore"):
        return table if higher else 1.0 / table


def _groups(about: list[dict[str, str]], names: list[str]) -> Any:
    """Yield each curve: its factor, the fixed levels of the other factors, and its arms (at least two) by level."""
    for factor in names:
        order = {level: None for own in about for level in [own[factor]]}
        ranked = {level: at for at, level in enumerate(order)}
        numeric = numbers_of(list(order))
        if numeric is not None:
            ranked = {level: at for at, (_, level) in enumerate(sorted(zip(numeric, order, strict=True)))}
        by: dict[tuple[str, ...], list[int]] = {}
        for arm, own in enumerate(about):
            by.setdefault(tuple(own[name] for name in names if name != factor), []).append(arm)
        for held, arms in by.items():
            if len(arms) > 1:
                others = dict(zip((name for name in names if name != factor), held, strict=True))
                yield factor, others, sorted(arms, key=lambda arm: ranked[about[arm][factor]])


def axis_of(every: list[dict[str, str]]) -> str:
    """Return the factor whose curves are reported first and drawn; `every` has the levels of each arm.

    Factors whose levels are numbers come first, then those with the most levels. Of two that are equal in this, it is
    the sessions or, failing that, the later one.
    """
    keys = list(dict.fromkeys(key for own in every for key in own))
    levels = {key: {own.get(key, "") for own in every} for key in keys}

    def rank(at: int) -> tuple[bool, int, bool, int]:
        own = levels[keys[at]]
        return (len(own) > 1 and numbers_of(list(own)) is not None, len(own), keys[at] == "sessions", at)

    return keys[max(range(len(keys)), key=rank)]


def _curve(
    factor: str, held: dict[str, str], arms: list[int], about: list[dict[str, str]], levels: Levels
) -> dict[str, object]:
    texts = [about[arm][factor] for arm in arms]
    numbers = numbers_of(texts)
    rows = []
    for at, (arm, text) in enumerate(zip(arms, texts, strict=True)):
        ratio, low, high = levels.ratio_to(at, 0)
        rows.append(
            {
                "arm": arm,
                "level": text,
                "x": None if numbers is None else numbers[at],
                "share": levels.share(at),
                "ratio": ratio,
                "low": low,
                "high": high,
            }
        )
    varies = {name: level for name, level in held.items() if len({own[name] for own in about}) > 1}
    return {
        "factor": factor,
        "held": varies,
        "levels": rows,
        "best": levels.best,
        "knee": levels.knee,
        "knee_low": levels.knee_low,
        "knee_high": levels.knee_high,
        "course": levels.course,
        "ordered": numbers is not None,
        "may_be_best": [
            at for at in range(len(arms)) if float(levels.low[:, at].max()) <= math.log1p(levels.threshold)
        ],
        "told": is_conclusive(levels),
        "sentence": sentence(factor, texts, levels, ordered=numbers is not None),
    }


def _law(curve: Mapping[str, Any], measures: Measures, values: Array, level: float, headline: str) -> LawRow | None:
    """Return the law that a curve with numeric levels follows; if the factor is a load, the law is for throughput."""
    xs = [row["x"] for row in curve["levels"]]
    if None in xs:
        return None
    arms, is_load = [row["arm"] for row in curve["levels"]], curve["factor"] in LOADS
    given = _larger_is_better(measures, "throughput", True) if is_load else values
    kinds = [kind for kind, _ in _read([row["level"] for row in curve["levels"]])]
    word = _WORDS[kinds[0]] if kinds else "{:.3g}".format
    is_rate = is_load or headline == "throughput"
    return law_of(curve["factor"], xs, given[:, arms], word, level=level, is_load=is_load, is_rate=is_rate)


def _interactions(
    about: list[dict[str, str]], names: list[str], values: Array, judge: JudgeRow, at_s: list[float] | None
) -> Any:
    """Yield an entry for each pair of factors of which all combinations ran; other factors are at their first level."""
    import numpy as np

    from dbdyno.stats.levels import interaction

    pairs = list(itertools.combinations(names, 2))
    level = 1 - (1 - judge["level"]) / max(len(pairs), 1)
    places = {tuple(own[name] for name in names): arm for arm, own in enumerate(about)}
    base = about[0]
    for one, other in pairs:
        mine, yours = (list(dict.fromkeys(own[name] for own in about)) for name in (one, other))
        table = [[places.get(tuple({**base, one: a, other: b}[name] for name in names)) for b in yours] for a in mine]
        arms = [[arm for arm in row if arm is not None] for row in table]
        if min(len(mine), len(yours)) < 2 or arms != table or values.shape[0] < 2:
            continue
        found = interaction(values[:, np.array(arms)], threshold=judge["threshold"], level=level, at_s=at_s)
        yield {
            "one": one,
            "other": other,
            "levels": mine,
            "base": yours[found.base],
            "to": yours[found.to],
            "effects": list(found.effects),
            "apart": found.apart,
            "low": found.low,
            "high": found.high,
            "certain": found.is_certain,
            "none": found.is_none,
            "sentence": _interaction_text(one, other, mine, yours, found),
        }


def _interaction_text(first: str, second: str, mine: list[str], yours: list[str], interaction: Interaction) -> str:
    step = f"{level_text(second, yours[interaction.to])} instead of {yours[interaction.base]}"
    least, most = (
        f"{change_of(interaction.effects[at], higher_is_better=True)} at {level_text(first, mine[at])}"
        for at in (interaction.least, interaction.most)
    )
    if interaction.is_none:
        return f"{first} and {second} do not interact: {step} is {most}, and about as much at every {first}"
    if interaction.is_certain:
        return f"{first} and {second} interact: {step} is {least} and {most}"
    return f"it is not known whether {first} and {second} interact: {step} is {least}, {most}"


def _fill(factors: Mapping[str, Any], arms: list[ArmRow], headline: str) -> None:
    """Add the value of the headline metric to each level, as in the table of arms."""
    for curve in factors["curves"]:
        for row in curve["levels"]:
            arm = arms[row["arm"]]
            plain = {"throughput": arm["throughput_per_s"], "mean": arm["mean_ns"]}
            row["value"] = plain[headline] if headline in plain else arm["quantiles_ns"].get(headline)


def _of_axis(factors: JsonObject) -> list[JsonObject]:
    """Return the curves of the axis factor; conclusive curves come first."""
    own = [curve for curve in factors["curves"] if curve["factor"] == factors["axis"]]
    return sorted(own, key=lambda curve: not curve["told"])


def _answer(own: list[JsonObject]) -> dict[str, int] | None:
    """Return the two arms that the headline is about.

    These are the arms of the first and the best level of the first curve or, if the first level is the best, of the
    first and the worst level.
    """
    if not own:
        return None
    levels, best = own[0]["levels"], own[0]["best"]
    other = best or min(range(len(levels)), key=lambda at: levels[at]["share"])
    return {"arm": levels[other]["arm"], "base": levels[0]["arm"]}


def _verdict(factors: JsonObject, judge: JudgeRow) -> VerdictRow:
    """Return the verdict, starting with the curves of the axis factor; it is "unclear" if no curve is conclusive."""
    own = _of_axis(factors)
    if not own:
        return {"decision": "unclear", "headline": "No factor has two levels to compare.", "sentences": []}
    told = [_curve_sentence(curve, len(own) > 1) for curve in own]
    others = [
        _curve_sentence(curve, True)
        for curve in factors["curves"]
        if curve["factor"] != factors["axis"] and not curve["held"]
    ]
    acting = [_capital(one["sentence"]) + "." for one in factors["interactions"]]
    laws = [
        _sentence(curve, curve["law"]["sentence"])
        for curve in own
        if curve["law"] and curve["law"]["law"] != "constant"
    ]
    count = factors["comparisons"]
    held = f"All {count} comparisons hold {100 * judge['level']:g} % together." if count > 1 else ""
    sentences = [*told[1:], *acting, *laws, *(others if len(factors["names"]) > 1 and not acting else []), held]
    decision = "found" if any(curve["told"] for curve in own) else "unclear"
    return {"decision": decision, "headline": told[0], "sentences": [one for one in sentences if one]}


def _held_levels(curve: Mapping[str, Any]) -> str:
    held = ", ".join(level_text(name, level) for name, level in curve["held"].items())
    return f"at {held}" if held else ""


def _curve_sentence(curve: Mapping[str, Any], several: bool) -> str:
    return _sentence(curve, curve["sentence"]) if several else _capital(curve["sentence"]) + "."


def _sentence(curve: Mapping[str, Any], said: str) -> str:
    return _capital(f"{curve['where']}: {said}" if curve["where"] else said) + "."


def _capital(text: str) -> str:
    """Return a sentence with a capital first letter, unless it begins with a name of the user's or the engine's."""
    return text[:1].upper() + text[1:] if text.split(" ", 1)[0].rstrip(":") in _OURS else text
