"""Verdict on two periods: what users wait for, in one word and one title.

It depends on database time for the same work (`same_work.py`), blocked time, waiting commits and failed transactions
(`blocked_time.py`), and added work (`more_work.py`). All other changes are findings, not verdicts. Throughput is the
offered load, so more or less of it is neither better nor worse, unless the load comes from a closed loop.

A difference counts if it reaches 1 % of database time (blocked time, added work) or the threshold (the same work).
A verdict of equality names a bound: "no change larger than 5 %" covers the whole 95 % interval. If the interval reaches
beyond 20 %, the verdict is withheld.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dbdyno.judge.blocked_time import BlockedTime, FailedTransactions
from dbdyno.judge.more_work import AddedWork
from dbdyno.judge.next_steps import next_step
from dbdyno.judge.same_work import CostIndex, SameWork
from dbdyno.snapshot.causes import ReportedCause
from dbdyno.snapshot.wording import duration_text, three_digits

MATERIAL = 0.01
"""Smallest share of database time at which a difference counts in the verdict."""
BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Bounds that "no change larger than" may name; beyond the last one the verdict is withheld."""
SMALL = 0.05
"""Bound within which a change is reported as no change, whether it is significant or not."""
APART = 1.5
"""Factor of slowdown of the same work at which a direct cause for half of the slowdown is enough for a verdict."""
UNEXPLAINED, ALIKE, STRICT = 1.25, 1.05, 0.01
"""Limits for a change without a known cause.

The machine may be the cause if time changed by less than the factor `UNEXPLAINED` and the same calls read about as much
as before (within the factor `ALIKE`). Any other change without a known cause needs a p below `STRICT`.
"""
LEAST_BLOCKED = 0.01
"""Average number of waiting sessions below which blocked time is ignored."""
OUTWEIGHS = 2.0
"""Factor by which waits outside of statements must outgrow statement time to come first in the verdict."""
OF_COMMITS = ("device", "standby")
"""Causes that make commits wait."""
CHANGED = ("setting", "cache", "version", "sessions")
"""Causes that are reported as a change if nothing became slower."""
LEAST, LEAST_CHOSEN = 5, 3
"""Smallest number of sub-intervals for a verdict: in a period, and in each part of an interval that is cut in two."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts on which a verdict on two periods is based.

    Attributes:
        counts: Number of sub-intervals of both periods.
        work: Database time for the same work.
        blocked: Number of sessions that wait for locks.
        failed: Transactions that were rolled back.
        added: Work that was added.
        causes: Causes that were found, the main one first.
        spent_ms: Statement time of both periods [ms per second].
        calls: Statements per second of both periods.
        unread: Why the time of statements is unknown; empty if it is known.
        closed: Decision on throughput if the load is a closed loop; empty otherwise.
        level: p below which a change of the same work is certain.
        least: Smallest number of sub-intervals that each period needs.
        commits: Number of sessions that wait in a commit.
        commits_a_second: Commits per second of both periods.
    """

    counts: tuple[int, int]
    work: SameWork | None = None
    blocked: BlockedTime | None = None
    failed: FailedTransactions | None = None
    added: AddedWork | None = None
    causes: Sequence[ReportedCause] = ()
    spent_ms: tuple[float, float] = (0.0, 0.0)
    calls: tuple[float, float] = (0.0, 0.0)
    unread: str = ""
    closed: str = ""
    level: float = 0.05
    least: int = LEAST
    commits: BlockedTime | None = None
    commits_a_second: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, a title with the finding, further sentences, and the next step."""

    word: str
    title: str
    sentences: tuple[str, ...] = field(default=())
    next: str = ""

    def as_dict(self) -> dict[str, object]:
        """Return the verdict as it is stored in a page's model; `why` is the title without its first word."""
        why = self.title.partition(": ")[2] or self.title
        return {
            "word": self.word,
            "title": self.title,
            "why": why,
            "sentences": list(self.sentences),
            "next": self.next,
        }


_Rule = Callable[[Facts, float], Verdict | None]


def judge(facts: Facts, threshold: float) -> Verdict:
    """Return the verdict of the most severe rule that applies."""
    for rule in (
        *_outweighing_rules(facts),
        _slower,
        _judge_blocked,
        _slow_commits,
        _judge_failed,
        _more_work,
        _closed_loop,
    ):
        found = rule(facts, threshold)
        if found is not None:
            return found
    if min(facts.counts) < facts.least:
        few = f"{facts.counts[0]} and {facts.counts[1]} sub-intervals are too few: each period needs {facts.least}"
        return Verdict(
            "cannot tell", f"Cannot tell: {few}", next="take more snapshots with `dbdyno snap watch --every 10s`"
        )
    if facts.work is None:
        unread = facts.unread or "no statement ran often enough in both periods"
        return Verdict("cannot tell", f"Cannot tell: {unread}", _load(facts), _to_read(facts))
    return _faster(facts, threshold) or _equal(facts, facts.work)


