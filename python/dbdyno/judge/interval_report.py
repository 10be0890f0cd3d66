"""Report of an interval whose title is its finding: a change within it, judged like two periods, or where time went.

The interval is cut where it changed most. The position of the cut was chosen from the same numbers, so a slower or
faster result for the same work is certain only if p is below 0.01. An uncertain change is not used as the title; its
causes remain in the section *What happened* as the largest difference inside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.snapshot.causes import ENGINES, change_at, change_of, cut_of
from dbdyno.snapshot.model import statement_beginning
from dbdyno.snapshot.reading.interval import Interval
from dbdyno.snapshot.reading.series import series
from dbdyno.snapshot.report import COMPLETE, report
from dbdyno.snapshot.wording import duration_text

if TYPE_CHECKING:
    from dbdyno.judge.verdict import Verdict

LEVEL = 0.01
THRESHOLD = 0.05
"""Smallest relative change inside an interval that is reported as a finding, although the user did not ask for one."""


def judged_report(interval: Interval, top: int) -> JsonObject:
    """Return the model of an interval's report, whose verdict has the finding as its title."""
    model = report(interval, top)
    verdict, inside = model["verdict"], _inside(interval)
    is_whole = verdict["word"] == COMPLETE
    verdict["title"] = inside.title if inside else _where_time_went(interval)
    if inside is not None:
        verdict["sentences"], verdict["next"] = list(inside.sentences), inside.next
        verdict["word"] = inside.word if is_whole else verdict["word"]
    if not is_whole and verdict["why"]:
        verdict["sentences"] = [f"{verdict['word']}: {verdict['why']}", *verdict.get("sentences", ())]
    return model


def _inside(interval: Interval) -> Verdict | None:
    """Return the verdict on a change inside an interval, or None if no change is certain."""
    at = cut_of(interval)
    if at is None:
        return None
    # Imported here, since most intervals are not cut.
    from dbdyno.judge.period_facts import facts_of
    from dbdyno.judge.verdict import LEAST_CHOSEN, Verdict, judge
    from dbdyno.snapshot.reading.active_rates import active_rates

    chain = interval.chain
    counts = at, len(chain) - 1 - at
    if min(counts) < LEAST_CHOSEN:
        return None
    sides = interval.halves(at)
    values = [series(interval.store, half.chain, half.sums).values for half in sides]
    looked = [active_rates(side) for side in sides]
    facts = facts_of(change_at(interval, at), looked, values, counts)
    found = judge(replace(facts, level=LEVEL, least=LEAST_CHOSEN), THRESHOLD)
    if found.word not in ("worse", "better"):
        return None
    word, _, rest = found.title.partition(": ")
    return Verdict(found.word, f"{word} since {chain[at].at_utc:%H:%M:%S} UTC: {rest}", found.sentences, found.next)


def _where_time_went(interval: Interval) -> str:
    """Return statement time per second and the statement that takes most of it; empty if statements were not read."""
    if interval.before.engine not in ENGINES:
        return ""
    change = change_of(interval, interval)
    every = [one for one in change.statements.values() if one.after.get("ms")]
    if not every:
        return ""
    first = max(every, key=lambda one: one.after["ms"])
    share = first.after["ms"] / change.spent_ms[1]
    spent = duration_text(change.spent_ms[1])
    return f"{spent} of statement time a second, {share:.0%} of it in {statement_beginning(first.text)}"
