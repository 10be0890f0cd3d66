"""Verdict of a rehearsal: one word, one headline, and how each statement changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.rehearse.cause import Cause
from dbdyno.rehearse.decision import Decision, Total
from dbdyno.rehearse.rehearsed_statement import FAILS_ON_OLD
from dbdyno.rehearse.shortage import Shortage, duration_text

LEAST_JUDGED = 0.5
"""Minimum share of database time that must be decided; below it, there is no verdict on the total."""
UNCLEAR_MOST = 0.2
"""Maximum share of database time in unclear statements; above it, a regression cannot be excluded."""
_MATERIAL = 0.02


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict: decision, word and tone, headline, further sentences and the next step."""

    decision: str
    word: str
    tone: str
    headline: str
    sentences: tuple[str, ...] = ()
    next: str = ""


def judge(
    decisions: Sequence[Decision],
    total: Total,
    causes: Mapping[int, Cause],
    new: str,
    threshold: float,
    shortage: Shortage | None = None,
) -> Verdict:
    """Return the verdict; `new` names the new side, such as `17`; `shortage` describes what there was no time for."""
    count = len([one for one in decisions if one.word != "not rehearsed"])
    fails, differs, slower, unclear = (
        _decisions_of(decisions, word) for word in ("fails", "differs", "slower", "unclear")
    )
    failing = [one for one in decisions if one.item.reason.startswith(FAILS_ON_OLD)]
    if failing and len(failing) == len([one for one in decisions if one.item.statement.samples]):
        return Verdict("no verdict", *_WORDS["no verdict"], _all_fail(failing), (), _ALL_FAIL_NEXT)
    parts = [_total(total, new, shortage)]
    if slower:
        parts.append(_slower(slower, causes, count, threshold))
    if fails:
        of = "" if slower else f" of {count}"
        parts.append(f"{len(fails)}{of} {'fails' if len(fails) == 1 else 'fail'}")
    if differs:
        parts.append(f"{len(differs)} answer{'s' if len(differs) == 1 else ''} differently")
    if not (slower or fails or differs) and total.judged >= LEAST_JUDGED:
        parts += _quiet(count, len(unclear), threshold)
    if uncompared := len([one for one in decisions if one.word != "not rehearsed" and one.item.undetermined]):
        parts.append(f"{uncompared} answer{'' if uncompared == 1 else 's'} not compared")
    decision = "fails" if fails else "differs" if differs else "slower" if slower else ""
    decision = decision or _by_total(total, _share(unclear, decisions), threshold)
    word, tone = _WORDS[decision]
    step = _next_step([*fails, *differs, *slower], causes)
    if decision == "no verdict" and not step:
        step = shortage.next_step if shortage is not None else _UNCLEAR_NEXT if unclear else ""
    return Verdict(decision, word, tone, "; ".join(parts), tuple(_grounds(total, decisions, shortage)), step)


_ALL_FAIL_NEXT = (
    "check that OLD is a copy of the database that the load comes from, with its tables and its role's rights"
)


_UNCLEAR_NEXT = "give more time (--for), or rehearse while nothing else uses the machine"


def _quiet(count: int, unclear: int, threshold: float) -> list[str]:
    """Return sentences for a rehearsal in which no statement became worse: how many are decided, how many unclear."""
    decided = count - unclear
    parts = []
    if decided:
        which = f"the {decided} statements that were decided" if unclear else f"{decided} statements"
        parts.append(f"none of {which} is slower by more than {100 * threshold:.0f} %, fails or answers differently")
    if unclear:
        parts.append(f"{unclear} of {count} statements {'is' if unclear == 1 else 'are'} unclear")
    return parts


def _share(some: Sequence[Decision], decisions: Sequence[Decision]) -> float:
    """Return the share of these statements in the load's database time."""
    whole = sum(one.item.statement.total_ns for one in decisions)
    return sum(one.item.statement.total_ns for one in some) / whole if whole else float(bool(some))


def _all_fail(failing: Sequence[Decision]) -> str:
    first = max(failing, key=lambda one: one.item.statement.total_ns)
    reason = first.item.reason.removeprefix(FAILS_ON_OLD).lstrip(": ")
    return f"Every statement fails on the old server, so there is nothing to compare: {reason}"


