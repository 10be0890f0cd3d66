"""The finding of a page about traces in one sentence: where the time went, without the client's think time.

A page without such a finding (a tree, a check) has no sentence, and its title is the name of the traces. A profile has
no sentence either, because its lines already show where the time went.
"""

from __future__ import annotations

from dbdyno.pages import format as fmt
from dbdyno.pages import reading
from dbdyno.pages.reading import Analysis

OF_THE_CLIENT = ("idle", "network")
"""Classes of waits in which the client is active, or may be."""


def finding(model: Analysis, page: str) -> str:
    """Return the sentence with the finding of a page, or "" if the page has none."""
    made = {"report": _report, "events": _events, "sql": _statements}.get(page)
    return made(model) if made else ""


def _report(model: Analysis) -> str:
    why = next(iter(reading.entries(model, "why")), {})
    first = next(iter(reading.entries(why, "causes")), {})
    return _most_text(first.get("about"), fmt.number(first.get("amount")), fmt.number(why.get("amount")))


def _most_text(name: object, part_ns: float | None, whole_ns: float | None) -> str:
    if not name or not part_ns or not whole_ns or part_ns < 0:
        return ""
    whole = fmt.span(whole_ns / 1e9)
    return f"{fmt.line(name, 60)} takes {100 * part_ns / whole_ns:.0f} % of {whole}, without think time"


def _events(model: Analysis) -> str:
    rows = [row for row in reading.entries(model, "events") if row.get("class") not in OF_THE_CLIENT]
    first = max(rows, key=lambda row: fmt.number(row.get("total_ns")) or -1.0, default=None)
    time, count = (fmt.number(first.get(name)) if first else None for name in ("total_ns", "count"))
    if first is None or not time or not count:
        return ""
    waits = "1 wait" if count == 1 else f"{fmt.count(count)} waits"
    return f"Sessions waited most for {fmt.line(first.get('event'), 60)}: {fmt.span(time / 1e9)} in {waits}"


def _statements(model: Analysis) -> str:
    said = next((str(one.get("sentence") or "") for one in reading.entries(model, "findings")), "")
    return fmt.line(said.partition(". ")[0].rstrip("."), 200)
