"""Checks for a base that drifted: its mean over the run then describes no state of the machine.

Arms alternate within blocks, so a drift that affects all arms alike does not change a ratio within a block. If arms are
judged one by one, each ratio to the base is checked for this (`gates_in_time.ratio_problem`). The levels of a factor
are compared in pairs, with intervals that are valid over the whole run (`stats/levels.py`); only a ratio that certainly
drifted withholds the verdict. An arm that left a race was not observed afterwards, so in a race a drift concerns the
whole run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbdyno.evidence.run import Run
from dbdyno.study.analysis.measured.evidence_kind import in_virtual_time
from dbdyno.study.analysis.measured.measures import Measures
from dbdyno.study.analysis.measured.timeline import timeline

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def block_starts_s(measures: Measures, run: Run) -> list[float]:
    """Return the start of each block that counts, from the start of the first [s]."""
    blocks = measures.arms[0].blocks
    known = timeline(blocks, run.manifest.resumed)
    return [known.begins_s[block.index] for block in blocks]


def times_if_base_drifted_s(measures: Measures, run: Run, headline: str) -> list[float] | None:
    """Return the start [s] of each block (or batch of blocks) if the base drifted by half or more, else None.

    A batch is used if one block is too short for the headline metric. The result is also None if the drift is not
    certain, or if the plan accepts it.
    """
    from dbdyno.stats.gates_in_time import drift

    if in_virtual_time(run) or "level" in run.manifest.plan["judge"].get("accept", []):
        return None
    at_s = block_starts_s(measures, run)
    if not drift("", measures.arms[0].values["mean"], at_s, is_level=True).withholds:
        return None
    return at_s[:: measures.batch_size(headline)]


def invalid_ratios(measures: Measures, headline: str, at_s: Sequence[float], threshold: float) -> dict[str, str]:
    """Return, for each compared arm, why its ratio to its base is not valid; the text is empty if it is valid."""
    from dbdyno.stats.gates_in_time import ratio_problem

    columns = _logs(measures, headline)
    return {
        arm.label: ratio_problem(
            arm.label, measures.arms[arm.base].label, columns[at] - columns[arm.base], at_s, threshold
        )
        for at, arm in measures.compared_arms()
    }


def moved_curve_arms(
    measures: Measures, groups: Sequence[Sequence[int]], headline: str, at_s: Sequence[float], threshold: float
) -> dict[str, str]:
    """Return, for each arm, how its ratio to another arm of its curve drifted; the text is empty if it did not."""
    from dbdyno.stats.gates_in_time import drift_clause, trend

    columns, said = _logs(measures, headline), {arm.label: "" for arm in measures.arms}
    pairs = [pair for arms in groups for pair in itertools.combinations(arms, 2)]
    for base, at in pairs:
        found = trend(columns[at] - columns[base], at_s)
        names = measures.arms[at].label, measures.arms[base].label
        why = drift_clause(*names, found, threshold, tests=len(pairs)) if found else ""
        said[names[0]] = said[names[0]] or why
    return said


def _logs(measures: Measures, headline: str) -> list[Array]:
    """Return the logarithm of each arm's headline metric by block, or of its mean time if blocks are too short."""
    import numpy as np

    name = headline if measures.batch_size(headline) == 1 else "mean"
    columns = [arm.values[name] for arm in measures.arms]
    return [np.log(np.where(column > 0, column, np.nan)) for column in columns]