def _outweighing_rules(facts: Facts) -> list[_Rule]:
    """Return the rules on waits outside of statements that grew over twice as much as statement time, largest first.

    Otherwise a statement that takes 15 µs longer would be the headline above commits that wait for seconds.
    """
    waits: list[tuple[float, _Rule]] = []
    for rule, one in ((_judge_blocked, facts.blocked), (_slow_commits, facts.commits)):
        if one is not None and 1000 * one.growth > OUTWEIGHS * max(facts.spent_ms[1] - facts.spent_ms[0], 0.0):
            waits.append((one.growth, rule))
    return [rule for _, rule in sorted(waits, key=lambda one: -one[0])]


def _slower(facts: Facts, threshold: float) -> Verdict | None:
    """Judge if the same work is certainly slower, or far slower with a direct cause that explains half of it."""
    work = facts.work
    if work is None:
        return None
    certain = _is_certain(facts, work) and work.time.ratio > 1 + threshold
    if not certain and not (work.time.ratio >= APART and _explained_share(facts) >= 0.5):
        return None
    grown = max(facts.spent_ms[1] - facts.spent_ms[0], 0.0)
    title = _title_with_cause("Slower", facts, grown) or f"Slower: the same statements take {_times(work.time)}"
    return Verdict("worse", title, (*_first_evidence(facts), _same_work(work), *_load(facts)), _next_step(facts))


def _judge_blocked(facts: Facts, threshold: float) -> Verdict | None:
    """Judge whether sessions wait for locks for longer than before."""
    del threshold
    blocked = facts.blocked
    if blocked is None or not blocked.certain:
        return None
    if blocked.growth < max(MATERIAL * facts.spent_ms[0] / 1000, LEAST_BLOCKED):
        return None
    lock = next((one for one in facts.causes if one.cause.code == "lock"), None)
    words = lock.cause.words if lock else "sessions wait for each other's locks"
    more = max(blocked.active[1] - blocked.active[0], blocked.growth)
    title = f"Slower: {words} ({blocked.share:.0%} of +{duration_text(1000 * more)} a second)"
    said = (lock.evidence,) if lock and lock.evidence else ()
    return Verdict("worse", title, (*said, *_work_line(facts), *_load(facts)), next_step("lock"))


def _slow_commits(facts: Facts, threshold: float) -> Verdict | None:
    """Judge whether commits wait longer than before for the log or a standby; no statement's time includes these waits.

    More commits that each wait as long as before are only more load.
    """
    del threshold
    cause = next((one for one in facts.causes if one.cause.code in OF_COMMITS and not one.cause.statements), None)
    commits = facts.commits
    if commits is None:
        if cause is None or cause.cause.code != "device":
            return None
        return Verdict("worse", f"Slower: {cause.cause.words}", _side_evidence(facts, cause), next_step("device"))
    each = [wait / rate if rate else wait for wait, rate in _per_commit(commits, facts)]
    least = max(MATERIAL * facts.spent_ms[0] / 1000, LEAST_BLOCKED)
    if not commits.certain or commits.growth < least or each[1] < APART * each[0]:
        return None
    words = cause.cause.words if cause else "commits wait longer for the log"
    more = max(commits.active[1] - commits.active[0], commits.growth)
    title = f"Slower: {words} ({commits.share:.0%} of +{duration_text(1000 * more)} a second)"
    return Verdict("worse", title, _side_evidence(facts, cause), next_step(cause.cause.code if cause else "device"))


