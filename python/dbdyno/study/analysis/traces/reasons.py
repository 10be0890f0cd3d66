"""Causes of a difference as text: one sentence for each cause, with the figures that prove it."""

from __future__ import annotations

from collections.abc import Callable

from dbdyno.stats.wording import duration
from dbdyno.study.analysis.traces.account import CPU, ROUND_TRIP, UNACCOUNTED, Part
from dbdyno.study.analysis.traces.causes import READS, Cause, Explanation
from dbdyno.study.analysis.traces.statement_changes import Change, differ
from dbdyno.study.analysis.traces.turns import COMMIT
from dbdyno.trace.holders import describe_holders

MOST = 20
LEAST = 0.005
"""Share of the longer response time below which a cause gets no sentence."""
TEXT_MOST = 44
MOSTLY = 0.5
"""Share of an increase above which the statement that caused most of it is named."""
HELD_LEAST = 0.05
"""Share of a cause's effect above which the time that others waited for its locks is reported with it."""
LITERALS = 10
"""Number of texts that differ only in literals above which they are mentioned."""


def reasons(explained: Explanation, names: tuple[str, str]) -> list[dict[str, object]]:
    """Return the causes, largest first, as rows with code, about, effect, text, counts and times."""
    least = LEAST * max(explained.response_ns)
    return [
        {
            "code": cause.code,
            "about": cause.about,
            "effect_ns": cause.effect_ns,
            "text": f"{signed_duration(cause.effect_ns)}: {_words(cause, explained, names)}"
            f"{_holders_text(cause, explained)}",
            "counts": cause.counts,
            "times_ns": cause.times_ns,
            "held_ns": cause.held_ns,
        }
        for cause in explained.causes[:MOST]
        if abs(cause.effect_ns) > least
    ]


def signed_duration(ns: float) -> str:
    """Return a difference of times with its sign."""
    return f"{'+' if ns > 0 else '-'}{duration(abs(ns))}"


def _holders_text(cause: Cause, explained: Explanation) -> str:
    """Return a text on lock waits caused by this activity or, if the cause is a lock wait, on what holders did."""
    before, after = cause.held_ns
    if abs(after - before) >= HELD_LEAST * abs(cause.effect_ns) > 0:
        return f"; meanwhile others waited for locks of these sessions {duration(after)} instead of {duration(before)}"
    sides = [side.get(cause.about) for side in explained.locks] if cause.code == "wait" else [None, None]
    most = max((one for one in sides if one), key=lambda one: one.time_ns, default=None)
    words = describe_holders(most) if most else ""
    return f"; {words}" if words else ""


def _words(cause: Cause, explained: Explanation, names: tuple[str, str]) -> str:
    change = explained.changes.get(cause.about)
    if change is not None and cause.code in _STATEMENTS:
        return _STATEMENTS[cause.code](change, explained, names)
    if cause.code == "length":
        return _length(cause)
    if cause.code == "wait":
        return _wait(cause, names)
    if cause.code == "unaccounted":
        why = "a full run queue, paging, or a coarse CPU clock"
        return f"{_times(cause)} that neither CPU nor waits explain: {why}{_most_of(UNACCOUNTED, explained)}"
    words = {"hard parses": _hard, COMMIT: _commits, "round trips": _round_trips, "reads": _reads}
    if cause.code in words:
        return words[cause.code](cause, explained)
    return f"{_times(cause)} of CPU for the same work{_most_of(CPU, explained)}"


def _length(cause: Cause) -> str:
    means = [time / count for time, count in zip(cause.times_ns, cause.counts, strict=True) if count]
    what = {ROUND_TRIP: "round trip", READS: "physical read"}.get(cause.about, cause.about)
    why = ": the network, or the client's own work" if cause.about == ROUND_TRIP else ""
    if len(means) < 2:
        return f"{what}: {_times(cause)}"
    them = f"{number(cause.counts[1])} of them"
    article = "an" if what.lower().startswith((*"aeiou", "lw")) else "a"
    return f"{article} {what} takes {duration(means[1])} instead of {duration(means[0])} ({them}){why}"


def _wait(cause: Cause, names: tuple[str, str]) -> str:
    told = [f"{number(n)} waits, {duration(t)}" for n, t in zip(cause.counts, cause.times_ns, strict=True)]
    told = [words.replace("1 waits", "1 wait") if words.startswith("1 ") else words for words in told]
    for at, here in ((0, 1), (1, 0)):
        if not cause.counts[at]:
            return f"{cause.about}: {told[here]} in {names[here]}, none in {names[at]}"
    return f"{cause.about}: {told[1]} instead of {told[0]}"


def _hard(cause: Cause, explained: Explanation) -> str:
    counts = [a.hard_parses * scale for a, scale in zip(explained.accounts, explained.scales, strict=True)]
    if not differ(counts[0], counts[1]):
        return f"hard parses: {_times(cause)} for {number(counts[1])} of them"
    at = int(counts[1] > counts[0])
    texts = max((change.known.texts[at] for change in explained.changes.values()), default=0)
    why = f"; {number(texts)} of the texts differ only in literals" if texts >= LITERALS else ""
    return f"{number(counts[1])} hard parses instead of {number(counts[0])}{why}"


def _commits(cause: Cause, explained: Explanation) -> str:
    counts = [a.commits * scale for a, scale in zip(explained.accounts, explained.scales, strict=True)]
    if not any(counts):  # a recording does not say which calls were commits
        return f"commits: {_times(cause)}"
    if not differ(counts[0], counts[1]):
        return f"commits: {_times(cause)} for {number(counts[1])} of them"
    return f"{number(counts[1])} commits instead of {number(counts[0])}"


