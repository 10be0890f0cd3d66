"""Causes of the difference between two sets of traces, in the form in which runs report their causes.

The account is closed: the effects of the causes and the rest add up to the difference of the response times. They are
facts about these traces, so they have no interval; the verdict says whether new traces would show the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.base.explanation import CausalExplanation, Cause, largest_causes, unexplained
from dbdyno.base.json_types import JsonObject
from dbdyno.study.analysis.traces.causes import Explanation


def explanation_of(explained: Explanation, reasons: Sequence[JsonObject], names: tuple[str, str]) -> CausalExplanation:
    """Return the explanation with the largest causes, from the rows that `reasons` returned."""
    before, after = explained.response_ns
    amount = after - before
    of = f"{names[1]} against {names[0]}"
    if not amount:
        return CausalExplanation(of, "ns", amount, before, after, arm=1, withheld="the response times are the same")
    every = [
        Cause(
            row["code"],
            row["about"],
            row["text"].partition(": ")[2],
            row["effect_ns"],
            share=row["effect_ns"] / amount,
            evidence=(f"times {row['times_ns']}, counts {row['counts']} (account, {row['about']})",),
        )
        for row in reasons
    ]
    named = largest_causes(every)
    left, share = unexplained(amount, named)
    held = "" if named else "no single cause explains a tenth of the difference"
    return CausalExplanation(
        of, "ns", amount, before, after, causes=named, rest=left, rest_share=share, arm=1, withheld=held
    )