def _per_commit(commits: BlockedTime, facts: Facts) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the number of waiting sessions and of commits per second, for each period."""
    return (commits.before, facts.commits_a_second[0]), (commits.after, facts.commits_a_second[1])


def _side_evidence(facts: Facts, cause: ReportedCause | None) -> tuple[str, ...]:
    said = (cause.evidence,) if cause and cause.evidence else ()
    return (*said, *_work_line(facts), *_load(facts))


def _judge_failed(facts: Facts, threshold: float) -> Verdict | None:
    del threshold
    one = facts.failed
    if one is None or not one.certain:
        return None
    title = f"More work fails: {one.after:.1%} of transactions are rolled back, {one.before:.1%} before"
    return Verdict("worse", title, (*_first_evidence(facts), *_work_line(facts), *_load(facts)), next_step("failed"))


def _more_work(facts: Facts, threshold: float) -> Verdict | None:
    """Judge whether new statements, or statements called out of proportion, take additional time."""
    added = facts.added
    if added is None or added.ms < max(threshold, MATERIAL) * facts.spent_ms[0]:
        return None
    what = _first_of(facts, {"statement", "calls"}) or f"{_text(added)}"
    title = f"More work: {what} ({added.share:.0%} of +{duration_text(added.ms)} a second)"
    calls = [one.get("calls", 0.0) for one in (added.statement.before, added.statement.after)]
    before, after = map(three_digits, calls)
    line = f"It is called {after} times a second, {before} before; the others {_fold(added.usual)}."
    return Verdict("worse", title, (line, *_work_line(facts), *_load(facts)), next_step("statement"))


def _closed_loop(facts: Facts, threshold: float) -> Verdict | None:
    """Judge throughput if the load is a closed loop, in which throughput depends on the server."""
    del threshold
    if facts.closed != "worse":
        return None
    title = (
        _title_with_cause("Slower", facts, facts.spent_ms[1] - facts.spent_ms[0])
        or "Slower: throughput of the closed loop fell"
    )
    return Verdict("worse", title, (*_first_evidence(facts), *_work_line(facts)), _next_step(facts))


def _faster(facts: Facts, threshold: float) -> Verdict | None:
    work = facts.work
    if work is None:
        return None
    better = _is_certain(facts, work) and work.time.ratio < 1 / (1 + threshold)
    if not better and facts.closed != "better":
        return None
    title = f"Faster: the same statements take {_times(work.time)}"
    return Verdict("better", title, (_same_work(work), *_changed_settings(facts), *_load(facts)))


def _equal(facts: Facts, work: SameWork) -> Verdict:
    """Return "no change larger than" a bound; withhold it if the bound is wide or the machine may have changed."""
    time = work.time
    reach = max(time.high - 1, 1 - time.low)
    bound = next((one for one in BOUNDS if reach <= one), None)
    said = (*_not_sampled(facts), *_changed_settings(facts), *_load(facts))
    if time.p < facts.level and (bound is None or bound > SMALL):
        title = f"Cannot tell: the same statements take {_times(time)}, but no cause was found"
        return Verdict("cannot tell", title, (*_machine(work), *said))
    figures = f"{_signed_percent(time.low)} to {_signed_percent(time.high)} %"
    storm = next((one for one in facts.causes if one.cause.code == "sessions"), None)
    if bound is None and storm is not None:
        title = f"Cannot tell: {storm.cause.words} ({storm.cause.evidence}), and no statement's time includes logins"
        return Verdict("cannot tell", title, (_to_tell(work), *said), next_step("sessions"))
    if bound is None:
        title = f"Cannot tell: database time for the same work may have changed by {figures}"
        return Verdict("cannot tell", title, (_to_tell(work), *said))
    title = f"No change larger than {100 * bound:.0f} % in database time for the same work (95 % CI {figures})"
    return Verdict("ok", title, said)


def _machine(work: SameWork) -> tuple[str, ...]:
    if not _may_be_the_machine(work):
        return ()
    return ("The same calls read as much as before, so the machine or its neighbours may have changed.",)


def _is_certain(facts: Facts, work: SameWork) -> bool:
    """Return True if a change of the same work is explained neither by chance nor by the machine.

    The test uses time; or, if time moved in the same direction, the blocks or rows that the same calls read, which
    other programs on the machine do not change.
    """
    if min(facts.counts) < facts.least:
        return False
    by_effort = work.effort is not None and work.effort.p < STRICT and _move_together(work.effort, work.time)
    if work.time.p >= facts.level:
        return by_effort and bool(facts.causes)
    return bool(_candidates(facts)) or (work.time.p < STRICT and not _may_be_the_machine(work))


def _move_together(effort: CostIndex, time: CostIndex) -> bool:
    """Return True if effort (blocks or rows) and time both rose, or both fell, by at least a quarter."""
    return min(effort.ratio, time.ratio) >= UNEXPLAINED or max(effort.ratio, time.ratio) <= 1 / UNEXPLAINED


def _may_be_the_machine(work: SameWork) -> bool:
    """Return True if the same calls read about as much, and their time changed by less than a quarter."""
    alike = work.effort is not None and 1 / ALIKE <= work.effort.ratio <= ALIKE
    return alike and 1 / UNEXPLAINED < work.time.ratio < UNEXPLAINED


def _candidates(facts: Facts) -> list[ReportedCause]:
    """Return causes that are events or states of the server, not just a statement that is slower or more frequent."""
    return [one for one in facts.causes if one.cause.direct]


def _explained_share(facts: Facts) -> float:
    """Return the share that the first direct cause with a known share explains; 0 if there is none."""
    return next((one.share for one in _candidates(facts) if one.share is not None), 0.0)


def _title_with_cause(word: str, facts: Facts, grown_ms: float) -> str:
    """Return a title with the first cause and its share of the change; empty if there is no cause."""
    if not facts.causes:
        return ""
    first, share = facts.causes[0].cause, facts.causes[0].share
    words = f"{first.words.removeprefix('slower: ')} takes longer" if first.code == "slower" else first.words
    of = f"+{duration_text(grown_ms)} a second" if grown_ms > 0 else ""
    amount = f" ({share:.0%} of {of})" if share is not None and of else f" ({of})" if of else ""
    return f"{word}: {words}{amount}"


def _first_of(facts: Facts, codes: set[str]) -> str:
    return next((one.cause.words for one in facts.causes if one.cause.code in codes), "")


def _text(added: AddedWork) -> str:
    kind = "a new statement" if added.is_new else "more calls of a statement"
    return f"{kind}: {' '.join(added.statement.text.split())[:60]}"


def _first_evidence(facts: Facts) -> tuple[str, ...]:
    """Return sentences on the first cause: its evidence, when it began, and other changes between the periods."""
    if not facts.causes:
        return ("No rule found a cause.",)
    first = facts.causes[0]
    when = first.cause.when
    said = [first.evidence, f"since {when.removeprefix('before ')} at the latest" if when else ""]
    return (*filter(None, said), *_changed_settings(facts, beside=first))


def _changed_settings(facts: Facts, beside: ReportedCause | None = None) -> tuple[str, ...]:
    """Return a sentence on settings that changed between the periods, and on a restart."""
    some = (one.cause for one in facts.causes if one is not beside)
    names = [one.words.removeprefix("setting ") for one in some if one.code in CHANGED]
    return (f"Changed between the periods: {'; '.join(names[:3])}",) if names else ()


def _work_line(facts: Facts) -> tuple[str, ...]:
    return (_same_work(facts.work),) if facts.work is not None else ()


def _same_work(work: SameWork) -> str:
    time, effort = work.time, ""
    figures = f"{_fold(time.ratio)}, 95 % CI {three_digits(time.low)} to {three_digits(time.high)}"
    if work.effort is not None and not 1 / ALIKE <= work.effort.ratio <= ALIKE:
        effort = f"; they read {_fold(work.effort.ratio)}"
    return f"The same statements take {figures}{effort}; {work.covered:.0%} of statement time judged."


def _times(time: CostIndex) -> str:
    if time.ratio >= 2:
        return (
            f"{three_digits(time.ratio)} times as long (95 % CI {three_digits(time.low)} to {three_digits(time.high)})"
        )
    figures = f"95 % CI {_signed_percent(time.low)} to {_signed_percent(time.high)} %"
    return f"{100 * abs(time.ratio - 1):.3g} % {'longer' if time.ratio > 1 else 'less time'} ({figures})"


def _fold(ratio: float) -> str:
    if three_digits(ratio) == "1":
        return "as much as before"
    return f"{three_digits(ratio)} times as much" if ratio >= 0.01 else "almost none"


def _signed_percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+,.{0 if abs(ratio - 1) >= 0.1 else 1}f}".replace("-", "−")


def _load(facts: Facts) -> tuple[str, ...]:
    old, new = facts.calls
    if not old and not new:
        return ()
    return (f"Load: {three_digits(old)} statements a second, then {three_digits(new)}.",)


def _to_tell(work: SameWork) -> str:
    """Return a sentence on how many sub-intervals are needed to detect a change as large as the largest bound."""
    half = math.log(work.time.high / work.time.low) / 2
    wanted = math.log(1 + BOUNDS[-1])
    count = math.ceil(min(work.counts) * max(half / wanted, 1.2) ** 2)
    return f"About {count} sub-intervals in each period are needed to detect a change of {BOUNDS[-1]:.0%}."


def _not_sampled(facts: Facts) -> tuple[str, ...]:
    return () if facts.blocked is not None else ("Waits for locks are not known: sessions were not sampled.",)


def _next_step(facts: Facts) -> str:
    return next_step(facts.causes[0].cause.code if facts.causes else "")


def _to_read(facts: Facts) -> str:
    return next_step("unread") if facts.unread else ""