def _round_trips(cause: Cause, explained: Explanation) -> str:
    counts = [a.round_trips * scale for a, scale in zip(explained.accounts, explained.scales, strict=True)]
    fetched = [_rows_a_fetch(explained, at) for at in (0, 1)]
    why = ""
    if all(fetched) and differ(fetched[0], fetched[1]):
        why = f": {number(fetched[1])} rows a fetch instead of {number(fetched[0])}{_main_statement(explained)}"
    return f"{number(counts[1])} round trips instead of {number(counts[0])}{why}"


def _main_statement(explained: Explanation) -> str:
    """Return a text that names the statement with most of the change in round trips; empty if there is none."""
    found = _changes_by_owner(explained, ROUND_TRIP, lambda part: part.count)
    whole = sum(found.values())
    change = explained.changes.get(max(found, key=lambda owner: abs(found[owner]), default=""))
    if change is None or "fetches" not in change.what or found[change.known.key] / (whole or 1.0) <= MOSTLY:
        return ""
    return f", mostly {statement(change)}"


def _most_of(what: str, explained: Explanation) -> str:
    """Return a text that names the statement with most of the change in a resource; empty if there is none."""
    found = _changes_by_owner(explained, what, lambda part: part.time_ns)
    whole = sum(found.values())
    most = max(found, key=lambda owner: found[owner] / (whole or 1.0), default="")
    change = explained.changes.get(most)
    if change is None or len(explained.changes) < 2 or found[most] / (whole or 1.0) <= MOSTLY:
        return ""
    return f"; most of that in {statement(change)}"


def _changes_by_owner(explained: Explanation, what: str, size: Callable[[Part], float]) -> dict[str, float]:
    """Return how much more of a resource each statement used in the second set than in the first."""
    found: dict[str, float] = {}
    for account, scale in zip(explained.accounts, (-explained.scales[0], explained.scales[1]), strict=True):
        for part in account.parts:
            if part.what == what:
                found[part.owner] = found.get(part.owner, 0.0) + size(part) * scale
    return found


def _rows_a_fetch(explained: Explanation, at: int) -> float:
    """Return the rows per fetch of the client's statements whose number of fetches changed."""
    sides = [change.sides[at] for change in explained.changes.values() if "fetches" in change.what]
    client = [side for side in sides if side and side.depth == 0]
    fetches = sum(side.fetches for side in client)
    return sum(side.rows for side in client) / fetches if fetches else 0.0


def _reads(cause: Cause, explained: Explanation) -> str:
    del explained
    more = "less" if cause.counts[1] > cause.counts[0] else "more"
    counts = f"{number(cause.counts[1])} waits for reads instead of {number(cause.counts[0])}"
    return f"{counts} with the same plans and buffer gets: {more} of the data was in the cache"


def _times(cause: Cause) -> str:
    return f"{duration(cause.times_ns[1])} instead of {duration(cause.times_ns[0])}"


def _plan(change: Change, explained: Explanation, names: tuple[str, str]) -> str:
    plans = change.plans()
    which = f" ({plans[1]} instead of {plans[0]})" if plans[0] != plans[1] else ""
    return f"{statement(change)} runs with another plan{which}{_figures(change, ('gets', 'reads', 'rows'))}"


def _rows(change: Change, explained: Explanation, names: tuple[str, str]) -> str:
    one, two = change.per_execution("rows")
    return f"{statement(change)} handles {number(two)} rows per execution instead of {number(one)}"


def _gets(change: Change, explained: Explanation, names: tuple[str, str]) -> str:
    one, two = change.per_execution("gets")
    same = "the same plan and rows" if any(change.plans()) else "the same rows"
    return f"{statement(change)} takes {number(two)} buffer gets per execution instead of {number(one)}, with {same}"


def _executions(change: Change, explained: Explanation, names: tuple[str, str]) -> str:
    one, two = change.executions()
    per = {"execution": " per execution of the client", "transaction": " per transaction"}.get(explained.basis, "")
    return f"{statement(change)} is executed {number(two)} times instead of {number(one)}{per}"


def _only_in_one(change: Change, explained: Explanation, names: tuple[str, str]) -> str:
    at = int(change.sides[1] is not None)
    side = change.sides[at]
    times = f", executed {number(side.executions)} times" if side else ""
    return f"{statement(change)} is only in {names[at]}{times}"


def _figures(change: Change, what: tuple[str, ...]) -> str:
    """Return a text with the figures per execution that changed when the plan changed."""
    told = []
    for name in what:
        one, two = change.per_execution(name)
        if differ(one, two):
            told.append(f"{number(two)} {'buffer gets' if name == 'gets' else name} instead of {number(one)}")
    return f": {', '.join(told)} per execution" if told else ""


def statement(change: Change) -> str:
    """Return a statement as it is named in a sentence: its name and the start of its text."""
    text = " ".join(change.known.text.split())
    short = text if len(text) <= TEXT_MOST else text[: TEXT_MOST - 1] + "…"
    return f"{change.known.key} ({short})" if short else f"statement {change.known.key or 'of no cursor'}"


def number(value: float) -> str:
    """Return a count as text; a mean of counts has three significant digits."""
    if abs(value - round(value)) < 1e-9 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


_STATEMENTS = {
    "plan": _plan,
    "rows": _rows,
    "gets": _gets,
    "executions": _executions,
    "new": _only_in_one,
    "gone": _only_in_one,
}
