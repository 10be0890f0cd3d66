"""The simple law that a curve follows: its parameters, a sentence about it, and points to draw its line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from dbdyno.study.analysis.contract.parts import LawPoint
from dbdyno.study.analysis.questions.level_sentences import number_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dbdyno.stats.laws import Law
    from dbdyno.stats.means import Estimate

Word = Callable[[float], str]
BENT = ("usl", "saturating")
"""Laws whose line is not straight between two levels."""
POINTS = 48
_FOUR: Word = "{:.4g}".format
_THREE: Word = "{:.3g}".format


class LawRow(TypedDict):
    """A fitted law; `drawn` has points to draw its line if it is a law of throughput with a bend."""

    law: str
    holds: bool
    farthest: float
    parameters: dict[str, dict[str, float]]
    sentence: str
    drawn: list[LawPoint]


def law_of(
    factor: str, xs: list[float], values: NDArray[np.float64], word: Word, *, level: float, is_load: bool, is_rate: bool
) -> LawRow | None:
    """Return the law of `values` (blocks by levels) at `xs`, or None if none can be fitted.

    `word` formats a position as text; `is_rate` means that the values are a throughput.
    """
    from dataclasses import asdict

    import numpy as np

    from dbdyno.stats.laws import fit_law

    found = fit_law(xs, values, is_load=is_load, level=level)
    if found is None:
        return None
    drawn: list[LawPoint] = []
    if found.holds and found.law in BENT and is_rate:
        places = np.geomspace(min(xs), max(xs), POINTS)
        drawn = [{"x": float(x), "per_s": float(y)} for x, y in zip(places, found.values_at(places), strict=True)]
    return {
        "law": found.law,
        "holds": found.holds,
        "farthest": found.farthest,
        "parameters": {name: asdict(own) for name, own in found.parameters.items()},
        "sentence": _law_sentence(factor, found, max(xs), word),
        "drawn": drawn,
    }


def _law_sentence(factor: str, law: Law, last: float, word: Word) -> str:
    if not law.holds:
        return f"no simple law fits: the nearest, {law.law}, misses a level by {100 * law.farthest:.0f} %"
    off = f"within {max(100 * law.farthest, 0.1):.2g} %"
    p = law.parameters
    if law.law == "usl":
        words = f"scalability law: {_range(p['g'], _FOUR)} a second with one, contention {_percent(p['s'])}, "
        words += f"coherence {_percent(p['k'])}"
        if math.isfinite(p["peak"].value):
            beyond = f", beyond the {last:g} that were run" if p["peak"].value > last else ""
            peak = f"{_THREE(p['peak'].value)} {factor}{_ends(p['peak'], _THREE)}"
            words += f"; most at {peak}{beyond}: {_range(p['most'], _FOUR)} a second"
        return f"{words} ({off})"
    if law.law == "saturating":
        where = number_text(factor, word(p["h"].value)) + _ends(p["h"], word)
        if p["h"].value > last:
            beyond = f"bends as if it saturated beyond the {word(last)} that were run"
            return f"{beyond}: half of its most at {where}, which is no measurement ({off})"
        return f"saturates: half of its most is reached at {where} ({off})"
    return {"constant": f"constant ({off})", "linear": f"a straight line over {factor} ({off})"}[law.law]


def _percent(estimate: Estimate) -> str:
    is_told = math.isfinite(estimate.high) and estimate.high > 0
    ends = f" ({100 * max(estimate.low, 0.0):.3g} to {100 * estimate.high:.3g} %)" if is_told else ""
    return f"{100 * estimate.value:.3g} %{ends}"


def _range(estimate: Estimate, word: Word = _THREE) -> str:
    return word(estimate.value) + _ends(estimate, word)


def _ends(estimate: Estimate, word: Word) -> str:
    return f" ({word(max(estimate.low, 0.0))} to {word(estimate.high)})" if math.isfinite(estimate.high) else ""