def with_replay(verdict: Verdict, sentences: Sequence[str], *, is_worse: bool) -> Verdict:
    """Return the verdict including a replay's result; it is a regression if only the new side falls behind."""
    found = replace(verdict, sentences=(*sentences, *verdict.sentences))
    if not is_worse:
        return found
    headline = f"{sentences[0].rstrip('.')}; {verdict.headline}"
    if verdict.decision in ("fails", "differs", "slower"):
        return replace(found, headline=headline)
    word, tone = _WORDS["slower"]
    return replace(found, decision="slower", word=word, tone=tone, headline=headline)


_WORDS = {
    "fails": ("Fails", "bad"),
    "differs": ("Answers differ", "bad"),
    "slower": ("Regression", "bad"),
    "worse": ("Slower", "bad"),
    "better": ("Faster", "good"),
    "same": ("No regression", "good"),
    "no verdict": ("No verdict", "doubt"),
}


def _by_total(total: Total, unclear: float, threshold: float) -> str:
    """Return the decision if no statement became worse; `unclear` is the time share of unclear statements."""
    if total.judged < LEAST_JUDGED or math.isnan(total.ratio):
        return "no verdict"
    if total.low > 1 + _MATERIAL:
        return "worse"
    if total.high < 1 - _MATERIAL:
        return "better"
    return "same" if total.high < 1 + threshold and unclear <= UNCLEAR_MOST else "no verdict"


def _total(total: Total, new: str, shortage: Shortage | None) -> str:
    if math.isnan(total.ratio):
        return f"No statement could be timed{f': {shortage.spent}' if shortage is not None else ''}"
    if total.judged < LEAST_JUDGED:
        return f"Only {100 * total.judged:.0f} % of the database time could be judged"
    if total.low <= 1 <= total.high:
        return (
            f"No change of database time is certain ({_signed_percent(total.low)} to {_signed_percent(total.high)} %)"
        )
    if total.ratio >= 2:
        return f"{new} takes {_times(total.ratio)} the database time ({total.low:.1f} to {total.high:.1f})"
    word = "more" if total.ratio > 1 else "less"
    low, high = sorted(100 * abs(end - 1) for end in (total.low, total.high))
    return f"{new} takes {100 * abs(total.ratio - 1):.0f} % {word} database time ({low:.0f} to {high:.0f} %)"


def _signed_percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f}".replace("-", "\N{MINUS SIGN}")


def _slower(slower: Sequence[Decision], causes: Mapping[int, Cause], count: int, threshold: float) -> str:
    worst = max(slower, key=lambda one: one.ratio)
    said = f"{len(slower)} of {count} statements slower by more than {100 * threshold:.0f} %"
    cause = causes.get(worst.item.statement.number)
    which = "it" if len(slower) == 1 else "one of them"
    how = (
        f"{which} {_times(worst.ratio)} as slow" if worst.ratio >= 2 else f"{which} by {100 * (worst.ratio - 1):.0f} %"
    )
    return f"{said}, {how}{f': {cause.sentence}' if cause else ''}"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def _decisions_of(decisions: Sequence[Decision], word: str) -> list[Decision]:
    found = [one for one in decisions if one.word == word]
    return sorted(found, key=lambda one: (-one.added_ns, one.item.statement.number))


def _grounds(total: Total, decisions: Sequence[Decision], shortage: Shortage | None) -> list[str]:
    words = {
        word: len([one for one in decisions if one.word == word]) for word in ("faster", "unclear", "not rehearsed")
    }
    said = [f"Judged: {100 * total.judged:.0f} % of the load's database time."]
    if words["faster"]:
        said.append("1 statement is faster." if words["faster"] == 1 else f"{words['faster']} statements are faster.")
    if words["unclear"]:
        said.append(f"{words['unclear']} may be slower; the measurements are too few to tell: give more time (--for).")
    if words["not rehearsed"]:
        said.append(f"{words['not rehearsed']} were not rehearsed; the reasons are below.")
    if shortage is not None:
        said.append(
            f"There was no time for {shortage.count} of them: {shortage.spent}. At this pace all need"
            f" --for {duration_text(shortage.needed_s)}."
        )
    return said


def _next_step(first: Sequence[Decision], causes: Mapping[int, Cause]) -> str:
    found = ((one.item.statement.number, causes.get(one.item.statement.number)) for one in first)
    return next((f"statement {at}: {one.next}" for at, one in found if one is not None and one.next), "")
