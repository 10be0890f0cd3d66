"""Sentences on a curve: its best level, its knee and its course; and how a level is named in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dbdyno.stats.least_blocks import PROMISED_MOST
from dbdyno.stats.wording import change_of

if TYPE_CHECKING:
    from dbdyno.stats.levels import Levels

LOADS = ("sessions", "jobs", "threads", "processes", "clients", "workers", "builds")
"""Factors that count concurrent work; their curve may follow the Universal Scalability Law."""
_ONE = {name: name.removesuffix("es" if name == "processes" else "s") for name in LOADS}
_COUNTED = {**{name: (one, name) for name, one in _ONE.items()}, "fetch_size": ("row a fetch", "rows a fetch")}
"""Factors whose levels are counts of something, with its singular and plural."""


def level_text(factor: str, level: str) -> str:
    """Return a level for a sentence: `8 sessions`, `100 rows a fetch`, `work_mem 64MB`."""
    if _is_count(factor, level):
        return f"{level} {_COUNTED[factor][level != '1']}"
    return level if factor == "arm" else f"{factor} {level}"


def number_text(factor: str, number: str) -> str:
    """Return a value of a factor as text, even if it is not one of its levels: `2.5 sessions`, `rows 120`."""
    return f"{number} {_COUNTED[factor][1]}" if factor in _COUNTED else f"{factor} {number}"


def _is_count(factor: str, level: str) -> bool:
    return factor in _COUNTED and level.isdecimal()


def _does(factor: str, level: str, one: str, several: str) -> str:
    """Return the verb for the subject `level`, `one` or `several`: `1 session reaches`, `8 sessions reach`."""
    return several if _is_count(factor, level) and level != "1" else one


def span(factor: str, low: str, high: str, word: str = "and") -> str:
    """Return two levels for a sentence, with the factor named once: `1 and 8 sessions`, `rows 1 and 100`."""
    counts = _is_count(factor, low) and _is_count(factor, high)
    return f"{low} {word} {level_text(factor, high)}" if counts else f"{level_text(factor, low)} {word} {high}"


def is_conclusive(levels: Levels) -> bool:
    """Return True if the blocks are sufficient to say something about the course of the curve or its knee."""
    return levels.course != "unclear" or levels.knee_high - levels.knee_low < levels.means.size - 1


def sentence(factor: str, texts: list[str], levels: Levels, *, ordered: bool) -> str:
    """Return a sentence about a curve, conclusion first; `ordered` means that the factor's levels are numbers."""
    matters = f"{100 * levels.threshold:g} %"
    names = [level_text(factor, text) for text in texts]
    are = [f"{name} {_does(factor, text, 'is', 'are')}" for name, text in zip(names, texts, strict=True)]

    def times(at: int, base: int) -> str:
        ratio, low, high = levels.ratio_to(at, base)
        return change_of(ratio, low, high, higher_is_better=True)

    if not ordered:
        return _sentence_of_words(names, texts, levels, times)
    if levels.course == "flat":
        brings = _does(factor, texts[-1], "brings", "bring")
        return f"{span(factor, texts[0], texts[-1], 'to')} {brings} no difference larger than {matters}"
    if not is_conclusive(levels):
        last = "," if levels.best == len(texts) - 1 else f"; {are[-1]}"
        return (
            f"{levels.blocks} blocks cannot tell where {factor} is best: {are[levels.best]}, by the means{last} "
            f"{times(len(texts) - 1, 0)} against {texts[0]}"
            f"{_to_tell(names, texts, levels, levels.best, int(levels.means.argmin()))}"
        )
    low, high = levels.knee_low, levels.knee_high
    if low == high:
        return _knee(names, are, texts, levels, times)
    head = f"the knee lies between {span(factor, texts[low], texts[high])}; {are[levels.best]} best by the means"
    return (
        f"{head}, {times(levels.best, 0)} against {texts[0]}"
        if levels.best
        else f"{head}; {are[-1]} {times(len(texts) - 1, 0)} against {texts[0]}"
    )


