"""Section about the causes of a difference or of time spent, for every page whose model has them."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.base.json_types import TableRow
from dbdyno.page import Finding, Section
from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis, Entry

LEAST_REST = 0.005
"""Share below which the unexplained rest counts as zero."""


def sections(model: Analysis) -> Iterator[Section]:
    """Yield a section with all causes that the model contains."""
    given = reading.entries(model, "why")
    if given:
        parts = tuple(_part(one, several=len(given) > 1) for one in given)
        own = parts[0]
        if len(parts) == 1:
            yield Section("why", "Why", sentences=own.sentences, findings=own.findings, notes=own.notes)
        else:
            yield Section("why", "Why", parts=parts)


def _part(entry: Entry, *, several: bool) -> Section:
    title = fmt.line(entry.get("of") or "") if several else ""
    if entry.get("withheld"):
        step = fmt.line(entry.get("next") or "")
        held = Finding(f"No cause is named: {fmt.line(entry['withheld'], 300).rstrip('.')}.", "doubt", next=step)
        beside = tuple(fmt.line(note, 300) for note in entry.get("notes") or ())
        return Section("", title, findings=(held,), notes=beside)
    causes = reading.entries(entry, "causes")
    found = tuple(
        Finding(_sentence(one, entry), "even", tuple(fmt.line(line, 400) for line in one.get("evidence") or ()))
        for one in causes
    )
    lead = fmt.line(_whole(entry), 300)
    notes = tuple(fmt.line(note, 300) for note in (*_rest(entry, causes), *(entry.get("notes") or ())))
    return Section("", title, sentences=(lead,), findings=found, notes=notes)


def _whole(entry: Entry) -> str:
    """Return the sentence that states the difference to be explained.

    Example: `312 us less a transaction (95 % CI 280 to 340 us): 512 us to 200 us.`
    """
    amount, what = fmt.number(entry.get("amount")), str(entry.get("of") or "")
    if amount is None:
        return what
    if entry.get("unit") != "ns":
        return f"{what}."
    if entry.get("before") is None:
        return f"{what}: {fmt.duration(amount)}, split as follows."
    more = "more" if amount > 0 else "less"
    per = fmt.line(entry.get("per") or "a transaction")
    span = _span(entry, sign=amount)
    ends = f"{fmt.duration(entry['before'])} → {fmt.duration(entry['after'])}"
    return f"{what}: {fmt.duration(abs(amount))} {more} {per}{f' ({span})' if span else ''}, {ends}."


def _span(entry: Entry, *, sign: float) -> str:
    low, high = fmt.number(entry.get("low")), fmt.number(entry.get("high"))
    if low is None or high is None:
        return ""
    ends = (low, high) if sign > 0 else (-high, -low)
    return f"{fmt.duration(ends[0])} to {fmt.duration(ends[1])}"


def _sentence(entry: Entry, total: Entry) -> str:
    """Return a cause as text, such as `291 us of it (93 %; 284 us to 298 us): waits for WALSync`."""
    share, amount = fmt.number(entry.get("share")), fmt.number(entry.get("amount"))
    told = [f"{100 * share:.0f} %"] if share is not None else []
    words = fmt.line(entry.get("sentence") or "", 400)
    if total.get("unit") == "ns" and amount is not None:
        span = _span(entry, sign=amount)
        told += [span] if span else []
        against = " in the opposite direction" if share is not None and share < 0 else ""
        return f"{fmt.duration(abs(amount))}{against} ({'; '.join(told)}): {words}"
    return f"{told[0]}: {words}" if told else words


def _rest(entry: Entry, causes: list[TableRow]) -> Iterator[str]:
    share, amount = fmt.number(entry.get("rest_share")), fmt.number(entry.get("rest"))
    if not causes:
        yield "No single cause certainly explains a tenth of the total."
    elif share is not None and abs(share) < LEAST_REST:
        yield "Together these causes explain the total."
    elif share is not None and amount is not None and entry.get("unit") == "ns":
        sign = "-" if amount < 0 else ""
        yield f"Not explained by these: {sign}{fmt.duration(abs(amount))} ({100 * share:.0f} %)."
    elif share is not None:
        yield f"Not explained by these: {100 * share:.0f} %."
