"""Gates for replays of captures: whether every arm got the captured answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbdyno.stats.gates import Gate
    from dbdyno.study.analysis.measured.measures import Measures


def gates(measures: Measures) -> Iterator[Gate]:
    """Yield a gate for each arm that replayed a capture; none for other workloads."""
    from dbdyno.stats.gates_losses import answers_as_captured

    for arm in measures.arms:
        reports = [own for block in arm.blocks for own in block.report.get("arms", []) if own["arm"] == arm.number]
        rows = [own for own in reports if "answers" in own]
        if rows:
            differing, answers = (sum(own[key] for own in rows) for key in ("answers_differ", "answers"))
            first = next((own["answers_told"] for own in rows if own["answers_told"]), None)
            yield answers_as_captured(arm.label, differing, answers, first)
