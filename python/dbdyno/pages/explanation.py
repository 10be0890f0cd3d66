"""Section about the causes of a difference or of a time, for every page whose model has them."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.json_types import TableRow
from dbdyno.page import Finding, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis, Entry

LEAST_REST = 0.005
"""A rest with a smaller share than this counts as zero."""


def sections(model: Analysis) -> Iterator[Section]:
    """Yield a section with everything that the model explains."""
    given = reading.entries(model, "why")
    if given:
        parts = tuple(_part(one, several=len(given) > 1) for one in given)
        own = parts[0]
        if len(parts) == 1:
            yield Section("why", "Why", sentences=own.sentences, findings=own.findings, notes=own.notes)
        else:
            yield Section("why", "Why", parts=parts)


def _part(given: Entry, *, several: bool) -> Section:
    title = fmt.line(given.get("of") or "") if several else ""
    if given.get("withheld"):
        step = fmt.line(given.get("next") or "")
        held = Finding(f"No cause is named: {fmt.line(given['withheld'], 300).rstrip('.')}.", "doubt", next=step)
        beside = tuple(fmt.line(note, 300) for note in given.get("notes") or ())
        return Section("", title, findings=(held,), notes=beside)
    causes = reading.entries(given, "causes")
    found = tuple(
        Finding(_sentence(one, given), "even", tuple(fmt.line(line, 400) for line in one.get("evidence") or ()))
        for one in causes
    )
    lead = fmt.line(_whole(given), 300)
    notes = tuple(fmt.line(note, 300) for note in (*_rest(given, causes), *(given.get("notes") or ())))
    return Section("", title, sentences=(lead,), findings=found, notes=notes)


def _whole(given: Entry) -> str:
    """Return the sentence that states the difference to be explained.

    Example: `312 us less a transaction (95 % CI 280 to 340 us): 512 us to 200 us.`
    """
    amount, what = fmt.number(given.get("amount")), str(given.get("of") or "")
    if amount is None:
        return what
    if given.get("unit") != "ns":
        return f"{what}."
    if given.get("before") is None:
        return f"{what}: {fmt.duration(amount)}, by what it was spent on."
    more = "more" if amount > 0 else "less"
    per = fmt.line(given.get("per") or "a transaction")
    span = _span(given, sign=amount)
    ends = f"{fmt.duration(given['before'])} → {fmt.duration(given['after'])}"
    return f"{what}: {fmt.duration(abs(amount))} {more} {per}{f' ({span})' if span else ''}, {ends}."


def _span(given: Entry, *, sign: float) -> str:
    low, high = fmt.number(given.get("low")), fmt.number(given.get("high"))
    if low is None or high is None:
        return ""
    ends = (low, high) if sign > 0 else (-high, -low)
    return f"{fmt.duration(ends[0])} to {fmt.duration(ends[1])}"


def _sentence(one: Entry, whole: Entry) -> str:
    """Return a cause as text, such as `291 us of it (93 %; 284 us to 298 us): waits for WALSync`."""
    share, amount = fmt.number(one.get("share")), fmt.number(one.get("amount"))
    told = [f"{100 * share:.0f} %"] if share is not None else []
    words = fmt.line(one.get("sentence") or "", 400)
    if whole.get("unit") == "ns" and amount is not None:
        span = _span(one, sign=amount)
        told += [span] if span else []
        return f"{fmt.duration(abs(amount))} ({'; '.join(told)}): {words}"
    return f"{told[0]}: {words}" if told else words


def _rest(given: Entry, causes: list[TableRow]) -> Iterator[str]:
    share, amount = fmt.number(given.get("rest_share")), fmt.number(given.get("rest"))
    if not causes:
        yield "No single cause has a tenth of it with certainty."
    elif share is not None and abs(share) < LEAST_REST:
        yield "Together they explain all of it."
    elif share is not None and amount is not None and given.get("unit") == "ns":
        sign = "-" if amount < 0 else ""
        yield f"Not explained by these: {sign}{fmt.duration(abs(amount))} ({100 * share:.0f} %)."
    elif share is not None:
        yield f"Not explained by these: {100 * share:.0f} %."