def _knee(names: list[str], are: list[str], texts: list[str], levels: Levels, times: Callable[[int, int], str]) -> str:
    """Return the sentence on a curve whose knee is certain."""
    knee, last = levels.knee_low, len(texts) - 1
    reaches = f"{names[knee]} {'reach' if are[knee].endswith(' are') else 'reaches'}"
    if knee == last:
        grown = f"{times(last, 0)} against {texts[0]}"
        grown += f", {times(last, last - 1)} against {texts[-2]}" if last > 1 else ""
        return f"it still grows at {names[knee]}: {grown}"
    gained = f", {times(knee, 0)} against {texts[0]}" if knee else ""
    gained += f" and {times(knee, knee - 1)} against {texts[knee - 1]}" if knee > 1 else ""
    if float(levels.low[knee, last]) > math.log1p(levels.threshold):
        return f"{are[knee]} best{gained}; then it gets worse: {are[-1]} {times(last, knee)}"
    share = f"{100 * min(levels.share(knee), 1.0):.3g} % of the best"
    matters = f"{100 * levels.threshold:g} %"
    if float(levels.high[knee, knee + 1 :].max()) <= math.log1p(levels.threshold):
        return f"{reaches} {share}{gained}; more brings no difference larger than {matters}"
    # More certainly brings no gain; the blocks do not show whether it brings a loss.
    more = f"more brings no gain larger than {matters}: {are[-1]} {times(last, knee)}"
    return f"{reaches} {share}{gained}; {more}"


def _to_tell(names: list[str], texts: list[str], levels: Levels, at: int, other: int) -> str:
    """Return a clause on how many blocks would distinguish two levels whose difference is as observed.

    The clause is empty if the blocks already suffice or no number of blocks can be given.
    """
    needed = levels.blocks_to_tell(at, other)
    if needed is None or needed <= levels.blocks:
        return ""
    blocks = f"about {needed:,} blocks" if needed <= PROMISED_MOST else f"over {PROMISED_MOST:,} blocks, or less noise"
    return f"; to tell {names[at]} from {texts[other]} needs {blocks}"


def _sentence_of_words(names: list[str], texts: list[str], levels: Levels, times: Callable[[int, int], str]) -> str:
    """Return the sentence on levels that have no order: which level is best, or which levels may be the best."""
    limit, best = math.log1p(levels.threshold), levels.best
    may_be = [at for at in range(len(texts)) if float(levels.low[:, at].max()) <= limit]
    if levels.course == "flat":
        return f"{names[0]} or {', '.join(texts[1:])}: no difference larger than {100 * levels.threshold:g} %"
    if len(may_be) > 1:
        others = ", ".join(texts[at] for at in may_be if at != best)
        worst = min(range(len(texts)), key=lambda at: float(levels.means[at]))
        told = best == 0 or (worst == 0 and worst not in may_be)  # a comparison with the first level adds nothing
        near = max((at for at in may_be if at != best), key=lambda at: float(levels.means[at])) if told else 0
        head = f"{names[best]} has the best mean, {times(best, near)} against {texts[near]}; {others} may also be best"
        first = "" if worst in may_be else f"{names[worst]} is {times(worst, best)} against {texts[best]}; "
        return f"{first}{head}{_to_tell(names, texts, levels, best, near)}"
    second = max((at for at in range(len(texts)) if at != best), key=lambda at: float(levels.means[at]))
    behind = f" against {texts[second]}, the next" if second else f" against {texts[0]}"
    worst = min(range(len(texts)), key=lambda at: float(levels.means[at]))
    last = f"; {texts[worst]} is {times(worst, best)} against {texts[best]}" if len(texts) > 2 else ""
    return f"{names[best]} is best, {times(best, second)}{behind}{last}"
