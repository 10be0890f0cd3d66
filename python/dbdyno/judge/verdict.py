"""The verdict of two periods: what users wait for, in one word and one title.

It rests on database time for the same work (`same_work.py`), blocked time and failed work (`waiting.py`), and work that
was added (`more_work.py`). Everything else that changed is a finding, and no verdict. Throughput is the load that is
offered, so more or less of it is neither better nor worse, unless the load comes from a closed loop.

A difference counts from 1 % of database time on (blocked time, added work) or from the threshold on (the same work).
What is called equal is bounded: "no change larger than 5 %" holds the whole 95 % interval. Where the interval reaches
beyond 20 %, the verdict is withheld.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dbdyno.judge.more_work import Added
from dbdyno.judge.next_steps import next_step
from dbdyno.judge.same_work import SameWork
from dbdyno.judge.waiting import Blocked, Failed
from dbdyno.snapshot.causes.change import Cause
from dbdyno.snapshot.wording import span, three

MATERIAL = 0.01
"""From such a part of database time on a difference counts in the verdict."""
BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""What "no change larger than" may say; beyond the last the verdict is withheld."""
APART = 1.5
"""From so many times the time for the same work on, a direct cause with half of it is enough for a verdict."""
LEAST_BLOCKED = 0.01
"""Sessions that wait for a lock, on average, below which blocked time counts for nothing."""
LEAST, LEAST_CHOSEN = 5, 3
"""Sub-intervals that a period needs to be judged by, and either part of an interval that was cut where it changed."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a verdict of two periods rests on. `unread`: why the time of statements is not known, where it is not;
    `spent_ms`: statement time a second; `calls`: statements a second; `closed`: the decision on throughput, where
    the load is a closed loop; `level`: below which p a change of the same work is certain."""

    counts: tuple[int, int]
    work: SameWork | None = None
    blocked: Blocked | None = None
    failed: Failed | None = None
    added: Added | None = None
    causes: Sequence[Cause] = ()
    shares: Sequence[float | None] = ()
    spent_ms: tuple[float, float] = (0.0, 0.0)
    calls: tuple[float, float] = (0.0, 0.0)
    unread: str = ""
    closed: str = ""
    level: float = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, a title that is the finding, sentences below it, and what to do next."""

    word: str
    title: str
    sentences: tuple[str, ...] = field(default=())
    next: str = ""

    def as_dict(self) -> dict[str, object]:
        """As it is in a model; `why` is the title without its first word."""
        why = self.title.partition(": ")[2] or self.title
        return {
            "word": self.word,
            "title": self.title,
            "why": why,
            "sentences": list(self.sentences),
            "next": self.next,
        }


def judge(facts: Facts, threshold: float) -> Verdict:
    """Return the verdict: the gravest that holds."""
    for rule in (_slower, _blocked, _failed, _more_work, _closed_loop):
        found = rule(facts, threshold)
        if found is not None:
            return found
    if min(facts.counts) < LEAST:
        few = f"{facts.counts[0]} and {facts.counts[1]} sub-intervals are too few: {LEAST} each are the least"
        return Verdict("cannot tell", f"Cannot tell: {few}", next="take more snapshots: dbdyno snap watch --every 10s")
    if facts.work is None:
        unread = facts.unread or "no statement ran often enough in both periods"
        return Verdict("cannot tell", f"Cannot tell: {unread}", _load(facts), _to_read(facts))
    return _faster(facts, threshold) or _equal(facts, facts.work)


def _slower(facts: Facts, threshold: float) -> Verdict | None:
    """The same work takes longer: for certain; or much longer, with a direct cause of half of it."""
    work = facts.work
    if work is None:
        return None
    certain = work.p < facts.level and work.ratio > 1 + threshold and min(facts.counts) >= LEAST
    if not certain and not (work.ratio >= APART and _explained(facts) >= 0.5):
        return None
    grown = max(facts.spent_ms[1] - facts.spent_ms[0], 0.0) or sum(work.gains.values())
    title = _titled("Slower", facts, grown) or f"Slower: the same statements take {_times(work)}"
    return Verdict("worse", title, (*_who(facts), _same_work(work), *_load(facts)), _next(facts))


def _blocked(facts: Facts, threshold: float) -> Verdict | None:
    """Sessions wait for locks that did not before."""
    del threshold
    blocked = facts.blocked
    if blocked is None or not blocked.certain:
        return None
    if blocked.grown < max(MATERIAL * facts.spent_ms[0] / 1000, LEAST_BLOCKED):
        return None
    lock = next((one for one in facts.causes if one.code == "lock"), None)
    words = lock.words if lock else "sessions wait for each other's locks"
    more = max(blocked.active[1] - blocked.active[0], blocked.grown)
    title = f"Slower: {words} ({blocked.share:.0%} of +{span(1000 * more)} a second)"
    said = (lock.evidence,) if lock and lock.evidence else ()
    return Verdict("worse", title, (*said, *_work_line(facts), *_load(facts)), next_step("lock"))


def _failed(facts: Facts, threshold: float) -> Verdict | None:
    del threshold
    one = facts.failed
    if one is None or not one.certain:
        return None
    title = f"More work fails: {one.after:.1%} of transactions are rolled back, {one.before:.1%} before"
    return Verdict("worse", title, (*_who(facts), *_work_line(facts), *_load(facts)), next_step("failed"))


def _more_work(facts: Facts, threshold: float) -> Verdict | None:
    """Statements that are new or called out of proportion take time that nobody asked for before."""
    added = facts.added
    if added is None or added.ms < max(threshold, MATERIAL) * facts.spent_ms[0]:
        return None
    what = _first_of(facts, {"statement", "calls"}) or f"{_text(added)}"
    title = f"More work: {what} ({added.share:.0%} of +{span(added.ms)} a second)"
    calls = [one.get("calls", 0.0) for one in (added.statement.before, added.statement.after)]
    line = f"It is called {three(calls[1])} times a second, {three(calls[0])} before; the others {_fold(added.usual)}."
    return Verdict("worse", title, (line, *_work_line(facts), *_load(facts)), next_step("statement"))


def _closed_loop(facts: Facts, threshold: float) -> Verdict | None:
    """In a closed loop throughput is an answer of the server."""
    del threshold
    if facts.closed != "worse":
        return None
    title = (
        _titled("Slower", facts, facts.spent_ms[1] - facts.spent_ms[0]) or "Slower: throughput of the closed loop fell"
    )
    return Verdict("worse", title, (*_who(facts), *_work_line(facts)), _next(facts))


def _faster(facts: Facts, threshold: float) -> Verdict | None:
    work = facts.work
    better = work is not None and work.p < facts.level and work.ratio < 1 / (1 + threshold)
    if work is None or not (better or facts.closed == "better"):
        return None
    title = f"Faster: the same statements take {_times(work)}"
    return Verdict("better", title, (_same_work(work), *_changed(facts), *_load(facts)))


def _equal(facts: Facts, work: SameWork) -> Verdict:
    reach = max(work.high - 1, 1 - work.low)
    bound = next((one for one in BOUNDS if reach <= one), None)
    figures = f"95 % {_signed(work.low)} to {_signed(work.high)} %"
    said = (*_not_sampled(facts), *_changed(facts), *_load(facts))
    if bound is None:
        title = f"Cannot tell: database time for the same work may have changed by {_signed(work.low)} to"
        return Verdict("cannot tell", f"{title} {_signed(work.high)} %", (_to_tell(work), *said))
    title = f"No change larger than {bound:.0%} in database time for the same work ({figures})".replace("%", " %", 1)
    return Verdict("ok", title.replace("  %", " %"), said)


def _explained(facts: Facts) -> float:
    """The share of the first direct cause that has one."""
    found = (share for one, share in zip(facts.causes, facts.shares, strict=True) if one.direct and share is not None)
    return next(found, 0.0)


def _titled(word: str, facts: Facts, grown_ms: float) -> str:
    """The first cause with its share of the change; empty without a cause."""
    if not facts.causes:
        return ""
    first, share = facts.causes[0], facts.shares[0]
    words = f"{first.words.removeprefix('slower: ')} takes longer" if first.code == "slower" else first.words
    of = f"+{span(grown_ms)} a second" if grown_ms > 0 else ""
    amount = f" ({share:.0%} of {of})" if share is not None and of else f" ({of})" if of else ""
    return f"{word}: {words}{amount}"


def _first_of(facts: Facts, codes: set[str]) -> str:
    return next((one.words for one in facts.causes if one.code in codes), "")


def _text(added: Added) -> str:
    kind = "a new statement" if added.is_new else "more calls of a statement"
    return f"{kind}: {' '.join(added.statement.text.split())[:60]}"


def _who(facts: Facts) -> tuple[str, ...]:
    """What is seen of the first cause, since when, and settings that changed beside it."""
    if not facts.causes:
        return ("No rule found a cause.",)
    first = facts.causes[0]
    said = [first.evidence, f"since {first.when.removeprefix('before ')} at the latest" if first.when else ""]
    return (*filter(None, said), *_changed(facts, beside=first))


def _changed(facts: Facts, beside: Cause | None = None) -> tuple[str, ...]:
    """Settings that changed between the periods."""
    names = [one.words.removeprefix("setting ") for one in facts.causes if one.code == "setting" and one is not beside]
    return (f"Changed between the periods: {'; '.join(names[:3])}",) if names else ()


def _work_line(facts: Facts) -> tuple[str, ...]:
    return (_same_work(facts.work),) if facts.work is not None else ()


def _same_work(work: SameWork) -> str:
    figures = f"{_fold(work.ratio)}, 95 % {three(work.low)} to {three(work.high)}"
    return f"Database time for the same work: {figures}; {work.covered:.0%} of statement time judged."


def _times(work: SameWork) -> str:
    change = (work.ratio - 1) * 100
    figures = f"95 % {_signed(work.low)} to {_signed(work.high)} %"
    if work.ratio >= 2:
        return f"{three(work.ratio)} times as long (95 % {three(work.low)} to {three(work.high)})"
    return f"{abs(change):.3g} % {'longer' if change > 0 else 'less time'} ({figures})"


def _fold(ratio: float) -> str:
    return f"{three(ratio)} times as much" if ratio >= 0.01 else "almost none"


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2g}".replace("-", "−")


def _load(facts: Facts) -> tuple[str, ...]:
    old, new = facts.calls
    if not old and not new:
        return ()
    return (f"Load: {three(old)} statements a second, then {three(new)}.",)


def _to_tell(work: SameWork) -> str:
    """How many sub-intervals would bound the change by the largest bound."""
    half = math.log(work.high / work.low) / 2
    wanted = math.log(1 + BOUNDS[-1])
    count = math.ceil(min(work.counts) * max(half / wanted, 1.2) ** 2)
    return f"About {count} sub-intervals in each period would tell a change of {BOUNDS[-1]:.0%}."


def _not_sampled(facts: Facts) -> tuple[str, ...]:
    return () if facts.blocked is not None else ("Waits for locks are not known: sessions were not sampled.",)


def _next(facts: Facts) -> str:
    return next_step(facts.causes[0].code if facts.causes else "")


def _to_read(facts: Facts) -> str:
    return next_step("unread") if facts.unread else ""
